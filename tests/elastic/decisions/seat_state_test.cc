// SeatPhase: each pair of a phase and an event, legal or not, is as PROTOCOL.md section 5 says.
#include "elastic/decisions/seat_state.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

std::vector<SeatPhase> AllPhases() {
  std::vector<SeatPhase> all;
  for (int i = 0; i < kSeatPhases; ++i) all.push_back(static_cast<SeatPhase>(i));
  return all;
}

std::vector<SeatEvent> AllEvents() {
  std::vector<SeatEvent> all;
  for (int i = 0; i < kSeatEvents; ++i) all.push_back(static_cast<SeatEvent>(i));
  return all;
}

bool IsProcess(SeatPhase phase) { return HasProcess(StateOf(phase)); }
bool IsSaid(SeatEvent event) { return event < SeatEvent::kAwaited; }
bool IsEnd(SeatEvent event) { return event >= SeatEvent::kEndedFinished; }

// Calls `check` for each legal pair, with where it leads.
template <class Check>
void ForEachStep(Check check) {
  for (const SeatPhase from : AllPhases()) {
    for (const SeatEvent event : AllEvents()) {
      SCOPED_TRACE(std::string(SeatPhaseName(from)) + " x " + std::string(SeatEventName(event)));
      if (const auto step = NextStep(from, event)) check(from, event, *step);
    }
  }
}

TEST(SeatState, EveryStepHasAReason) {
  int steps = 0;
  ForEachStep([&](SeatPhase, SeatEvent, const SeatStep& step) {
    EXPECT_GT(step.why.size(), 10u);
    ++steps;
  });
  EXPECT_GT(steps, 100);
}

TEST(SeatState, NamesAreDifferent) {
  std::set<std::string_view> phases, events;
  for (const SeatPhase phase : AllPhases()) phases.insert(SeatPhaseName(phase));
  for (const SeatEvent event : AllEvents()) events.insert(SeatEventName(event));
  EXPECT_EQ(phases.size(), size_t{kSeatPhases});
  EXPECT_EQ(events.size(), size_t{kSeatEvents});
}

TEST(SeatState, EveryPhaseIsReachedFromAnEmptySeat) {
  std::set<SeatPhase> reached = {SeatPhase::kEmpty};
  for (size_t before = 0; before != reached.size();) {
    before = reached.size();
    ForEachStep([&](SeatPhase from, SeatEvent, const SeatStep& step) {
      if (reached.contains(from)) reached.insert(step.to);
    });
  }
  EXPECT_EQ(reached.size(), size_t{kSeatPhases});
}

// What a worker says cannot end it, nor bring back one that has ended.
TEST(SeatState, OnlyAStartGivesASeatAProcessAndOnlyAnEndTakesIt) {
  ForEachStep([&](SeatPhase from, SeatEvent event, const SeatStep& step) {
    if (IsSaid(event)) {
      EXPECT_TRUE(IsProcess(from));
      EXPECT_TRUE(IsProcess(step.to));
    }
    const bool is_start = event == SeatEvent::kStarted || event == SeatEvent::kStartedInside;
    EXPECT_EQ(!IsProcess(from) && IsProcess(step.to), is_start);
    EXPECT_EQ(IsProcess(from) && !IsProcess(step.to), IsEnd(event));
  });
}

TEST(SeatState, AnyProcessCanBeSignalledAndCanDie) {
  for (const SeatPhase phase : AllPhases()) {
    EXPECT_EQ(NextStep(phase, SeatEvent::kSignalled).has_value(), IsProcess(phase));
    EXPECT_EQ(NextStep(phase, SeatEvent::kEndedDead).has_value(), IsProcess(phase));
  }
}

TEST(SeatState, WhoWasSignalledStaysSoUntilItEnds) {
  ForEachStep([&](SeatPhase from, SeatEvent event, const SeatStep& step) {
    if (IsSignalled(from) && !IsEnd(event)) {
      EXPECT_TRUE(IsSignalled(step.to));
    }
    if (!IsSignalled(from) && IsSignalled(step.to)) {
      EXPECT_EQ(event, SeatEvent::kSignalled);
    }
  });
}

// The promise `outside` rests on this: after a break nobody comes to be inside but through `epoch`.
TEST(SeatState, OnlyAnEpochPutsAWorkerInside) {
  const auto is_inside = [](SeatPhase phase) {
    return StateOf(phase) == SeatState::kRunning || StateOf(phase) == SeatState::kStopping;
  };
  ForEachStep([&](SeatPhase from, SeatEvent event, const SeatStep& step) {
    const bool enters = event == SeatEvent::kEntered || event == SeatEvent::kStartedInside;
    EXPECT_EQ(!is_inside(from) && is_inside(step.to), enters);
  });
}

TEST(SeatState, WhoSaidByeOrWasSignalledEntersNothing) {
  for (const SeatPhase phase : AllPhases()) {
    const bool can = phase == SeatPhase::kReady || phase == SeatPhase::kParked;
    EXPECT_EQ(NextStep(phase, SeatEvent::kEntered).has_value(), can) << SeatPhaseName(phase);
  }
}

// --- The document ---

using Cells = std::vector<std::string>;

// The words between backticks.
std::vector<std::string> Quoted(const std::string& cell) {
  std::vector<std::string> words;
  for (size_t at = cell.find('`'); at != std::string::npos;) {
    const size_t end = cell.find('`', at + 1);
    words.push_back(cell.substr(at + 1, end - at - 1));
    at = cell.find('`', end + 1);
  }
  return words;
}

// The rows of a table, the first of which names its columns, that follow "<!-- mark -->".
std::vector<Cells> TableOf(const std::string& text, const std::string& mark) {
  std::vector<Cells> rows;
  const size_t at = text.find("<!-- " + mark + " -->\n");
  EXPECT_NE(at, std::string::npos) << mark;
  if (at == std::string::npos) return rows;
  std::istringstream lines(text.substr(text.find('\n', at) + 1));
  for (std::string line; std::getline(lines, line) && line.starts_with("|");) {
    if (line.starts_with("|---")) continue;
    std::istringstream parts(line.substr(1));
    Cells cells;
    for (std::string cell; std::getline(parts, cell, '|');) {
      const size_t first = cell.find_first_not_of(' ');
      cells.push_back(first == std::string::npos
                          ? ""
                          : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    }
    rows.push_back(cells);
  }
  return rows;
}

// What both tables say, as text: "ready x hello" -> "-", "same" or a phase.
std::map<std::string, std::string> DocumentedSteps(const std::string& text) {
  std::map<std::string, std::string> steps;
  for (const std::string mark : {"seat: messages", "seat: supervisor"}) {
    const std::vector<Cells> rows = TableOf(text, mark);
    for (size_t row = 1; row < rows.size(); ++row) {
      EXPECT_EQ(rows[row].size(), rows[0].size()) << mark << ", row " << row;
      if (rows[row].size() != rows[0].size()) continue;
      for (const std::string& phase : Quoted(rows[row][0])) {
        for (size_t column = 1; column < rows[0].size(); ++column) {
          for (const std::string& event : Quoted(rows[0][column])) {
            const bool is_new = steps.emplace(phase + " x " + event, rows[row][column]).second;
            EXPECT_TRUE(is_new) << phase << " x " << event << " is there twice";
          }
        }
      }
    }
  }
  return steps;
}

std::string ReadProtocol() {
  PosixFiles files;
  const auto text = ReadWhole(files, KEEL_SOURCE_DIR "/elastic/PROTOCOL.md", 1 << 20);
  EXPECT_OK(text);
  return *text;
}

TEST(SeatState, TheProtocolsTablesSayTheSameOfEachPair) {
  std::map<std::string, std::string> coded;
  for (const SeatPhase from : AllPhases()) {
    for (const SeatEvent event : AllEvents()) {
      const auto step = NextStep(from, event);
      const std::string to = !step              ? "–"
                             : step->to == from ? "same"
                                                : std::string(SeatPhaseName(step->to));
      coded[std::string(SeatPhaseName(from)) + " x " + std::string(SeatEventName(event))] = to;
    }
  }
  const auto documented = DocumentedSteps(ReadProtocol());
  for (const auto& [pair, to] : coded) {
    const auto found = documented.find(pair);
    EXPECT_TRUE(found != documented.end()) << pair << " is missing";
    if (found != documented.end()) {
      EXPECT_EQ(found->second, to) << pair;
    }
  }
  EXPECT_EQ(documented.size(), coded.size()) << "it has a state or an event that the code lacks";
}

TEST(SeatState, TheProtocolNamesTheRecordsWordForEachState) {
  std::map<std::string, std::string> words;
  for (const Cells& row : TableOf(ReadProtocol(), "seat: states")) {
    const auto phases = Quoted(row[0]), record = Quoted(row[1]);
    if (record.empty()) continue;   // the names of the columns
    for (const std::string& phase : phases) words[phase] = record[0];
  }
  EXPECT_EQ(words.size(), size_t{kSeatPhases});
  for (const SeatPhase phase : AllPhases()) {
    EXPECT_EQ(words[std::string(SeatPhaseName(phase))], SeatStateName(StateOf(phase)));
  }
}

}  // namespace
}  // namespace keel
