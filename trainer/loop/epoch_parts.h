// EpochParts: what meeting, steps and stops of one epoch work with.
// Threads    the training thread's.
// Lifetime   keeps everything by reference, for as long as the epoch lasts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
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
  const EpochPeer& peer;
  Keeping* const keeping;     // null: nothing is saved or resumed

  // Only where there is one.
  Checkpointer& saver() const { return keeping->checkpointer; }
  bool saves() const { return keeping != nullptr && saver().saves(); }
  int lanes() const { return static_cast<int>(state.config().lanes); }

  void At(Phase phase) const {
    group.whereabouts().At(static_cast<int64_t>(state.step()), phase);
  }
  void Place(const char* place) const { group.whereabouts().Place(place); }
  // One of those that the members go through as they meet; told at once.
  void Stage(const char* place) const {
    Place(place);
    group.whereabouts().Tick();
  }
  // Tells that something long gets on.
  std::function<void()> Ticks() const {
    return [&group = group] { group.whereabouts().Tick(); };
  }
  // While the disk is waited for; a break must be heard.
  DiskWaiting Waiting() const {
    return {.tick = Ticks(), .look = [&group = group] { return group.status(); }};
  }
};

// Whether the group failed, not what it was used for.
inline bool IsBreak(const Error& error) {
  return error.code == Code::kCancelled || error.code == Code::kPeerLost ||
         error.code == Code::kTimeout || error.code == Code::kStaleEpoch;
}

}  // namespace keel
