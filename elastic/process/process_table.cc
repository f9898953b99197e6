// Reads /proc, and uses pidfds by plain system calls (glibc has wrappers only since 2.36).
#include "elastic/process/process_table.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>

#include "elastic/process/proc_file.h"

namespace keel {
namespace {

// PF_EXITING and PF_KTHREAD of the kernel's include/linux/sched.h.
constexpr uint64_t kExitingFlag = 0x4;
constexpr uint64_t kKernelFlag = 0x200000;

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

std::optional<std::string> ReadProc(pid_t pid, const char* file) {
  return ReadProcFile("/proc/" + std::to_string(pid) + "/" + file);
}

// The fields of /proc/PID/stat from the third on, numbered as in proc(5).
class StatFields {
 public:
  explicit StatFields(const std::string& text) {
    // The second field, the name, is in parentheses and may itself contain any character.
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return;
    std::istringstream words(text.substr(name_end + 1));
    for (std::string word; words >> word;) words_.push_back(word);
  }

  bool whole() const { return words_.size() > kLast - kFirst; }
  char Letter(size_t number) const { return words_[number - kFirst][0]; }
  uint64_t Number(size_t number) const {
    return std::strtoull(words_[number - kFirst].c_str(), nullptr, 10);
  }

 private:
  static constexpr size_t kFirst = 3;
  static constexpr size_t kLast = 51;

  std::vector<std::string> words_;
};

std::optional<StatFields> ReadStat(pid_t pid) {
  const std::optional<std::string> text = ReadProc(pid, "stat");
  if (!text) return std::nullopt;
  StatFields fields(*text);
  return fields.whole() ? std::optional(fields) : std::nullopt;
}

ProcessInfo InfoOf(pid_t pid, const StatFields& fields) {
  ProcessInfo info;
  const char state = fields.Letter(3);
  const uint64_t flags = fields.Number(9);
  const uint64_t threads = fields.Number(20);
  info.pid = pid;
  info.parent = static_cast<pid_t>(fields.Number(4));
  info.group = static_cast<pid_t>(fields.Number(5));
  info.started = fields.Number(22);
  // A first thread that ended before the others looks like a zombie, but the process lives.
  info.ended = state == 'X' || (state == 'Z' && threads <= 1);
  info.exiting = (flags & kExitingFlag) != 0 && threads <= 1;
  info.kernel = (flags & kKernelFlag) != 0;
  return info;
}

std::optional<ProcessInfo> ReadProcess(pid_t pid) {
  const auto fields = ReadStat(pid);
  return fields ? std::optional(InfoOf(pid, *fields)) : std::nullopt;
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
  if (at == std::string::npos) return true;   // it has gone meanwhile
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

std::optional<std::string> InitialEnvironment(pid_t pid) {
  std::optional<std::string> text = ReadProc(pid, "environ");
  if (!text.has_value() || !text->empty()) return text.value_or("");
  // It has no environment, or no memory any more, or its new program's memory is not set up yet.
  const auto fields = ReadStat(pid);
  if (!fields) return "";
  const ProcessInfo info = InfoOf(pid, *fields);
  // exec first sets the bounds of the environment equal, then right, and after that the start of
  // the code.
  const bool exec_is_over = fields->Number(26) != 0;
  const bool has_none = exec_is_over && fields->Number(50) == fields->Number(51);
  if (info.ended || info.exiting || info.kernel || has_none) return "";
  return std::nullopt;
}

Fd OpenProcess(const ProcessInfo& process) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd.valid()) return fd;
  // The handle is now bound to a process: the listed one, if that still has the pid.
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
