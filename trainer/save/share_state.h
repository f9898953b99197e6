// ShareState: where one worker is with its share of a save, as one table.
// Promises   a share that this worker has called durable in a vote is removed only once all have
//            agreed to drop the save: before that, another worker may be committing it.
// Does not   do anything (trainer/save/share.h), or decide what happens next
//            (trainer/save/save_schedule.h).
// Threads    pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace keel {

enum class ShareState : uint8_t {
  kNone,       // no save is under way
  kWriting,    // the share is being copied or written
  kWritten,    // it is durable, and only this worker knows
  kPromised,   // it is durable, and a vote has said so
  kFailed,     // it could not be written, and the others are still to hear of that
};
inline constexpr std::array kShareStates = {ShareState::kNone, ShareState::kWriting,
                                            ShareState::kWritten, ShareState::kPromised,
                                            ShareState::kFailed};

enum class ShareEvent : uint8_t {
  kBegin,    // all members save the state after this step
  kWrote,    // the share is durable
  kFail,     // the share could not be copied or written
  kTell,     // a vote tells the others how far this worker is
  kCommit,   // the save is committed: by this worker (rank 0, or one that saves alone) or by rank 0
  kDrop,     // all members agreed to drop the save
  kLose,     // the epoch ended, or the save is given up, before anything was agreed
};
inline constexpr std::array kShareEvents = {ShareEvent::kBegin, ShareEvent::kWrote,
                                            ShareEvent::kFail,  ShareEvent::kTell,
                                            ShareEvent::kCommit, ShareEvent::kDrop,
                                            ShareEvent::kLose};

// What becomes of the share's file.
enum class ShareFate : uint8_t {
  kKeep,      // nothing
  kHandOver,  // it belongs to whoever commits the save
  kRemove,    // nobody can be committing it
  kLeave,     // it stays on the disk: a manifest may name it. Retention removes it if none does
};

struct ShareTransition {
  ShareState from;
  ShareEvent event;
  ShareState to;
  ShareFate fate;
  std::string_view reason;
};

// Null: that cannot happen in this state.
const ShareTransition* FindTransition(ShareState from, ShareEvent event);

std::string_view ShareStateName(ShareState state);
std::string_view ShareEventName(ShareEvent event);

}  // namespace keel
