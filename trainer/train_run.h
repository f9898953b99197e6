// TrainRun: one training in a process that has other business, too: what TrainMain does between
// options and exit code, for whoever has no command line.
// Promises   after Open() signals are wishes, numerics are pinned, the device is open, a launcher
//            is listened to, and every generator is seeded: a model built from then on is the same
//            on every worker. Run() trains a program to its end, or until it is stopped; what is
//            to be saved is saved when it returns. Once the object is gone, signals do what they
//            did before, the groups are torn down, and the process may train again.
// Does not   read the command line or the environment, print, or end the process. It sets variables
//            that pin LibTorch's kernels, and one of Gloo's. What a process sets up once
//            (base/process_setup.h, PrepareForGroups()) is up to its main(), as is EndEarlyStop()
//            after Open() where it is linked.
// Threads    Open() and the end by one thread, before LibTorch computes anything; Run() by any.
// Errors     of Open(): those of PinNumerics(), OpenDevice() and WorkerLink. Of Run(): of what the
//            program gave, with rank, step and lane; what a launcher or a checkpoint forbids;
//            kPeerLost: the launcher is gone. A launcher was told them.
// Lifetime   one at a time in a process. Under a launcher one in all: it says goodbye.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/result.h"
#include "ckpt/read_ahead.h"
#include "elastic/worker_link.h"
#include "trainer/loop/signal_wishes.h"
#include "trainer/loop/trainer.h"
#include "trainer/save/keep_options.h"
#include "trainer/train_config.h"
#include "trainer/train_program.h"

namespace keel {

struct TrainRunOptions {
  TrainConfig config = {};
  KeepConfig keep = {};            // what is saved, and what the job begins with
  Environment environment = {};    // what a launcher gave; without its variables there is none
  // Whether SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 are wishes. A launcher's worker with nowhere to
  // save leaves them alone in any case: its launcher ends it by them.
  bool takes_signals = true;
};

// The lines that a training program prints, for somebody who does, as they come.
struct TrainOutput {
  // "resumed step=N trail=HEX digest=HEX from=DIR", by the worker that restored the state; "final
  // step=N trail=HEX digest=HEX", by the first rank of a job that has finished.
  std::function<void(const std::string& line)> print = [](const std::string& /*line*/) {};
  // Whether all that was printed has arrived. It is asked on every worker when training has
  // finished; an error refuses the job, so that nobody trains again to print again.
  std::function<Status()> status = [] { return Ok(); };
};

struct TrainResult {
  bool finished = false;      // all steps are made; else it was stopped, or refused
  bool supervised = false;    // by a launcher
  std::string refused = {};   // why the job cannot begin, or its output not arrive; empty: it can
  uint64_t step = 0;          // steps made
  std::optional<uint64_t> saved_step = {};   // the step of a checkpoint committed at the end
  bool lost = false;          // it ended before all steps were made, and did not save
  std::string last_line = {};   // "final step=N trail=HEX digest=HEX" of a job that has finished
};

// What a program that has done nothing else exits with (elastic/protocol/exit_codes.h).
int ExitCodeOf(const TrainResult& result);

// The first things of any computation here, training or not: warns of too many threads, pins
// numerics, opens the device.
Status BeginComputing(const TrainConfig& config, const Environment& environment);

class TrainRun {
 public:
  static Result<std::unique_ptr<TrainRun>> Open(TrainRunOptions options);
  ~TrainRun();
  TrainRun(const TrainRun&) = delete;
  TrainRun& operator=(const TrainRun&) = delete;

  const TrainConfig& config() const { return options_.config; }
  // Whether a signal has asked for a stop: then nothing long need be begun before Run().
  bool StopWanted() const { return signals_ != nullptr && signals_->stop().cancelled(); }
  // Once.
  Result<TrainResult> Run(TrainProgram program, const TrainOutput& output = {});

 private:
  explicit TrainRun(TrainRunOptions options) : options_(std::move(options)) {}
  bool IsAlone() const;
  bool MayResume() const;
  bool StoppedBeforeItsFirstStep() const;
  KeepConfig KeepOf(const std::string& fingerprint) const;
  Result<TrainResult> Train(TrainState& state, const TrainOutput& output);
  Status TellRecomputed(TrainState& state, const std::string& fingerprint,
                        const std::string& evidence) const;
  void TellFinished(TrainState& state, const TrainOutcome& outcome, const TrainOutput& output,
                    TrainResult& result);

  const TrainRunOptions options_;
  std::unique_ptr<SignalWishes> signals_;   // null: signals are left alone
  std::unique_ptr<WorkerLink> link_;        // null: there is no launcher
  std::optional<ReadAhead> ahead_;
  bool has_run_ = false;
};

}  // namespace keel
