// A head, a table of workers, and the newest events in what is left.
#include "tools/keel/top_view.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "tools/keel/text_table.h"

namespace keel {
namespace {

constexpr size_t kEventsLeast = 4;   // lines for events, where there are many workers
constexpr double kSecondsMost = 9e9;   // since 1970: beyond any clock, and far from overflow
constexpr size_t kEventsAlone = 20;  // where there is no screen
constexpr std::array<const char*, 5> kSortNames = {"rank", "host", "state", "step", "deaths"};

std::string MemberText(const Json& json, const char* name) {
  const auto text = Field<std::string>(json, name);
  return text.ok() ? Printable(*text) : "";
}

std::optional<double> MemberNumber(const Json& json, const char* name) {
  const auto found = json.is_object() ? json.find(name) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string FigureText(const std::optional<double>& number) {
  return number ? ShortText(*number) : "-";
}

// Whatever a page tells, within what a day's clock and a count of workers can be.
int64_t WholeOf(const std::optional<double>& number, double most = 9e15) {
  return static_cast<int64_t>(std::clamp(number.value_or(0), -1.0, most));
}

std::string WholeText(const std::optional<double>& number) {
  return number ? std::to_string(WholeOf(number)) : "-";
}

// "3 hosts"
std::string CountIn(const Json& json, const char* name, const std::string& one) {
  return CountText(static_cast<uint64_t>(std::max<int64_t>(WholeOf(MemberNumber(json, name)), 0)),
                   one);
}

const Json& MemberOf(const Json& json, const char* name) {
  static const Json nothing = Json::object();
  const auto found = json.is_object() ? json.find(name) : json.end();
  return !json.is_object() || found == json.end() ? nothing : *found;
}

std::string OrDash(std::string text) { return text.empty() ? "-" : text; }

struct TopRow {
  std::string host, state, place, ended;
  std::optional<double> rank, local_rank, epoch, step, waits_for, deaths, loss, step_ms;
  bool is_gone = false;
};

// Of one of this host's workers. Milliseconds of a step: between two answers; where it made none,
// what was shown before; at first, since it began.
struct OwnFigures {
  std::optional<double> loss, step_ms;
};

double SecondsOf(const Json& worker) {
  double seconds = 0;
  for (const Json& part : MemberOf(worker, "seconds_in")) {
    if (part.is_number()) seconds += part.get<double>();
  }
  return seconds;
}

std::map<double, OwnFigures> FiguresOf(const TopAnswers& answers) {
  std::map<double, OwnFigures> figures;
  for (const Json& now : MemberOf(answers.newest, "workers_here")) {
    const auto index = MemberNumber(now, "local_rank");
    if (!index) continue;
    OwnFigures& own = figures[*index];
    own.loss = MemberNumber(now, "loss");
    const double all = MemberNumber(now, "steps").value_or(0);
    double steps = all;
    double seconds = SecondsOf(now);
    for (const Json& before : MemberOf(answers.before, "workers_here")) {
      const double earlier = MemberNumber(before, "steps").value_or(0);
      if (MemberNumber(before, "local_rank") != index || earlier > steps) continue;
      seconds -= SecondsOf(before);
      steps -= earlier;
    }
    const auto shown = answers.step_ms.find(*index);
    if (steps > 0) {
      own.step_ms = std::max(seconds, 0.0) * 1000 / steps;
    } else if (all > 0 && shown != answers.step_ms.end()) {
      own.step_ms = shown->second;
    }
  }
  return figures;
}

std::vector<TopRow> RowsOf(const TopAnswers& answers) {
  std::vector<TopRow> rows;
  const auto figures = FiguresOf(answers);
  for (const Json& host : MemberOf(answers.newest, "members")) {
    TopRow row;
    row.host = OrDash(MemberText(host, "host"));
    row.deaths = MemberNumber(host, "deaths");
    row.is_gone = MemberText(host, "state") == "gone";
    const bool is_here = MemberOf(host, "here") == true;
    const Json& workers = MemberOf(host, "workers");
    if (row.is_gone || workers.empty()) {
      row.state = OrDash(MemberText(host, "state"));
      row.ended = MemberText(host, "reason");
      rows.push_back(row);
      continue;
    }
    for (const Json& worker : workers) {
      row.rank = MemberNumber(worker, "rank");
      row.local_rank = MemberNumber(worker, "local_rank");
      const bool is_silent = MemberOf(worker, "silent") == true;
      row.state = is_silent ? "silent" : OrDash(MemberText(worker, "state"));
      row.epoch = MemberNumber(worker, "epoch");
      row.step = MemberNumber(worker, "step");
      row.place = OrDash(MemberText(worker, "place"));
      row.waits_for = MemberNumber(worker, "waits_for");
      row.ended = MemberText(worker, "ended");
      const auto own = figures.find(row.local_rank.value_or(-1));
      const bool has_figures = is_here && own != figures.end();
      row.loss = has_figures ? own->second.loss : std::nullopt;
      row.step_ms = has_figures ? own->second.step_ms : std::nullopt;
      rows.push_back(row);
    }
  }
  return rows;
}

// Those without a rank come last.
double RankOrLast(const TopRow& row) { return row.rank.value_or(1e18); }

void SortRows(const TopChoice& choice, std::vector<TopRow>* rows) {
  const auto is_before = [&](const TopRow& a, const TopRow& b) {
    switch (choice.sort) {
      case TopSort::kHost: return a.host < b.host;
      case TopSort::kState: return a.state < b.state;
      case TopSort::kStep: return a.step.value_or(-1) < b.step.value_or(-1);
      case TopSort::kDeaths: return a.deaths.value_or(0) > b.deaths.value_or(0);
      case TopSort::kRank: break;
    }
    return RankOrLast(a) < RankOrLast(b);
  };
  std::stable_sort(rows->begin(), rows->end(), is_before);
  if (choice.is_reversed) std::reverse(rows->begin(), rows->end());
}

std::vector<TextTable::Cell> CellsOf(const TopRow& row, const Paint& paint) {
  TextTable::Cell state{row.state};
  if (row.state == "running") state.painted = paint.Good(row.state);
  if (row.is_gone || row.state == "dead" || row.state == "silent") {
    state.painted = paint.Bad(row.state);
  }
  std::string remark = row.ended;
  if (row.waits_for) remark = "waits for rank " + WholeText(row.waits_for);
  return {{WholeText(row.rank)}, {row.host},         {WholeText(row.local_rank)}, state,
          {WholeText(row.epoch)}, {WholeText(row.step)}, {row.place.empty() ? "-" : row.place},
          {FigureText(row.step_ms)}, {FigureText(row.loss)}, {WholeText(row.deaths)}, {remark}};
}

// At most so many columns, escapes of colours aside; never a part of a character.
std::string CutTo(size_t width, const std::string& line) {
  std::string cut;
  size_t columns = 0;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == '\x1b') {
      const size_t end = std::min(line.find('m', at), line.size() - 1);
      cut += line.substr(at, end + 1 - at);
      at = end + 1;
      continue;
    }
    size_t next = at + 1;
    while (next < line.size() && !BeginsCharacter(line[next])) ++next;
    if (columns++ < width) cut += line.substr(at, next - at);
    at = next;
  }
  return cut;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string HeadLine(const Json& api, const Paint& paint) {
  const std::string state = OrDash(MemberText(api, "state"));
  std::string line = paint.Heading("job " + OrDash(MemberText(api, "job"))) + "  " +
                     (state == "running" ? paint.Good(state) : paint.Warn(state)) + "  step " +
                     WholeText(MemberNumber(api, "step"));
  const Json& epoch = MemberOf(api, "epoch");
  if (!epoch.empty()) {
    line += "  epoch " + WholeText(MemberNumber(epoch, "number")) + ": " +
            CountIn(epoch, "workers", "worker") + " on " + CountIn(epoch, "hosts", "host");
  }
  const auto now = MemberNumber(api, "now_s"), started = MemberNumber(api, "started_s");
  if (now && started) {
    const int64_t seconds = WholeOf(*now - *started, kSecondsMost);
    line += "  up " + DurationText(std::chrono::seconds(std::max<int64_t>(seconds, 0)));
  }
  return line;
}

std::string FiguresLine(const TopAnswers& answers) {
  const Json& api = answers.newest;
  std::string line = "loss " + FigureText(MemberNumber(api, "loss")) + "  " +
                     FigureText(MemberNumber(api, "samples_per_s")) + " samples/s";
  const auto now = MemberNumber(api, "now_s"), before = MemberNumber(answers.before, "now_s");
  const auto step = MemberNumber(api, "step"), step_before = MemberNumber(answers.before, "step");
  if (now && before && step && step_before && *now > *before) {
    line += "  " + ShortText(std::max(*step - *step_before, 0.0) / (*now - *before)) + " steps/s";
  }
  line += "  goodput here " + FigureText(MemberNumber(MemberOf(api, "time_here"), "goodput")) +
          "  checkpoints " + WholeText(MemberNumber(api, "checkpoints_total")) + "  epochs " +
          WholeText(MemberNumber(api, "epochs_total"));
  if (MemberOf(api, "sees_all") == false) line += "  (only this host's: another one coordinates)";
  return line;
}

// Lines above the table of workers, and lines of it: its heading and one for each worker.
size_t LinesAbove(const TopAnswers& answers) { return answers.trouble.empty() ? 3 : 4; }

size_t TableRoom(const TopAnswers& answers, const TopScreen& screen) {
  // By all else, the footer among it.
  const size_t taken = LinesAbove(answers) + 2 + kEventsLeast;
  return screen.height > taken + 2 ? screen.height - taken : 2;
}

std::string EventLine(const Json& event, const Paint& paint) {
  const auto time = MemberNumber(event, "time_s");
  const std::string kind = OrDash(MemberText(event, "kind"));
  const bool is_bad = kind == "death" || kind == "host-gone";
  return (time ? TimeOfDayText(WholeOf(time, kSecondsMost) * 1'000'000'000) : "-") + " " +
         (is_bad ? paint.Bad(kind) : kind) + "  " + MemberText(event, "text");
}

const std::vector<std::string>& HelpLines() {
  static const std::vector<std::string> lines = {
      "q        quit",
      "space    ask now",
      "s        sort by the next column: rank, host, state, step, deaths",
      "< >      sort by the column before, or behind",
      "r        the other way round",
      "j k      down and up in the workers, as the arrow keys; g: to the first",
      "h ?      this help, and back",
      "",
      "STEP MS is how long a step took since the last look; on the first screen, on",
      "average since the worker began; while none is made, what it was before. It and",
      "LOSS are known of the workers of the host that was asked. DEATHS are those of",
      "a host's workers."};
  return lines;
}

}  // namespace

TopKey PressTopKey(char key, TopChoice* choice) {
  constexpr int kSorts = static_cast<int>(kSortNames.size());
  const int sort = static_cast<int>(choice->sort);
  switch (key) {
    case 'q': case 'Q': return TopKey::kQuit;
    case ' ': case '\n': case '\r': return TopKey::kRefresh;
    case 's': case '>': choice->sort = static_cast<TopSort>((sort + 1) % kSorts); break;
    case '<': choice->sort = static_cast<TopSort>((sort + kSorts - 1) % kSorts); break;
    case 'r': case 'R': choice->is_reversed = !choice->is_reversed; break;
    case 'j': choice->skipped += choice->skipped < choice->skipped_most ? 1 : 0; break;
    case 'k': choice->skipped -= choice->skipped > 0 ? 1 : 0; break;
    case 'g': choice->skipped = 0; break;
    case 'h': case '?': choice->shows_help = !choice->shows_help; break;
    default: return TopKey::kNone;
  }
  return TopKey::kChanged;
}

std::string KeysOf(std::string_view typed) {
  std::string keys;
  while (!typed.empty()) {
    if (typed.starts_with("\x1b[A") || typed.starts_with("\x1bOA")) keys += 'k';
    if (typed.starts_with("\x1b[B") || typed.starts_with("\x1bOB")) keys += 'j';
    if (typed.front() != '\x1b') {
      keys += typed.front();
      typed.remove_prefix(1);
      continue;
    }
    // The end of a sequence is a letter or '~'; of one that begins otherwise, that byte alone.
    size_t end = 1;
    if (typed.size() > 1 && (typed[1] == '[' || typed[1] == 'O')) {
      end = 2;
      while (end < typed.size() && (typed[end] < '@' || typed[end] > '~')) ++end;
      end = std::min(end + 1, typed.size());
    }
    typed.remove_prefix(end);
  }
  return keys;
}

void TakeAnswer(Json answer, TopAnswers* answers) {
  std::map<double, double> shown;
  for (const auto& [index, own] : FiguresOf(*answers)) {
    if (own.step_ms) shown[index] = *own.step_ms;
  }
  answers->step_ms = std::move(shown);
  answers->before = std::exchange(answers->newest, std::move(answer));
}

void KeepInView(const TopAnswers& answers, const TopScreen& screen, TopChoice* choice) {
  const size_t lines = RowsOf(answers).size() + 1;
  const size_t room = screen.height > 0 ? TableRoom(answers, screen) : lines;
  choice->skipped_most = lines > room ? lines - room : 0;
  choice->skipped = std::min(choice->skipped, choice->skipped_most);
}

std::vector<std::string> TopLines(const TopAnswers& answers, const TopChoice& choice,
                                  const TopScreen& screen, const Paint& paint) {
  std::vector<std::string> lines = {HeadLine(answers.newest, paint), FiguresLine(answers)};
  if (!answers.trouble.empty()) lines.push_back(paint.Bad(Printable(answers.trouble)));
  lines.push_back("");
  const bool has_screen = screen.height > 0;
  if (choice.shows_help) {
    lines.insert(lines.end(), HelpLines().begin(), HelpLines().end());
  } else {
    std::vector<TopRow> rows = RowsOf(answers);
    SortRows(choice, &rows);
    TextTable table({">RANK", "HOST", ">LOCAL", "STATE", ">EPOCH", ">STEP", "PLACE", ">STEP MS",
                     ">LOSS", ">DEATHS", "REMARK"});
    for (const TopRow& row : rows) table.Add(CellsOf(row, paint));
    std::vector<std::string> shown = LinesOf(table.Text());
    const size_t room = has_screen ? TableRoom(answers, screen) : shown.size();
    if (shown.size() > room) {
      const size_t skipped = std::min(choice.skipped, shown.size() - room);
      shown.erase(shown.begin() + 1, shown.begin() + 1 + static_cast<ptrdiff_t>(skipped));
      shown.resize(room);
    }
    shown.front() = paint.Heading(shown.front());
    lines.insert(lines.end(), shown.begin(), shown.end());
    lines.push_back("");
    const Json& events = MemberOf(answers.newest, "events");
    const size_t room_left = !has_screen ? kEventsAlone
                             : screen.height > lines.size() + 1 ? screen.height - lines.size() - 1
                                                                : 0;
    const size_t count = std::min(events.size(), room_left);
    for (size_t i = events.size() - count; i < events.size(); ++i) {
      lines.push_back(EventLine(events.is_array() ? events[i] : Json(), paint));
    }
  }
  if (has_screen) {
    lines.resize(std::max<size_t>(screen.height, 1) - 1);
    lines.push_back("q quit  space ask now  s sort (" +
                    std::string(kSortNames[static_cast<size_t>(choice.sort)]) +
                    (choice.is_reversed ? ", reversed" : "") + ")  j k scroll  h help");
    for (std::string& line : lines) line = CutTo(screen.width, line);
  }
  return lines;
}

}  // namespace keel
