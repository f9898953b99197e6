// Follows whoever is ahead; opens a board when it is this host's turn.
#include "elastic/decisions/follow.h"

#include <algorithm>

namespace keel {
namespace {

using Verdict = FollowStep::Verdict;

// The place among the heirs; nothing: this host is none.
std::optional<int> TurnOf(const FollowView& view) {
  for (size_t i = 0; i < view.heirs.size(); ++i) {
    if (view.heirs[i].incarnation == view.self) return static_cast<int>(i);
  }
  return std::nullopt;
}

// Nobody waits for a process that is known to be dead. One that is only silent may be slow.
TimePoint OpenAt(const FollowView& view, int turn) {
  if (view.refused) return view.lost_at + turn * kTurnAfterRefusal;
  return std::max(view.lost_at, view.heard + view.beat_limit) + turn * kTurnAfterSilence;
}

}  // namespace

FollowStep DecideFollow(const FollowView& view, TimePoint now) {
  const BoardPlace* best = nullptr;
  bool is_heard = false;   // by somebody else
  for (const PeerSight& sight : view.sights) {
    if (sight.heard_ago >= kHeardLately) continue;   // that host may have lost it as well
    if (IsSameBoard(sight.place, view.lost)) {
      is_heard = true;
    } else if (IsAhead(sight.place, view.lost) &&
               (best == nullptr || IsAhead(sight.place, *best))) {
      best = &sight.place;
    }
  }
  if (best != nullptr) {
    return {Verdict::kFollow, *best, "another host names the board of " + PlaceText(*best)};
  }
  if (is_heard && !view.refused) {
    return {Verdict::kLook, {}, "another host still hears the coordinator"};
  }
  const std::optional<int> turn = TurnOf(view);
  if (!turn) return {Verdict::kLook, {}, "this host is no heir"};
  if (now < OpenAt(view, *turn)) {
    return {Verdict::kLook, {}, "heir " + std::to_string(*turn + 1) + " waits for its turn"};
  }
  const std::string why = std::string("the coordinator ") +
                          (view.refused ? "is gone" : "is silent") + ", and this host is heir " +
                          std::to_string(*turn + 1);
  if (view.own && view.own->term > view.lost.term) {
    return {Verdict::kFollow, *view.own, why};
  }
  return {Verdict::kOpen, {view.lost.term + 1, view.lost.epoch, "", view.self}, why};
}

}  // namespace keel
