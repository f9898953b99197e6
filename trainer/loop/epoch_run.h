// EpochRun: one epoch of one worker: meet the others, come to the same state, make steps until the
// job is done, the membership shall change, or the group breaks.
// With Keeping it also begins from a checkpoint where all are fresh, saves beside training as votes
// decide, and saves at once where training stops or ends.
// Promises   a step is applied here if and only if its vote succeeded here, or the next epoch's
//            reports show that it succeeded elsewhere. Whatever ends the epoch, the state is that
//            of a whole number of steps, with at most the gradients of the next one pending. What
//            is in flight has ended when RunEpoch() returns.
// Does not   talk to the supervisor, but for wishes through EpochPeer, and for where it is through
//            the whereabouts of the group's spec.
// Threads    one; the break token's owner aborts from its own.
// Errors     kBroken is no error. An Error is the end of this worker: the user's program failed, or
//            members contradict each other.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/group/epoch_group.h"
#include "trainer/save/checkpointer.h"
#include "trainer/save/resume.h"
#include "trainer/state/train_state.h"

namespace keel {

// What the epoch needs of whoever supervises the worker, beside the whereabouts of its group.
struct EpochPeer {
  // Called from the group's being built on, until it is gone: give `abort` to the break's watch.
  // What is returned is destroyed before the group.
  std::function<std::shared_ptr<void>(std::function<void(const std::string& reason)> abort)> watch;
  struct Wishes {
    bool join = false;    // somebody waits to take part
    bool stop = false;    // this worker was told to stop
    bool save = false;    // a checkpoint was asked for
    std::optional<Duration> left = {};   // until it must be gone, where that is known
  };
  std::function<Wishes()> wishes;   // asked before each vote
  // After each step that was applied here: steps made, their last one's loss, where its time went.
  std::function<void(uint64_t step, float loss, const StepTimes& times)> made = {};
  std::function<void(Duration took)> evaluated = {};
  std::string fingerprint = {};     // this worker's; without Keeping, which knows it
  bool inexact_allowed = false;     // members of different fingerprints may make steps together
};

enum class EpochEnd {
  kFinished,   // all steps are made, and everybody knows
  kBoundary,   // all parked here, for somebody joins or leaves
  kStopped,    // this worker was told to stop: it may leave
  kBroken,     // a member was lost
  kRefused,    // the job cannot begin with what is there, or not with this worker: no attempt could
};
struct EpochOutcome {
  EpochEnd end = EpochEnd::kBroken;
  std::string reason;
  bool first_rank = false;   // of the epoch: who speaks for all
  std::optional<uint64_t> saved_step = {};   // committed as the epoch ended
};

// What keeps training over the end of a process; lives longer than epochs.
struct Keeping {
  Checkpointer& checkpointer;
  ResumeConfig resume;
  Files& files;
  // Of who restored the state, once all have it, with the state's digest.
  std::function<void(const std::string& from, const Digest& digest)> on_resumed;
  ResumeAhead* ahead = nullptr;    // what is under way already; null: nothing
  std::string resumed_from = {};   // what that one has not told yet; empty: nothing
};

Result<EpochOutcome> RunEpoch(TrainState& state, const EpochGroup::Spec& spec,
                              const CancelToken& broken, const EpochPeer& peer,
                              Keeping* keeping = nullptr);

}  // namespace keel
