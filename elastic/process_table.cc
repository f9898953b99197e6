// Reads /proc, and speaks to pidfds through plain system calls (glibc has wrappers only since 2.36).
#include "elastic/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

namespace keel {
namespace {

constexpr unsigned kExitingFlag = 0x4;   // PF_EXITING in the kernel's include/linux/sched.h

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// The whole of a small file of /proc, or nothing when its process is gone.
std::optional<std::string> ReadProc(pid_t pid, const char* file) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t count = read(fd.number(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

std::optional<ProcessInfo> ReadProcess(pid_t pid) {
  const std::optional<std::string> text = ReadProc(pid, "stat");
  if (!text) return std::nullopt;
  // The name stands in parentheses and may itself hold any character, so look for the last one.
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessInfo info;
  char state = 0;
  unsigned flags = 0;
  long threads = 0;
  info.pid = pid;
  const int fields = std::sscanf(text->c_str() + name_end + 1,
                                 " %c %d %d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                                 "%ld %*d %" SCNu64,
                                 &state, &info.parent, &info.group, &flags, &threads, &info.started);
  if (fields != 6) return std::nullopt;
  // A first thread that left before the others looks like a zombie, but the process lives.
  info.ended = state == 'X' || (state == 'Z' && threads <= 1);
  info.exiting = (flags & kExitingFlag) != 0 && threads <= 1;
  return info;
}

}  // namespace

Result<std::vector<ProcessInfo>> AllProcesses() {
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir("/proc"));
  if (!directory) {
    return Error{Code::kForeign, std::string("listing processes in /proc: ") +
                                     std::strerror(errno)};
  }
  std::vector<ProcessInfo> all;
  while (const dirent* entry = readdir(directory.get())) {
    char* end = nullptr;
    const long pid = std::strtol(entry->d_name, &end, 10);
    if (pid <= 0 || *end != '\0') continue;
    if (const auto info = ReadProcess(static_cast<pid_t>(pid))) all.push_back(*info);
  }
  return all;
}

std::vector<ProcessInfo> DescendantsOf(pid_t root, const std::vector<ProcessInfo>& all) {
  std::set<pid_t> family = {root};
  std::vector<ProcessInfo> found;
  for (bool grew = true; grew;) {
    grew = false;
    for (const ProcessInfo& process : all) {
      if (!family.contains(process.parent) || !family.insert(process.pid).second) continue;
      found.push_back(process);
      grew = true;
    }
  }
  return found;
}

bool IsDying(const ProcessInfo& process) {
  if (process.ended || process.exiting) return true;
  // A SIGKILL that was sent to a process stays in this set until the process is gone.
  const std::string status = ReadProc(process.pid, "status").value_or("");
  const std::string label = "\nShdPnd:\t";
  const size_t at = status.find(label);
  if (at == std::string::npos) return true;   // it went away meanwhile
  const uint64_t pending = std::strtoull(status.c_str() + at + label.size(), nullptr, 16);
  return (pending >> (SIGKILL - 1) & 1) != 0;
}

std::string CommandLine(pid_t pid) {
  std::string text = ReadProc(pid, "cmdline").value_or("");
  while (text.ends_with('\0')) text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  if (!text.empty()) return text;
  std::string name = ReadProc(pid, "comm").value_or("");
  if (name.ends_with('\n')) name.pop_back();
  return name.empty() ? "" : "[" + name + "]";
}

std::string InitialEnvironment(pid_t pid) { return ReadProc(pid, "environ").value_or(""); }

Fd OpenProcess(const ProcessInfo& process) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd.valid()) return fd;
  // The handle is now fixed to a process; it is the listed one if that still has the pid.
  const auto now = ReadProcess(process.pid);
  return now && now->started == process.started ? std::move(fd) : Fd();
}

Result<Fd> OpenChild(pid_t pid) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.valid()) return fd;
  return Error{Code::kForeign, "opening a handle of process " + std::to_string(pid) + ": " +
                                   std::strerror(errno)};
}

Status SendSignal(const Fd& process, int signal) {
  if (syscall(SYS_pidfd_send_signal, process.number(), signal, nullptr, 0) == 0) return Ok();
  if (errno == ESRCH) return Ok();
  return Error{Code::kForeign, "sending signal " + std::to_string(signal) + ": " +
                                   std::strerror(errno)};
}

bool WaitUntilEnded(const std::vector<Fd>& processes, TimePoint deadline) {
  return std::all_of(processes.begin(), processes.end(),
                     [&](const Fd& process) { return WaitReadable(process, deadline); });
}

}  // namespace keel
