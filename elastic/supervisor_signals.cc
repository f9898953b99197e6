// What signals mean: a wish to stop, to save, or to kill.
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "base/log.h"
#include "elastic/process/signal_set.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/supervisor.h"

namespace keel {
namespace {

using boost::system::error_code;

// No scheduler warns earlier than this; a signal by hand may come at any time.
constexpr Duration kLongestWarning = std::chrono::minutes(15);
constexpr Duration kNowLimit = std::chrono::seconds(2);
constexpr const char* kHowToKill = "press Ctrl-C twice within 2 s to kill at once";

// Schedulers announce the end with SIGUSR1. If nobody listened, it would end only this launcher.
std::vector<int> SignalsHeard(const LaunchConfig& config) {
  std::vector<int> signals = config.signals;
  signals.insert(signals.end(), {SIGUSR1, SIGUSR2});
  return signals;
}

// Whether --signals-to-handle names it.
bool IsNamed(const LaunchConfig& config, int signal) {
  return std::count(config.signals.begin(), config.signals.end(), signal) > 0;
}

// Foreign workers expect those signals that --signals-to-handle names, and no others.
int ForWorkers(const LaunchConfig& config, int signal) {
  return IsNamed(config, signal) ? signal : SIGTERM;
}

}  // namespace

void Supervisor::HoldSignalsUntilOpen(const LaunchConfig& config) {
  sigset_t held = SignalSet(SignalsHeard(config));
  sigdelset(&held, SIGINT);
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

Status Supervisor::HearSignals() {
  error_code failure;
  for (const int signal : SignalsHeard(config_)) signals_.add(signal, failure);
  if (failure) return Error{Code::kForeign, "listening for signals: " + failure.message()};
  const sigset_t heard = SignalSet(SignalsHeard(config_));
  pthread_sigmask(SIG_UNBLOCK, &heard, nullptr);
  return Ok();
}

// The end is decided, so a signal that comes now changes nothing. If it were delivered, it would
// replace our exit code, so it stays pending here; our other threads block signals anyway.
void Supervisor::HoldSignals() const {
  const sigset_t held = SignalSet(SignalsHeard(config_));
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

void Supervisor::AwaitSignal() {
  signals_.async_wait([this](const error_code& failure, int signal) {
    if (failure) return;
    OnSignal(signal);
    AwaitSignal();
  });
}

void Supervisor::OnSignal(int signal) {
  // If --signals-to-handle names it, it is a wish to stop like any other.
  if (signal == SIGUSR2 && !IsNamed(config_, signal)) {
    Tell(SaveAsked{SignalName(signal)});
    host_.OnSaveAsked(SignalName(signal) + " to the launcher on " + meeting_.own_name, Now());
    return Carry();
  }
  const Duration to_save = TimeToStop(signal);
  LogWarn("signal", {{"signal", SignalName(signal)}, {"to_save", DurationText(to_save)}});
  if (signal == SIGINT && !IsFirstInterrupt()) return;
  Tell(StopAsked{SignalName(signal) + " to the launcher on " + meeting_.own_name});
  host_.OnStopAsked(SignalName(signal), to_save, Now(), ForWorkers(config_, signal));
  Carry();
  if (status_) ShowStatus();
}

// False if this is not the first one: a second one in time kills, a later one changes nothing.
bool Supervisor::IsFirstInterrupt() {
  const bool is_first = !std::exchange(interrupted_, true);
  if (interrupts_.IsSecond(Now())) {
    KillNow();
    return false;
  }
  if (!is_first) LogWarn("stopping-already", {{"reason", kHowToKill}});
  return is_first;
}

// If a scheduler sends SIGUSR1 ahead of a known end, all the time until then is left.
Duration Supervisor::TimeToStop(int signal) {
  if (signal != SIGUSR1 || !config_.notices.known_end) return config_.shutdown_limit;
  const Duration left(*config_.notices.known_end - Wall());
  const bool is_near = left > Duration(0) && left <= kLongestWarning;
  return is_near ? TimeToSave(left) : config_.shutdown_limit;
}

// A user who interrupts twice does not want to wait for anything.
void Supervisor::KillNow() {
  if (std::exchange(killing_, true)) return;
  // It is told at the end, too: a further Ctrl-C may discard this line from the terminal.
  Tell(KilledByUser{"interrupted twice, so everything was killed"});
  // That is no death of the workers' own, which would cost the others a restart.
  host_.OnKillAsked("interrupted twice", Now());
  Carry();
  crew_->KillAll();
  kill_timer_.expires_after(kNowLimit);
  kill_timer_.async_wait([this](const error_code& failure) {
    if (failure) return;
    if (!exit_code_) EndStory(kExitUnsaved, "interrupted twice");
    loop_.stop();
  });
}

}  // namespace keel
