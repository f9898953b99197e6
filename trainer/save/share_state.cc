// All that can happen to a share; what is missing here is a defect of the caller.
#include "trainer/save/share_state.h"

#include <algorithm>

namespace keel {
namespace {

using enum ShareState;
using enum ShareEvent;
using enum ShareFate;

constexpr std::array kTransitions = {
    ShareTransition{kNone, kBegin, kWriting, kKeep, "all members save this step"},
    ShareTransition{kNone, kTell, kNone, kKeep, "there is nothing to tell of"},
    ShareTransition{kNone, kDrop, kNone, kKeep, "there is nothing to drop"},
    ShareTransition{kNone, kLose, kNone, kKeep, "there is nothing to lose"},

    ShareTransition{kWriting, kWrote, kWritten, kKeep, "the disk has it"},
    ShareTransition{kWriting, kFail, kFailed, kKeep, "the next vote says so"},
    ShareTransition{kWriting, kTell, kWriting, kKeep, "the others wait for it"},
    ShareTransition{kWriting, kDrop, kNone, kRemove, "nobody commits it"},
    ShareTransition{kWriting, kLose, kNone, kRemove, "nobody was told that it is durable"},

    ShareTransition{kWritten, kTell, kPromised, kKeep, "from now on it may be committed"},
    ShareTransition{kWritten, kCommit, kNone, kHandOver, "this worker saves alone"},
    ShareTransition{kWritten, kDrop, kNone, kRemove, "nobody commits it"},
    ShareTransition{kWritten, kLose, kNone, kRemove, "nobody was told that it is durable"},

    ShareTransition{kPromised, kTell, kPromised, kKeep, "the others were told before"},
    ShareTransition{kPromised, kCommit, kNone, kHandOver, "all shares are durable"},
    ShareTransition{kPromised, kDrop, kNone, kRemove, "all know that nobody commits it"},
    ShareTransition{kPromised, kLose, kNone, kLeave, "another worker may be committing it"},

    ShareTransition{kFailed, kTell, kFailed, kKeep, "the others drop the save then"},
    ShareTransition{kFailed, kDrop, kNone, kRemove, "nobody commits it"},
    ShareTransition{kFailed, kLose, kNone, kRemove, "nobody was told that it is durable"},
};

}  // namespace

const ShareTransition* FindTransition(ShareState from, ShareEvent event) {
  const auto found = std::find_if(
      kTransitions.begin(), kTransitions.end(),
      [&](const ShareTransition& one) { return one.from == from && one.event == event; });
  return found == kTransitions.end() ? nullptr : &*found;
}

std::string_view ShareStateName(ShareState state) {
  constexpr std::array<std::string_view, kShareStates.size()> kNames = {
      "none", "writing", "written", "promised", "failed"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view ShareEventName(ShareEvent event) {
  constexpr std::array<std::string_view, kShareEvents.size()> kNames = {
      "begin", "wrote", "fail", "tell", "commit", "drop", "lose"};
  return kNames[static_cast<size_t>(event)];
}

}  // namespace keel
