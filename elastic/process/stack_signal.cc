// The thread that gets the signal becomes the leader: it goes through /proc/self/task, asks each
// thread in turn with the same signal and a number, and waits a moment for each.
#include "elastic/process/stack_signal.h"

#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace keel {
namespace {

constexpr int kFramesMax = 64;
constexpr int kAnswerLimitMs = 200;
constexpr int kSilenceLimitMs = 4000;  // for all threads together

std::atomic<bool> leading{false};
std::atomic<int> asked{0};     // the number of the newest question
std::atomic<int> answered{0};  // the number of the last question that was answered

// A line put together without the heap.
class LineBuffer {
 public:
  LineBuffer& Add(const char* text) {
    while (*text != '\0' && size_ < sizeof bytes_) bytes_[size_++] = *text++;
    return *this;
  }
  LineBuffer& Add(long number) {
    char digits[20];
    size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    while (count > 0 && size_ < sizeof bytes_) bytes_[size_++] = digits[--count];
    return *this;
  }
  const char* Text() {
    bytes_[size_ < sizeof bytes_ ? size_ : size_ - 1] = '\0';
    return bytes_;
  }
  void Write() const {
    // If stderr takes nothing, nobody can be told.
    [[maybe_unused]] const ssize_t wrote = write(STDERR_FILENO, bytes_, size_);
  }

 private:
  char bytes_[256];
  size_t size_ = 0;
};

long OwnThread() { return syscall(SYS_gettid); }

void WriteOwnStack() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  LineBuffer().Add("keel: stack of thread ").Add(OwnThread()).Add(" (").Add(name).Add(")\n")
      .Write();
  void* frames[kFramesMax];
  const int count = backtrace(frames, kFramesMax);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
}

// False if the thread is gone.
bool Ask(long thread, int question) {
  siginfo_t info{};
  info.si_signo = StackSignal();
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = question;
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, StackSignal(), &info) == 0;
}

// Returns how long it took; more than the limit: no answer.
int AwaitAnswer(int question) {
  int waited_ms = 0;
  while (answered.load() != question && waited_ms <= kAnswerLimitMs) {
    poll(nullptr, 0, 1);
    ++waited_ms;
  }
  return waited_ms;
}

// What getdents64() fills in; <dirent.h> has a different one, for readdir().
struct Entry {
  uint64_t inode;
  int64_t next;
  uint16_t bytes;
  uint8_t kind;
  char name[1];
};

long NumberOf(const char* name) {
  long number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return *name == '\0' ? number : 0;
}

// Whether the thread's mask blocks the signal: threads of drivers block all signals.
bool BlocksSignal(long thread) {
  LineBuffer path;
  path.Add("/proc/self/task/").Add(thread).Add("/status");
  const int file = open(path.Text(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[4096];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[size > 0 ? size : 0] = '\0';
  constexpr char kName[] = "\nSigBlk:\t";
  const char* const found = std::strstr(text, kName);
  if (found == nullptr) return false;
  const char* const digits = found + sizeof kName - 1;   // in hex, the highest signal first
  const size_t count = std::strspn(digits, "0123456789abcdef");
  const size_t bit = static_cast<size_t>(StackSignal() - 1);
  if (bit / 4 >= count) return false;
  const char digit = digits[count - 1 - bit / 4];
  const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
  return ((value >> (bit % 4)) & 1) != 0;
}

void AskThread(long thread, int& silence_ms) {
  const int question = ++asked;
  if (BlocksSignal(thread)) {
    return LineBuffer().Add("keel: thread ").Add(thread)
        .Add(" did not answer: it blocks the signal\n").Write();
  }
  if (!Ask(thread, question)) return;
  const int waited_ms = silence_ms < kSilenceLimitMs ? AwaitAnswer(question) : kAnswerLimitMs + 1;
  if (waited_ms <= kAnswerLimitMs) return;
  silence_ms += waited_ms;
  LineBuffer().Add("keel: thread ").Add(thread)
      .Add(" did not answer: it is stuck in the kernel\n").Write();
}

void AskAllThreads() {
  const int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tasks < 0) return;
  alignas(Entry) char buffer[2048];
  int silence_ms = 0;
  for (;;) {
    const long bytes = syscall(SYS_getdents64, tasks, buffer, sizeof buffer);
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {
      uint16_t entry_bytes = 0;
      std::memcpy(&entry_bytes, buffer + at + offsetof(Entry, bytes), sizeof entry_bytes);
      const long thread = NumberOf(buffer + at + offsetof(Entry, name));
      if (thread > 0 && thread != OwnThread()) AskThread(thread, silence_ms);
      at += entry_bytes;
    }
  }
  close(tasks);
}

void OnStackSignal(int, siginfo_t* info, void*) {
  const int saved_errno = errno;
  if (info->si_code == SI_QUEUE && info->si_pid == getpid()) {
    WriteOwnStack();
    answered.store(info->si_value.sival_int);
  } else if (!leading.exchange(true)) {
    LineBuffer().Add("keel: stacks of process ").Add(getpid()).Add(" were asked for\n").Write();
    WriteOwnStack();
    AskAllThreads();
    // Before the last line: its reader may ask again at once, and another thread may then answer.
    leading.store(false);
    LineBuffer().Add("keel: end of the stacks of process ").Add(getpid()).Add("\n").Write();
  }
  errno = saved_errno;
}

}  // namespace

int StackSignal() { return SIGRTMIN + 5; }

bool InstallStackDump() {
  struct sigaction current {};
  sigaction(StackSignal(), nullptr, &current);
  const bool is_free = (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_DFL;
  const bool is_ours = (current.sa_flags & SA_SIGINFO) != 0 &&
                       current.sa_sigaction == OnStackSignal;
  if (!is_free) return is_ours;
  // The first call loads the unwinder, which must not happen in a handler.
  void* frame = nullptr;
  backtrace(&frame, 1);
  struct sigaction dump {};
  dump.sa_sigaction = OnStackSignal;
  dump.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&dump.sa_mask);
  sigdelset(&dump.sa_mask, SIGSEGV);
  sigaction(StackSignal(), &dump, nullptr);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, StackSignal());
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  return true;
}

}  // namespace keel
