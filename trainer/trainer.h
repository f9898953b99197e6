// Trainer: a worker's life under a supervisor (keelrun), or alone: it says hello, takes part in
// epochs, parks where one ends, and says goodbye.
// Promises   the program's memory survives every epoch: a worker that lost others goes on at the
//            step where all were. Run() ends when all steps are made, when the supervisor told this
//            worker to stop and the others agreed on the step, or with an error, of which the
//            supervisor was told.
// Does not   save anything, or restart itself.
// Threads    Run() by one; the link's own thread aborts a group that is broken.
// Errors     what the user's program gave, naming rank, step and lane; kPeerLost: the supervisor is
//            gone; kInvalid: it refused us, with the reason.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "elastic/worker_link.h"
#include "trainer/epoch_run.h"
#include "trainer/train_state.h"

namespace keel {

struct TrainOutcome {
  bool finished = false;      // else it was told to stop
  bool first_rank = false;    // the one that speaks for all
};

class Trainer {
 public:
  // `link` may be null: then this worker is alone, in an epoch of its own.
  Trainer(TrainState& state, WorkerLink* link, std::string fingerprint)
      : state_(state), link_(link), fingerprint_(std::move(fingerprint)) {}

  Result<TrainOutcome> Run();

 private:
  using Ended = std::optional<TrainOutcome>;   // nothing: wait for the next epoch

  Result<TrainOutcome> RunAlone();
  Result<TrainOutcome> RunSupervised();
  Result<Ended> RunOne(const EpochMessage& message);
  EpochPeer Peer(const EpochMessage& message);
  EpochPeer::Wishes Wishes(int64_t epoch);
  void Note(const SupervisorMessage& message);
  Result<TrainOutcome> Leave();
  int64_t StepHeld() const;

  TrainState& state_;
  WorkerLink* const link_;
  const std::string fingerprint_;
  int64_t join_epoch_ = 0;      // whose workers should offer a boundary
  bool stop_ = false;
  std::optional<EpochMessage> next_;
};

}  // namespace keel
