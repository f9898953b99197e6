// The processes by rank, the signals that wait for a line, and the words for a wait that failed.
#include "tests/harness/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

namespace keel {
namespace {

constexpr size_t kManyLines = 500;

TimePoint DeadlineOf(Duration limit) { return RealClock().Monotonic() + limit; }

std::string JoinLines(const std::vector<OutputLine>& lines,
                      const std::function<bool(const OutputLine&)>& wanted) {
  std::string text;
  for (const OutputLine& line : lines) {
    if (wanted(line)) text += line.text + "\n";
  }
  return text;
}

}  // namespace

Environment TorchEnvironment(int rank, int world_size, int master_port) {
  return {{"RANK", std::to_string(rank)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world_size)},
          {"LOCAL_WORLD_SIZE", std::to_string(world_size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(master_port)},
          {"OMP_NUM_THREADS", "1"}};
}

Ranks::Ranks(RanksSpec spec, std::string folder)
    : spec_(std::move(spec)),
      folder_(std::move(folder)),
      processes_(static_cast<size_t>(spec_.count)) {}

Result<std::unique_ptr<Ranks>> Ranks::Start(RanksSpec spec, const TempDir& folder) {
  std::unique_ptr<Ranks> ranks(new Ranks(std::move(spec), folder.path()));
  for (int rank = 0; rank < ranks->count(); ++rank) KEEL_TRY(ranks->StartRank(rank, {}));
  return ranks;
}

Ranks::~Ranks() {
  std::vector<std::unique_ptr<CapturedProcess>> ending;
  {
    std::lock_guard lock(mutex_);
    triggers_.clear();
  }
  // All at once first: a survivor that sees the others die may do much in its last moments.
  for (const auto& process : processes_) {
    if (process) (void)process->Signal(SIGKILL);
  }
  {
    std::lock_guard lock(mutex_);
    ending.swap(processes_);
  }
}

Status Ranks::StartRank(int rank, const Environment& changes) {
  ChildSpec child;
  child.argv = spec_.argv;
  child.environment = With(With(OwnEnvironment(), spec_.environment(rank)), changes);
  child.working_dir = spec_.working_dir;
  // Held while the process starts, so that a line it prints at once finds it in its place.
  std::lock_guard lock(mutex_);
  auto process = CapturedProcess::Start(
      child, LogPath(rank), [this, rank](const std::string& line) { OnLine(rank, line); });
  if (!process.ok()) return process.error().Doing("rank " + std::to_string(rank));
  processes_[static_cast<size_t>(rank)] = std::move(process).value();
  return Ok();
}

CapturedProcess& Ranks::Process(int rank) const {
  KEEL_CHECK(rank >= 0 && rank < count(), "rank=" << rank << " count=" << count());
  const auto& process = processes_[static_cast<size_t>(rank)];
  KEEL_CHECK(process != nullptr, "rank " << rank << " could not be started again");
  return *process;
}

Result<std::string> Ranks::AwaitLine(int rank, const Pattern& pattern, Duration limit,
                                     int occurrence) {
  auto line = Process(rank).AwaitLine(pattern, occurrence, DeadlineOf(limit));
  if (!line.ok()) return Explain(line.error(), "to print " + pattern.Text(), limit, rank);
  return line;
}

Result<std::vector<std::string>> Ranks::AwaitAll(const Pattern& pattern, Duration limit) {
  const TimePoint deadline = DeadlineOf(limit);
  std::vector<std::string> lines;
  for (int rank = 0; rank < count(); ++rank) {
    auto line = Process(rank).AwaitLine(pattern, 1, deadline);
    if (!line.ok()) return Explain(line.error(), "to print " + pattern.Text(), limit, rank);
    lines.push_back(*std::move(line));
  }
  return lines;
}

Status Ranks::Signal(int rank, int signal) { return Process(rank).Signal(signal); }

void Ranks::SignalAfterLine(int watched, const Pattern& pattern, int victim, int signal) {
  const Trigger trigger{watched, pattern, victim, signal};
  std::lock_guard lock(mutex_);
  const std::vector<OutputLine> lines = Process(watched).Lines();
  const bool printed = std::any_of(lines.begin(), lines.end(), [&](const OutputLine& line) {
    return pattern.Matches(line.text);
  });
  if (printed) {
    Fire(trigger);
  } else {
    triggers_.push_back(trigger);
  }
}

void Ranks::OnLine(int rank, const std::string& line) {
  std::lock_guard lock(mutex_);
  const auto due = std::stable_partition(
      triggers_.begin(), triggers_.end(), [&](const Trigger& trigger) {
        return trigger.watched != rank || !trigger.pattern.Matches(line);
      });
  std::for_each(due, triggers_.end(), [&](const Trigger& trigger) { Fire(trigger); });
  triggers_.erase(due, triggers_.end());
}

// With mutex_ held. The victim may be between two starts; then there is nobody to signal.
void Ranks::Fire(const Trigger& trigger) {
  const auto& victim = processes_.at(static_cast<size_t>(trigger.victim));
  if (victim) (void)victim->Signal(trigger.signal);
}

Result<ExitStatus> Ranks::Wait(int rank, Duration limit) {
  auto status = Process(rank).AwaitEnd(DeadlineOf(limit));
  if (!status.ok()) return Explain(status.error(), "to end", limit, rank);
  return status;
}

Result<std::vector<ExitStatus>> Ranks::WaitAll(Duration limit) {
  const TimePoint deadline = DeadlineOf(limit);
  std::vector<ExitStatus> statuses;
  for (int rank = 0; rank < count(); ++rank) {
    const auto status = Process(rank).AwaitEnd(deadline);
    if (!status.ok()) return Explain(status.error(), "to end", limit, rank);
    statuses.push_back(*status);
  }
  return statuses;
}

Status Ranks::Restart(int rank, const Environment& changes) {
  (void)Process(rank);
  std::unique_ptr<CapturedProcess> old;
  {
    std::lock_guard lock(mutex_);
    old.swap(processes_[static_cast<size_t>(rank)]);
  }
  old.reset();
  return StartRank(rank, changes);
}

std::string Ranks::Output(int rank) const {
  return JoinLines(Process(rank).Lines(), [](const OutputLine&) { return true; });
}

std::string Ranks::Stdout(int rank) const {
  return JoinLines(Process(rank).Lines(), [](const OutputLine& line) { return !line.is_stderr; });
}

std::string Ranks::Stderr(int rank) const {
  return JoinLines(Process(rank).Lines(), [](const OutputLine& line) { return line.is_stderr; });
}

std::string Ranks::LogPath(int rank) const {
  return folder_ + "/" + spec_.log_prefix + std::to_string(rank) + ".log";
}

std::string Ranks::Tail(int rank, size_t lines_max) const {
  const auto& process = processes_[static_cast<size_t>(rank)];
  if (!process) return "rank " + std::to_string(rank) + " (not running)\n";
  const std::vector<OutputLine> lines = process->Lines();
  const size_t first = lines.size() - std::min(lines.size(), lines_max);
  std::string text = "rank " + std::to_string(rank) + " (" + process->State() + "), " +
                     std::to_string(lines.size()) + " lines";
  if (first > 0) text += ", all in " + LogPath(rank) + ", the last";
  text += ":\n";
  for (size_t index = first; index < lines.size(); ++index) {
    text += std::string(lines[index].is_stderr ? "  err| " : "  out| ") + lines[index].text + "\n";
  }
  return text;
}

std::string Ranks::Report(size_t lines_max) const {
  std::string text;
  for (int rank = 0; rank < count(); ++rank) text += Tail(rank, lines_max);
  return text;
}

Error Ranks::Explain(const Error& error, const std::string& waiting, Duration limit,
                     int rank) const {
  std::string text = "waited up to " + DurationText(limit) + " for rank " + std::to_string(rank) +
                     " " + waiting + ": " + error.message + "\n" + Tail(rank, kManyLines);
  for (int other = 0; other < count(); ++other) {
    if (other != rank) text += Tail(other, 10);
  }
  return {error.code, text};
}

}  // namespace keel
