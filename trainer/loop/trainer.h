// Trainer: a worker's life under a supervisor (keelrun), or alone: it says hello, takes part in
// epochs, parks where one ends, and says goodbye.
// Promises   the program's memory survives every epoch: a worker that lost others goes on at the
//            step that all had reached. Run() ends when all steps are made, when the supervisor
//            told this worker to stop and the others agreed on the step, or with an error that the
//            supervisor was told.
//            With Keeping, what training has made is saved before Run() ends: by all together or,
//            if there is no group, by this worker alone.
// Does not   restart itself.
// Threads    Run() by one; the link's own thread aborts a group that is broken.
// Errors     what the user's program gave, with rank, step and lane; kPeerLost: the supervisor is
//            gone; kInvalid: it refused us, for the reason given.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "elastic/worker_link.h"
#include "trainer/loop/epoch_run.h"
#include "trainer/loop/evidence_keeper.h"
#include "trainer/loop/signal_wishes.h"
#include "trainer/state/train_state.h"

namespace keel {

struct TrainOutcome {
  bool finished = false;      // else the worker was told to stop
  bool first_rank = false;    // this worker speaks for all
  std::optional<uint64_t> saved_step = {};   // the step of a checkpoint committed at the end
  std::string refused = {};   // why the job cannot begin
  std::string not_mirrored = {};   // as in EpochOutcome
};

class Trainer {
 public:
  // Each part may be missing.
  struct Parts {
    WorkerLink* link = nullptr;       // null: this worker is alone, in an epoch of its own
    Keeping* keeping = nullptr;       // null: nothing is saved or resumed
    SignalWishes* signals = nullptr;   // null: signals keep their usual effect
  };
  Trainer(TrainState& state, std::string fingerprint, const Parts& parts);

  Result<TrainOutcome> Run();

 private:
  using Ended = std::optional<TrainOutcome>;   // empty: wait for the next epoch

  Result<TrainOutcome> RunAlone();
  Result<TrainOutcome> RunSupervised();
  Result<Ended> RunOne(const EpochMessage& message);
  EpochCallbacks Peer(const EpochMessage& message);
  EpochCallbacks::Wishes Wishes(int64_t epoch);
  void Note(const SupervisorMessage& message);
  bool StopWanted() const;
  std::optional<Duration> TimeLeft() const;
  bool IsCommitted() const;
  bool SaveFits() const;
  bool SaveWanted();
  Result<TrainOutcome> LeaveParked();
  Result<TrainOutcome> Leave(std::optional<uint64_t> saved_step);
  int64_t StepHeld() const;
  void OnMade(uint64_t step, float loss, const StepTimes& times);
  void TellFigures();

  TrainState& state_;
  WorkerLink* const link_;
  Keeping* const keeping_;
  SignalWishes* const signals_;
  const std::string fingerprint_;
  const std::shared_ptr<Whereabouts> whereabouts_;   // where we are; told on the link
  int64_t join_epoch_ = 0;      // the epoch in which somebody waits to join
  bool stop_ = false;
  std::optional<TimePoint> stop_by_;   // if a deadline was given
  bool save_ = false;
  std::optional<EpochMessage> next_;
  EvidenceKeeper evidence_;
  FiguresMessage figures_;             // of this worker's whole life
  StepTimes step_times_;               // summed over all of its steps
  std::optional<TimePoint> figures_told_;
};

}  // namespace keel
