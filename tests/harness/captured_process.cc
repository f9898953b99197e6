// A reader thread polls both pipes and the process itself, so that "it has ended" also means "and
// all it wrote is here", even while a grandchild still holds the pipes open.
#include "tests/harness/captured_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "elastic/process/process_table.h"

namespace keel {
namespace {

constexpr Duration kKillLimit = std::chrono::seconds(10);
constexpr size_t kReadBytes = 65536;

// The name of an environment variable that no other process of this machine has.
std::string NewMark() {
  static std::atomic<int> count{0};
  const int64_t now = RealClock().Monotonic().since_start.count();
  return "KEEL_HARNESS_" + std::to_string(getpid()) + "_" + std::to_string(now) + "_" +
         std::to_string(++count);
}

// Nothing when that cannot be told yet.
std::optional<bool> CarriesMark(pid_t pid, const std::string& mark) {
  const auto environment = InitialEnvironment(pid);
  if (!environment) return std::nullopt;
  // A mark is unlike anything else, so it need not be told from a value.
  return environment->find(mark + "=") != std::string::npos;
}

// Ends all who carry the mark, again and again until none is found: one may fork, or be inside
// exec(), while we look.
void KillMarked(const std::string& mark, TimePoint deadline) {
  for (bool found = true; found && RealClock().Monotonic() < deadline;) {
    const Result<std::vector<ProcessInfo>> all = AllProcesses();
    if (!all.ok()) return;
    std::vector<Fd> dying;
    bool all_known = true;
    for (const ProcessInfo& process : *all) {
      const std::optional<bool> carries = CarriesMark(process.pid, mark);
      all_known = all_known && carries.has_value();
      if (process.ended || !carries.value_or(false)) continue;
      Fd handle = OpenProcess(process);
      if (!handle.valid() || !SendSignal(handle, SIGKILL).ok()) continue;
      dying.push_back(std::move(handle));
    }
    found = !dying.empty() || !all_known;
    WaitUntilEnded(dying, deadline);
  }
}

Result<Fd> OpenLog(const std::string& path, const ChildSpec& spec) {
  Fd log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) {
    return Error{Code::kIo, "opening the output file " + path + ": " + std::strerror(errno)};
  }
  std::string command = "---";
  for (const std::string& word : spec.argv) command += " " + word;
  dprintf(log.number(), "%s\n", command.c_str());
  return log;
}

}  // namespace

Result<std::unique_ptr<CapturedProcess>> CapturedProcess::Start(ChildSpec spec,
                                                                const std::string& log_path,
                                                                OnLine on_line) {
  const std::string mark = NewMark();
  spec.environment.emplace(mark, "1");
  KEEL_TRY_ASSIGN(PipeEnds out, MakePipe());
  KEEL_TRY_ASSIGN(PipeEnds err, MakePipe());
  KEEL_TRY_ASSIGN(PipeEnds stop, MakePipe());
  KEEL_TRY_ASSIGN(Fd log, OpenLog(log_path, spec));
  spec.out = Stream::Borrowed(out.write);
  spec.err = Stream::Borrowed(err.write);
  KEEL_TRY_ASSIGN(Child child, Spawn(spec));
  std::unique_ptr<CapturedProcess> process(new CapturedProcess(
      std::move(child), mark, std::move(stop), std::move(log), std::move(on_line)));
  process->sources_[0] = {std::move(out.read), false, ""};
  process->sources_[1] = {std::move(err.read), true, ""};
  process->reader_ = std::thread([raw = process.get()] { raw->ReadAll(); });
  return process;
}

CapturedProcess::CapturedProcess(Child child, std::string mark, PipeEnds stop, Fd log,
                                 OnLine on_line)
    : child_(std::move(child)),
      mark_(std::move(mark)),
      stop_(std::move(stop)),
      log_(std::move(log)),
      on_line_(std::move(on_line)) {}

CapturedProcess::~CapturedProcess() {
  const TimePoint deadline = RealClock().Monotonic() + kKillLimit;
  (void)child_.SignalGroup(SIGKILL);
  KillMarked(mark_, deadline);
  (void)AwaitEnd(deadline);
  stop_.write.Close();
  if (reader_.joinable()) reader_.join();
}

void CapturedProcess::ReadAll() {
  bool ended = false;
  while (!ended || AnythingToRead()) {
    // poll() passes over a negative number: what is closed or seen already.
    std::array<pollfd, 4> waited = {{{sources_[0].pipe.number(), POLLIN, 0},
                                     {sources_[1].pipe.number(), POLLIN, 0},
                                     {ended ? -1 : child_.pidfd().number(), POLLIN, 0},
                                     {stop_.read.number(), POLLIN, 0}}};
    if (poll(waited.data(), waited.size(), -1) < 0) continue;
    if (waited[3].revents != 0) return;
    if (waited[2].revents != 0) {
      ended = true;
      NoteEnd();
      continue;
    }
    if (waited[0].revents != 0) ReadSome(sources_[0], kReadBytes);
    if (waited[1].revents != 0) ReadSome(sources_[1], kReadBytes);
  }
}

bool CapturedProcess::AnythingToRead() const {
  return sources_[0].pipe.valid() || sources_[1].pipe.valid();
}

// One read() of what poll() or FIONREAD promised, so it never blocks. Gives the number of bytes.
size_t CapturedProcess::ReadSome(Source& source, size_t bytes_max) {
  std::string part(bytes_max, '\0');
  const ssize_t count = read(source.pipe.number(), part.data(), part.size());
  if (count < 0 && errno == EINTR) return 0;
  if (count <= 0) {
    if (!source.partial.empty()) TakeLine(source, std::exchange(source.partial, ""));
    source.pipe.Close();
    return 0;
  }
  source.partial.append(part.data(), static_cast<size_t>(count));
  size_t start = 0;
  for (size_t end; (end = source.partial.find('\n', start)) != std::string::npos; start = end + 1) {
    TakeLine(source, source.partial.substr(start, end - start));
  }
  source.partial.erase(0, start);
  return static_cast<size_t>(count);
}

// What is in the pipe now; an ended process wrote no more than that.
void CapturedProcess::Drain(Source& source) {
  int bytes = 0;
  if (!source.pipe.valid() || ioctl(source.pipe.number(), FIONREAD, &bytes) != 0) return;
  for (size_t left = static_cast<size_t>(bytes); left > 0 && source.pipe.valid();) {
    left -= ReadSome(source, left);
  }
  if (!source.partial.empty()) TakeLine(source, std::exchange(source.partial, ""));
}

void CapturedProcess::TakeLine(Source& source, std::string text) {
  dprintf(log_.number(), "%s %s\n", source.is_stderr ? "err|" : "out|", text.c_str());
  {
    std::lock_guard lock(mutex_);
    lines_.push_back({source.is_stderr, text});
  }
  changed_.notify_all();
  on_line_(text);
}

void CapturedProcess::NoteEnd() {
  Drain(sources_[0]);
  Drain(sources_[1]);
  const auto status = child_.TryWait();
  dprintf(log_.number(), "--- %s\n",
          status.ok() && *status ? (*status)->Text().c_str() : "ended, nobody knows how");
  {
    std::lock_guard lock(mutex_);
    drained_ = true;
  }
  changed_.notify_all();
}

// False when the deadline has passed.
bool CapturedProcess::AwaitChange(std::unique_lock<std::mutex>& lock, TimePoint deadline) {
  const Duration left = deadline - RealClock().Monotonic();
  if (left <= Duration(0)) return false;
  changed_.wait_for(lock, left);
  return true;
}

Result<std::string> CapturedProcess::AwaitLine(const Pattern& pattern, int occurrence,
                                               TimePoint deadline) {
  std::unique_lock lock(mutex_);
  for (size_t looked_at = 0;;) {
    for (; looked_at < lines_.size(); ++looked_at) {
      const std::string& line = lines_[looked_at].text;
      if (pattern.Matches(line) && --occurrence == 0) return line;
    }
    const bool ended = drained_;
    if (ended || !AwaitChange(lock, deadline)) {
      return Error{ended ? Code::kCancelled : Code::kTimeout,
                   std::string(ended ? "it ended" : "the limit passed") + " before it printed " +
                       pattern.Text()};
    }
  }
}

Result<ExitStatus> CapturedProcess::AwaitEnd(TimePoint deadline) {
  {
    std::unique_lock lock(mutex_);
    while (!drained_) {
      if (!AwaitChange(lock, deadline)) return Error{Code::kTimeout, "it did not end in time"};
    }
  }
  return child_.Wait(deadline);
}

std::vector<OutputLine> CapturedProcess::Lines() const {
  std::lock_guard lock(mutex_);
  return lines_;
}

std::string CapturedProcess::State() const {
  const auto status = child_.TryWait();
  const std::string pid = "pid " + std::to_string(child_.pid()) + ", ";
  if (!status.ok()) return pid + status.error().message;
  return pid + (*status ? (*status)->Text() : "running");
}

}  // namespace keel
