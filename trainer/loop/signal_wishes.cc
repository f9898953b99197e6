// A signal comes to a handler, in a thread that does not block it, or waits until one of ours reads
// it from a signalfd. Handlers wake that thread through an eventfd.
#include "trainer/loop/signal_wishes.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "elastic/process/exit_status.h"
#include "elastic/process/interrupts.h"
#include "elastic/process/proc_file.h"
#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr std::initializer_list<int> kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

// How long the first thread's signals may be blocked by nobody's wish.
constexpr Duration kMoment = std::chrono::milliseconds(200);

// What a handler writes. It is never freed, nor is the eventfd closed: a handler may have begun in
// another thread as the wishes end.
struct Noted {
  std::atomic<int> eventfd{-1};
  std::atomic<int> first{0};        // the signal that asked to stop
  std::atomic<int> interrupts{0};
  std::atomic<bool> save{false};
};
Noted noted;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler writes them");

// What was there before.
struct Before {
  struct sigaction actions[kSignals.size()];
  sigset_t mask;   // of the thread that opened
};
Before before;
std::atomic<bool> is_taken{false};
std::atomic<bool> is_installed{false};   // `before` can be read

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

void Wake() {
  const uint64_t one = 1;
  // It fails only where the counter is full, and then the reader wakes anyway.
  (void)!write(noted.eventfd, &one, sizeof one);
}

// Async-signal-safe.
void Note(int signal) {
  int none = 0;
  if (signal == SIGUSR2) {
    noted.save = true;
  } else {
    noted.first.compare_exchange_strong(none, signal);
  }
  if (signal == SIGINT) ++noted.interrupts;
  Wake();
}

void OnSignal(int signal) {
  const int error = errno;
  Note(signal);
  errno = error;
}

void Install() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_mask = Signals();
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    (void)sigaction(kSignals.begin()[i], &action, &before.actions[i]);
  }
  is_installed = true;
}

// Async-signal-safe.
void PutBack(size_t which) {
  struct sigaction now {};
  if (sigaction(kSignals.begin()[which], nullptr, &now) != 0 || now.sa_handler != OnSignal) return;
  (void)sigaction(kSignals.begin()[which], &before.actions[which], nullptr);
}

void PutAllBack() {
  for (size_t i = 0; i < kSignals.size(); ++i) PutBack(i);
}

void UnblockWhereItWasOpen(std::initializer_list<int> signals) {
  sigset_t open;
  sigemptyset(&open);
  for (const int signal : signals) {
    if (sigismember(&before.mask, signal) == 0) sigaddset(&open, signal);
  }
  pthread_sigmask(SIG_UNBLOCK, &open, nullptr);
}

// An interrupt that comes to a child before it has forgotten our handlers waits until it has.
thread_local sigset_t mask_before_fork;
thread_local bool is_forking = false;

void BlockForFork() {
  if (!is_installed) return;
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGINT);
  pthread_sigmask(SIG_BLOCK, &own, &mask_before_fork);
  is_forking = true;
}

void RestoreAfterFork() {
  if (!is_forking) return;
  is_forking = false;
  pthread_sigmask(SIG_SETMASK, &mask_before_fork, nullptr);
}

// The child of a fork() has no thread that reads, and would hear no signal.
void ForgetInChild() {
  const bool was_installed = is_installed.exchange(false);
  if (was_installed) PutAllBack();
  RestoreAfterFork();
  if (was_installed) UnblockWhereItWasOpen(kSignals);
  is_taken = false;
}

// Takes what was sent to the process and no thread has come to yet.
void NotePending() {
  const sigset_t set = Signals();
  const timespec at_once{};
  for (int signal = 0; (signal = sigtimedwait(&set, nullptr, &at_once)) > 0;) Note(signal);
}

// Whether the process's first thread takes interrupts; false where nobody can tell.
bool FirstThreadIsOpen() {
  const std::optional<std::string> status =
      ReadProcFile("/proc/self/task/" + std::to_string(getpid()) + "/status");
  constexpr std::string_view kBlocked = "SigBlk:";
  const size_t at = status ? status->find(kBlocked) : std::string::npos;
  if (at == std::string::npos) return false;
  const uint64_t blocked = std::strtoull(status->c_str() + at + kBlocked.size(), nullptr, 16);
  return ((blocked >> (SIGINT - 1)) & 1) == 0;
}

// Does what an interrupt did before Open(), and ends the program where that was to ignore it: in
// the process's first thread, where Python looks for it and whose calls it ends, or, where that one
// blocks it, in this one.
void Interrupt() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals.begin()[i] == SIGINT) PutBack(i);
  }
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
    (void)signal(SIGINT, SIG_DFL);
  }
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGINT);
  // Sent to the process, it could come here all the same. The C library blocks all signals for
  // moments, as while it makes a thread.
  const TimePoint end = RealClock().Monotonic() + kMoment;
  bool is_open = FirstThreadIsOpen();
  while (!is_open && RealClock().Monotonic() < end) {
    RealClock().SleepFor(kMoment / 100);
    is_open = FirstThreadIsOpen();
  }
  if (is_open && syscall(SYS_tgkill, getpid(), getpid(), SIGINT) == 0) return;
  (void)raise(SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);   // it comes here
  pthread_sigmask(SIG_BLOCK, &own, nullptr);
}

Error Failed(const char* doing) {
  return {Code::kForeign, std::string(doing) + ": " + std::strerror(errno)};
}

// The signalfd of one life; the eventfd is made once.
Result<Fd> OpenDescriptors() {
  const sigset_t set = Signals();
  Fd signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return Failed("making a signalfd");
  if (noted.eventfd >= 0) return signals;
  noted.eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (noted.eventfd < 0) return Failed("making an eventfd");
  (void)pthread_atfork(BlockForFork, RestoreAfterFork, ForgetInChild);
  return signals;
}

}  // namespace

Result<std::unique_ptr<SignalWishes>> SignalWishes::Open() {
  if (is_taken.exchange(true)) {
    return Error{Code::kInvalid, "another training in this process has its signals"};
  }
  Result<Fd> signals = OpenDescriptors();
  if (!signals.ok()) {
    is_taken = false;
    return signals.error();
  }
  noted.first = 0;
  noted.interrupts = 0;
  noted.save = false;
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, &before.mask);
  Install();
  UnblockWhereItWasOpen({SIGINT});   // a second one must end what this thread is about
  return std::unique_ptr<SignalWishes>(new SignalWishes(*std::move(signals)));
}

SignalWishes::SignalWishes(Fd signals)
    : signals_(std::move(signals)),
      thread_(StartQuietThread("keel-signals", [this] { Run(); })) {}

SignalWishes::~SignalWishes() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  NotePending();
  PutAllBack();
  ending_ = true;
  Wake();
  thread_.join();
  UnblockWhereItWasOpen(kSignals);
  is_installed = false;
  is_taken = false;
}

std::string SignalWishes::reason() const {
  const int first = noted.first;
  return first == 0 ? "" : SignalName(first);
}

bool SignalWishes::TakeSave() { return noted.save.exchange(false); }

void SignalWishes::Run() {
  Interrupts interrupts;
  for (;;) {
    const bool is_last = ending_;   // what was noted before the end is acted on
    for (int left = noted.interrupts.exchange(0); left > 0; --left) {
      if (interrupts.IsSecond(RealClock().Monotonic())) Interrupt();
    }
    if (noted.first != 0 && !stop_.cancelled()) {
      LogInfo("stop-wanted", {{"signal", reason()}, {"pid", getpid()}});
      stop_.Cancel();
    }
    if (is_last) return;
    pollfd wanted[] = {{signals_.number(), POLLIN, 0}, {noted.eventfd, POLLIN, 0}};
    (void)poll(wanted, std::size(wanted), -1);   // what interrupts it does no harm
    uint64_t count = 0;
    (void)!read(noted.eventfd, &count, sizeof count);
    signalfd_siginfo info{};
    while (read(signals_.number(), &info, sizeof info) == sizeof info) {
      Note(static_cast<int>(info.ssi_signo));
    }
  }
}

}  // namespace keel
