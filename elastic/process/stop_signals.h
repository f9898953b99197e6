// StopSignals: turns signals that ask a worker to stop (SIGTERM, SIGINT, SIGUSR1) or to save
// (SIGUSR2) into wishes that its loop checks, instead of an end in the middle of a step.
// Promises   from Open() on such a signal is a wish, whichever thread the kernel would have given
//            it to. SIGINT twice within 2 s still ends the program.
// Does not   take a wish back, or act on it. See signals that a thread unblocks later.
// Threads    Open() before the first thread exists, since threads inherit what is blocked. Others
//            any.
// Errors     kForeign: the kernel gave no descriptor.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "store/cancel.h"

namespace keel {

// Two interrupts within 2 s mean: now. Threads: one at a time.
class Interrupts {
 public:
  // For an interrupt at `now`: whether the one before it came within 2 s.
  bool IsSecond(TimePoint now);

 private:
  std::optional<TimePoint> last_;
};

class StopSignals {
 public:
  static Result<std::unique_ptr<StopSignals>> Open();
  // From then on signals end the program again.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Raised with the first wish to stop: waits for something else can take it as their token.
  const CancelToken& stop() const { return stop_; }
  // "SIGTERM"; empty if there is no wish.
  std::string reason() const;
  // Whether a save was asked for since the last call.
  bool TakeSave() { return save_.exchange(false); }

 private:
  StopSignals(Fd signals, Fd wake);
  void Run();
  void Take(int signal);

  const Fd signals_;
  const Fd wake_;
  std::atomic<bool> save_{false};
  std::atomic<int> first_{0};   // the signal that asked to stop
  CancelToken stop_;
  std::thread thread_;
};

}  // namespace keel
