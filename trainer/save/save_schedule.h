// SaveSchedule: decides after each vote, from what all members said in it, when a save begins, is
// committed, or is given up.
// Promises   a pure function of the votes, the step and the policy: all members decide the same.
//            There is one save at a time: one that falls due meanwhile is owed, and begins when
//            the current one has ended. A save is committed only when every member said that its
//            share is durable, and given up as soon as one said that it failed.
// Does not   write anything (trainer/save/beside.h); decide about stops, whose save has
//            priority.
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

// How far a member is with the save that is under way.
enum class SaveState : uint8_t {
  kIdle,        // there is none
  kWriting,     // its share is being copied or written
  kDurable,     // its share and its name would survive a loss of power
  kFailed,      // its share could not be written
  kCommitting,  // all shares are durable, and it writes the manifest (rank 0)
};
inline constexpr uint8_t kSaveStates = 5;

struct SaveVote {
  SaveState state = SaveState::kIdle;
  bool wanted = false;   // asked for, due by the clock, or owed
};

enum class SaveAction {
  kNothing,
  kBegin,    // all begin to save the state after this step
  kCommit,   // rank 0 commits; for the others it is over
  kGiveUp,   // all remove what they wrote
};
struct SaveDecision {
  SaveAction action = SaveAction::kNothing;
  bool owed = false;     // due, but another save is under way: all want one from now on
  std::string reason;    // "every 20 steps", "rank 2 failed" ...
  bool unsettled = false;   // a commit begins, or is under way somewhere
};

// `votes`: by rank; `step`: steps made, including this one; `every_steps`: 0: never.
SaveDecision DecideSave(const std::vector<SaveVote>& votes, uint64_t step, uint64_t every_steps);

}  // namespace keel
