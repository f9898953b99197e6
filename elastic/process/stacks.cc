// Reads /proc/PID/task/TID/{comm,stat,syscall,wchan,stack} and puts it into words.
#include "elastic/process/stacks.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>

#include "base/text.h"
#include "elastic/process/proc_file.h"
#include "elastic/process/process_table.h"

namespace keel {
namespace {

struct SyscallInfo {
  long number;
  const char* name;
  bool takes_descriptor;
};

// The calls in which programs wait. A few exist on some processors only.
constexpr SyscallInfo kSyscalls[] = {
    {SYS_read, "read", true},
    {SYS_write, "write", true},
    {SYS_pread64, "pread64", true},
    {SYS_pwrite64, "pwrite64", true},
    {SYS_readv, "readv", true},
    {SYS_writev, "writev", true},
    {SYS_recvfrom, "recvfrom", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_sendto, "sendto", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_connect, "connect", true},
    {SYS_accept, "accept", true},
    {SYS_accept4, "accept4", true},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_ioctl, "ioctl", true},
    {SYS_flock, "flock", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_close, "close", true},
    {SYS_epoll_pwait, "epoll_pwait", true},
    {SYS_futex, "futex", false},
    {SYS_ppoll, "ppoll", false},
    {SYS_pselect6, "pselect6", false},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "clock_nanosleep", false},
    {SYS_wait4, "wait4", false},
    {SYS_waitid, "waitid", false},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", false},
    {SYS_rt_sigsuspend, "rt_sigsuspend", false},
    {SYS_openat, "openat", false},
    {SYS_munmap, "munmap", false},
    {SYS_mmap, "mmap", false},
    {SYS_exit_group, "exit_group", false},
    {SYS_restart_syscall, "restart_syscall", false},
#ifdef SYS_poll
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_pause, "pause", false},
    {SYS_open, "open", false},
    {SYS_epoll_wait, "epoll_wait", true},
#endif
};

const SyscallInfo* FindSyscall(long number) {
  const auto found = std::find_if(std::begin(kSyscalls), std::end(kSyscalls),
                                  [number](const SyscallInfo& info) {
                                    return info.number == number;
                                  });
  return found == std::end(kSyscalls) ? nullptr : &*found;
}

// What a descriptor of another process leads to; "" if that cannot be seen.
std::string DescriptorTarget(pid_t pid, unsigned long number) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
  std::array<char, 512> target;
  const ssize_t size = readlink(path.c_str(), target.data(), target.size());
  return size <= 0 ? "" : std::string(target.data(), static_cast<size_t>(size));
}

// `text`: "running", or the call's number and its arguments in hex.
std::string CallText(pid_t pid, const std::string& text) {
  std::istringstream words(text);
  std::string number_word, first_word;
  words >> number_word >> first_word;
  char* end = nullptr;
  const long number = std::strtol(number_word.c_str(), &end, 10);
  if (number_word.empty() || *end != '\0' || number < 0) return "";
  std::string call = SyscallName(number);
  if (!TakesDescriptor(number)) return call;
  const unsigned long descriptor = std::strtoul(first_word.c_str(), nullptr, 16);
  const std::string target = DescriptorTarget(pid, descriptor);
  return call + "(" + std::to_string(descriptor) + (target.empty() ? "" : " = " + target) + ")";
}

char StateOf(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

std::vector<std::string> KernelStack(const std::string& text) {
  std::vector<std::string> frames;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // "[<0>] futex_wait_queue+0x60/0x90"
    const size_t blank = line.find(' ');
    frames.push_back(blank == std::string::npos ? line : line.substr(blank + 1));
  }
  return frames;
}

std::optional<ThreadState> ReadThread(pid_t pid, pid_t thread) {
  const std::string folder =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/";
  const std::optional<std::string> stat = ReadProcFile(folder + "stat");
  if (!stat) return std::nullopt;
  ThreadState state;
  state.thread = thread;
  state.state = StateOf(*stat);
  state.name = Trim(ReadProcFile(folder + "comm").value_or(""));
  state.call = CallText(pid, ReadProcFile(folder + "syscall").value_or(""));
  state.wait_channel = ReadProcFile(folder + "wchan").value_or("");
  if (state.wait_channel == "0") state.wait_channel.clear();
  state.kernel_stack = KernelStack(ReadProcFile(folder + "stack").value_or(""));
  return state;
}

std::string StateWords(char state) {
  switch (state) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "stuck in the kernel (uninterruptible)";
    case 'T': return "stopped by a signal";
    case 't': return "stopped by a debugger";
    case 'Z': return "ended, not yet reaped";
    case 'X': return "ended";
    case 'I': return "idle";
    default: return std::string("in state ") + state;
  }
}

}  // namespace

std::string SyscallName(long number) {
  const SyscallInfo* const info = FindSyscall(number);
  return info != nullptr ? info->name : "system call " + std::to_string(number);
}

bool TakesDescriptor(long number) {
  const SyscallInfo* const info = FindSyscall(number);
  return info != nullptr && info->takes_descriptor;
}

Result<ProcessStacks> ReadStacks(pid_t pid) {
  ProcessStacks stacks{pid, CommandLine(pid), {}};
  for (const pid_t thread : ThreadsOf(pid)) {
    if (auto state = ReadThread(pid, thread)) stacks.threads.push_back(*std::move(state));
  }
  if (!stacks.threads.empty()) return stacks;
  return Error{Code::kNotFound, "there is no process " + std::to_string(pid) + " (any more)"};
}

std::string StacksText(const ProcessStacks& stacks) {
  std::string text = "process " + std::to_string(stacks.pid) + " (" + stacks.command + "), " +
                     std::to_string(stacks.threads.size()) +
                     (stacks.threads.size() == 1 ? " thread:\n" : " threads:\n");
  for (const ThreadState& thread : stacks.threads) {
    text += "  " + std::to_string(thread.thread) + " " + thread.name + ": " +
            StateWords(thread.state);
    if (!thread.call.empty()) text += " in " + thread.call;
    if (!thread.wait_channel.empty()) text += ", kernel: " + thread.wait_channel;
    text += "\n";
    for (const std::string& frame : thread.kernel_stack) text += "      " + frame + "\n";
  }
  return text;
}

bool CatchesSignal(pid_t pid, int signal) {
  const std::string status =
      ReadProcFile("/proc/" + std::to_string(pid) + "/status").value_or("");
  const std::string label = "\nSigCgt:";
  const size_t at = status.find(label);
  if (at == std::string::npos || signal < 1 || signal > 64) return false;
  const unsigned long long mask = std::strtoull(status.c_str() + at + label.size(), nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

}  // namespace keel
