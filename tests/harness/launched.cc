// CapturedProcess, in the words of these tests.
#include "tests/harness/launched.h"

#include <csignal>

#include "base/environment.h"
#include "base/text.h"
#include "elastic/process/process_table.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

std::vector<std::string> KeelrunWith(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), KEEL_BIN_DIR "/keelrun");
  return arguments;
}

TimePoint HangLimit() { return RealClock().Monotonic() + std::chrono::seconds(120); }

struct Marked {
  std::vector<ProcessInfo> processes;
  bool all_known = true;   // nobody was between two programs, where that cannot be told
};

Marked FindMarked(const std::string& mark) {
  const auto all = AllProcesses();
  EXPECT_OK(all);
  Marked marked;
  if (!all.ok()) return marked;
  for (const ProcessInfo& process : *all) {
    if (process.ended) continue;
    const auto environment = InitialEnvironment(process.pid);
    marked.all_known &= environment.has_value();
    if (environment.value_or("").find(mark) != std::string::npos) {
      marked.processes.push_back(process);
    }
  }
  return marked;
}

}  // namespace

Launched::Launched(const TempDir& folder, const std::string& name,
                   std::vector<std::string> arguments, const Environment& environment)
    : Launched(folder, name, Command{KeelrunWith(std::move(arguments))}, environment) {}

Launched::Launched(const TempDir& folder, const std::string& name, Command command,
                   const Environment& environment) {
  ChildSpec spec;
  spec.argv = std::move(command.argv);
  spec.environment = With(OwnEnvironment(), environment);
  auto process = CapturedProcess::Start(std::move(spec), folder.File(name + ".log"),
                                        [](const std::string&) {});
  EXPECT_OK(process);
  if (process.ok()) process_ = *std::move(process);
}

std::string Launched::Await(const std::string& expression, int occurrence) {
  const auto line = process_->AwaitLine(Pattern::Regex(expression), occurrence, HangLimit());
  if (line.ok()) return *line;
  ADD_FAILURE() << "no line /" << expression << "/: " << line.error().message << "\n" << Output();
  return "";
}

int Launched::ExitCode() {
  const auto status = process_->AwaitEnd(HangLimit());
  if (status.ok() && status->kind == ExitStatus::Kind::kExited) return status->number;
  ADD_FAILURE() << (status.ok() ? status->Text() : status.error().message) << "\n" << Output();
  return -1;
}

void Launched::Signal(int signal) { EXPECT_OK(process_->Signal(signal)); }

void Launched::Kill() {
  Signal(SIGKILL);
  EXPECT_OK(process_->AwaitEnd(HangLimit()));
}

pid_t Launched::pid() const { return process_->pid(); }

std::string Launched::Output() const {
  std::string output;
  for (const OutputLine& line : process_->Lines()) output += line.text + "\n";
  return output;
}

int Launched::Count(const std::string& expression) const {
  const Pattern pattern = Pattern::Regex(expression);
  int count = 0;
  for (const OutputLine& line : process_->Lines()) count += pattern.Matches(line.text) ? 1 : 0;
  return count;
}

void SignalPidIn(const std::string& line, int signal) {
  const int64_t pid = NumberAfter(line, "pid");
  ASSERT_GT(pid, 1) << "no pid in '" << line << "'";
  // One that has ended by itself is no failure here: the test sees what comes of it.
  kill(static_cast<pid_t>(pid), signal);
}

int CountMarked(const std::string& mark) {
  return static_cast<int>(FindMarked(mark).processes.size());
}

// Again and again, for one may have started another while we looked.
bool AwaitNoneMarked(const std::string& mark) {
  const TimePoint limit = HangLimit();
  while (RealClock().Monotonic() < limit) {
    const Marked marked = FindMarked(mark);
    if (marked.processes.empty() && marked.all_known) return true;
    std::vector<Fd> running;
    for (const ProcessInfo& process : marked.processes) {
      Fd handle = OpenProcess(process);
      if (handle.valid()) running.push_back(std::move(handle));
    }
    if (!WaitUntilEnded(running, limit)) return false;
  }
  return false;
}

int64_t NumberAfter(const std::string& line, const std::string& word) {
  const size_t at = line.find(word + " ");
  if (at == std::string::npos) return -1;
  const size_t begin = at + word.size() + 1;
  const size_t end = line.find_first_not_of("0123456789", begin);
  const Result<int64_t> number = ParseInteger(line.substr(begin, end - begin));
  return number.ok() ? *number : -1;
}

}  // namespace keel
