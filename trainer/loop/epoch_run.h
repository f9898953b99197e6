// EpochRun: one epoch of one worker: it meets the others, comes to the same state, and makes steps
// until the job is done, the membership is to change, or the group breaks.
// With Keeping it also begins from a checkpoint if nobody holds a state, saves beside training as
// the votes decide, and saves at once when training stops or ends.
// Promises   a step is applied here if and only if its vote succeeded here, or the next epoch's
//            reports show that it succeeded elsewhere. Whatever ends the epoch, the state is that
//            of a whole number of steps, with at most the gradients of the next one pending. What
//            is in flight has ended when RunEpoch() returns.
// Does not   talk to the supervisor, except for wishes through EpochCallbacks, and for its position
//            through the whereabouts of the group's spec.
// Threads    one; the break token's owner aborts from its own.
// Errors     kBroken is no error. An Error is the end of this worker: the user's program failed, or
//            members contradict each other.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/protocol/blame.h"
#include "trainer/group/epoch_group.h"
#include "trainer/save/checkpointer.h"
#include "trainer/save/resume.h"
#include "trainer/state/train_state.h"

namespace keel {

// What the epoch needs of the worker's supervisor, beside the whereabouts of its group.
class EvidenceKeeper;

struct EpochCallbacks {
  // Called once the group is built. It passes `abort` to the watch for breaks, and returns an
  // object that is destroyed before the group.
  std::function<std::shared_ptr<void>(std::function<void(const std::string& reason)> abort)> watch;
  struct Wishes {
    bool join = false;    // somebody waits to take part
    bool stop = false;    // this worker was told to stop
    bool save = false;    // a checkpoint was asked for
    std::optional<Duration> left = {};   // until the worker must be gone, if known
  };
  std::function<Wishes()> wishes;   // asked before each vote
  // After each step that was applied here: steps made so far, the last one's loss, where its time
  // went.
  std::function<void(uint64_t step, float loss, const StepTimes& times)> made = {};
  std::function<void(Duration took)> evaluated = {};
  // What was compared, since it was told last.
  std::function<void(const WorkerChecks& more)> checked = {};
  EvidenceKeeper* evidence = nullptr;   // null: none is saved
  std::string fingerprint = {};     // this worker's; used only without Keeping, which has its own
  bool inexact_allowed = false;     // members of different fingerprints may make steps together
  int64_t epoch = 0;                // its number; 0: there is no supervisor
};

enum class EpochEnd {
  kFinished,   // all steps are made, and everybody knows
  kBoundary,   // all parked at a boundary, since somebody joins or leaves
  kStopped,    // this worker was told to stop: it may leave
  kBroken,     // a member was lost
  kRefused,    // the job or this worker cannot begin; another attempt would fail, too
  kDoubted,    // all stop: they come to different results, and nobody can tell who is wrong
};
struct EpochOutcome {
  EpochEnd end = EpochEnd::kBroken;
  std::string reason;
  bool first_rank = false;   // this worker has rank 0 in the epoch, and speaks for all
  std::optional<uint64_t> saved_step = {};   // of a checkpoint committed as the epoch ended
  std::string not_mirrored = {};             // why the mirror has not the job's last one
};

// What keeps training beyond the end of a process. It lives longer than an epoch.
struct Keeping {
  Checkpointer& checkpointer;
  ResumeConfig resume;
  Files& files;
  // Called by the worker that restored the state, once all have it, with the state's digest.
  std::function<void(const std::string& from, const Digest& digest)> on_resumed;
  // The reading that began before the first epoch; null if there is none.
  ResumeAhead* ahead = nullptr;
  // The checkpoint that this worker restored and has not reported yet; empty if there is none.
  std::string resumed_from = {};
};

Result<EpochOutcome> RunEpoch(TrainState& state, const EpochGroup::Spec& spec,
                              const CancelToken& broken, const EpochCallbacks& peer,
                              Keeping* keeping = nullptr);

}  // namespace keel
