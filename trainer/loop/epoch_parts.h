// EpochParts: what the code for meeting, steps and stops of one epoch works with.
// Threads    the training thread only.
// Lifetime   keeps everything by reference, for as long as the epoch lasts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "store/catch_torch.h"
#include "trainer/group/epoch_group.h"
#include "trainer/group/whereabouts.h"
#include "trainer/loop/epoch_run.h"
#include "trainer/save/checkpointer.h"
#include "trainer/state/train_state.h"

namespace keel {

struct EpochParts {
  TrainState& state;
  const std::string prefix;   // of the group's keys in the store
  EpochGroup& group;
  const EpochCallbacks& peer;
  Keeping* const keeping;     // null: nothing is saved or resumed

  // Call it only if there is a Keeping.
  Checkpointer& saver() const { return keeping->checkpointer; }
  bool saves() const { return keeping != nullptr && saver().saves(); }
  int lanes() const { return static_cast<int>(state.config().lanes); }

  void At(Phase phase) const {
    group.whereabouts().At(static_cast<int64_t>(state.step()), phase, !state.whole());
  }
  void Place(const char* place) const { group.whereabouts().Place(place); }
  // Names the stage that meeting has reached; the supervisor is told at once.
  void Stage(const char* place) const {
    Place(place);
    group.whereabouts().Tick();
  }
  // The callback tells the supervisor that something long makes progress.
  std::function<void()> Ticks() const {
    return [&group = group] { group.whereabouts().Tick(); };
  }
  // For waits for the disk: they tell of progress, and end when the group breaks.
  DiskWaiting Waiting() const {
    return {.tick = Ticks(), .look = [&group = group] { return group.status(); }};
  }
};

// Whether the error says that the group failed, rather than what it was used for.
inline bool IsBreak(const Error& error) {
  return error.code == Code::kCancelled || error.code == Code::kPeerLost ||
         error.code == Code::kTimeout || error.code == Code::kStaleEpoch;
}

// Calls code of the program's; `where` begins what is said of its failure. The program's own error
// code could be taken for a break of the group, so it is replaced.
inline Status CallProgram(const std::string& where, const std::function<Status()>& call) {
  const Result<Status> told = CatchTorch(where, call);
  if (!told.ok()) return Error{Code::kInvalid, told.error().message};
  if (!told->ok()) return Error{Code::kInvalid, where + ": " + told->error().message};
  return Ok();
}

}  // namespace keel
