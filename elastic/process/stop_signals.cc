// A signalfd, and the thread that reads it.
#include "elastic/process/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "elastic/process/exit_status.h"
#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr Duration kAgain = std::chrono::seconds(2);

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

Error Failed(const char* doing) {
  return {Code::kForeign, std::string(doing) + ": " + std::strerror(errno)};
}

// Ends the program as if nobody had ever waited for the signal.
void EndBy(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, signal);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  (void)raise(signal);
}

}  // namespace

bool Interrupts::IsSecond(TimePoint now) {
  const auto before = std::exchange(last_, now);
  return before && now - *before <= kAgain;
}

Result<std::unique_ptr<StopSignals>> StopSignals::Open() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Fd signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return Failed("making a signalfd");
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Failed("making an eventfd");
  return std::unique_ptr<StopSignals>(new StopSignals(std::move(signals), std::move(wake)));
}

StopSignals::StopSignals(Fd signals, Fd wake)
    : signals_(std::move(signals)), wake_(std::move(wake)),
      thread_(StartQuietThread("keel-signals", [this] { Run(); })) {}

StopSignals::~StopSignals() {
  const uint64_t one = 1;
  // This cannot fail: the counter is at zero.
  (void)!write(wake_.number(), &one, sizeof one);
  thread_.join();
  const sigset_t set = Signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::string StopSignals::reason() const {
  const int first = first_;
  return first == 0 ? "" : SignalName(first);
}

void StopSignals::Run() {
  Interrupts interrupts;
  for (;;) {
    pollfd wanted[] = {{signals_.number(), POLLIN, 0}, {wake_.number(), POLLIN, 0}};
    if (poll(wanted, 2, -1) < 0) continue;   // EINTR: wait again
    if (wanted[0].revents == 0) {   // signals are taken before the end, or they would kill us
      if (wanted[1].revents != 0) return;
      continue;
    }
    signalfd_siginfo info{};
    if (read(signals_.number(), &info, sizeof info) != sizeof info) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGINT && interrupts.IsSecond(RealClock().Monotonic())) EndBy(signal);
    Take(signal);
  }
}

void StopSignals::Take(int signal) {
  if (signal == SIGUSR2) {
    save_ = true;
    return;
  }
  int none = 0;
  if (!first_.compare_exchange_strong(none, signal)) return;
  LogInfo("stop-wanted", {{"signal", SignalName(signal)}, {"pid", getpid()}});
  stop_.Cancel();
}

}  // namespace keel
