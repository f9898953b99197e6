// Follows whoever is ahead; opens a board when it is this host's turn.
#include "elastic/decisions/follow.h"

#include <algorithm>

#include "base/random.h"

namespace keel {
namespace {

using Verdict = FollowStep::Verdict;

// Hosts that are no heirs spread their questions over kAskPace for each host of the job, but over
// kAskPaceMost at most. If all asked at once, the next coordinator could answer nobody.
constexpr Duration kAskPace = std::chrono::microseconds(500);
constexpr Duration kAskPaceMost = std::chrono::milliseconds(500);
// So many wait twice as long for answers in each turn as in the one before, up to so many turns.
constexpr int64_t kManyHosts = 100;
constexpr int kAskDoublings = 3;
// Two hosts do not lose the coordinator at the same moment.
constexpr Duration kAskAhead = kTurnAfterRefusal;

// The place among the heirs; nothing: this host is none.
std::optional<int> TurnOf(const std::string& self, const std::vector<Heir>& heirs) {
  for (size_t i = 0; i < heirs.size(); ++i) {
    if (heirs[i].incarnation == self) return static_cast<int>(i);
  }
  return std::nullopt;
}

// Nobody waits for a process that is known to be dead. One that is only silent may be slow.
TimePoint OpenAt(const FollowView& view, int turn) {
  if (view.refused) return view.lost_at + turn * kTurnAfterRefusal;
  return std::max(view.lost_at, view.heard + view.beat_limit) + turn * kTurnAfterSilence;
}

}  // namespace

std::vector<Heir> HeirsToAsk(const FollowView& view, TimePoint now) {
  const bool is_heir = TurnOf(view.self, view.heirs).has_value();
  std::vector<Heir> asked;
  for (size_t i = 0; i < view.heirs.size(); ++i) {
    if (view.heirs[i].incarnation == view.self) continue;
    const bool is_due = now + kAskAhead > OpenAt(view, static_cast<int>(i));
    if (is_heir || is_due) asked.push_back(view.heirs[i]);
  }
  return asked;
}

std::optional<BoardPlace> FurthestAhead(const std::vector<PeerSight>& sights,
                                        const std::optional<BoardPlace>& read) {
  std::optional<BoardPlace> best;
  for (const PeerSight& sight : sights) {
    if (sight.heard_ago >= kHeardLately) continue;
    const BoardPlace& place = sight.place;
    const bool is_behind = read && !IsSameBoard(place, *read) && IsAhead(*read, place);
    if (!is_behind && (!best || IsAhead(place, *best))) best = place;
  }
  return best;
}

Duration AskAfter(const std::string& self, const std::vector<Heir>& heirs, int64_t hosts,
                  int turn) {
  if (TurnOf(self, heirs)) return Duration(0);
  const Duration spread = std::min(std::max<int64_t>(hosts, 0) * kAskPace, kAskPaceMost);
  if (turn > 0) return spread / 2;
  constexpr int64_t kParts = 1024;
  return spread * static_cast<int64_t>(Random(0).Fork(self).Uniform(kParts)) / kParts;
}

Duration AskPatience(const std::string& self, const std::vector<Heir>& heirs, int64_t hosts,
                     int turn) {
  if (hosts < kManyHosts || TurnOf(self, heirs)) return kAskLimit;
  return kAskLimit * (int64_t{1} << std::clamp(turn, 0, kAskDoublings));
}

FollowStep DecideFollow(const FollowView& view, TimePoint now) {
  const std::optional<int> turn = TurnOf(view.self, view.heirs);
  const std::string why = std::string("the coordinator ") +
                          (view.refused ? "is gone" : "is silent") + ", and this host is heir " +
                          std::to_string(turn.value_or(0) + 1);
  const bool is_turn = turn && now >= OpenAt(view, *turn);
  const bool has_own = view.own && view.own->term > view.lost.term;
  // Others have been told of it, and come. If there is another one, that is settled between these
  // two boards.
  if (is_turn && IsToldAhead(view.own, view.lost, view.heirs, view.refused)) {
    return {Verdict::kFollow, *view.own, why};
  }
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
  if (!turn) return {Verdict::kLook, {}, "this host is no heir"};
  if (!is_turn) {
    return {Verdict::kLook, {}, "heir " + std::to_string(*turn + 1) + " waits for its turn"};
  }
  if (has_own) return {Verdict::kFollow, *view.own, why};
  return {Verdict::kOpen, {view.lost.term + 1, view.lost.epoch, "", view.self}, why};
}

int64_t NextTerm(int64_t former, int64_t opened) { return std::max(former, opened) + 1; }

bool IsToldAhead(const std::optional<BoardPlace>& own, const BoardPlace& lost,
                 const std::vector<Heir>& heirs, bool refused) {
  const bool is_first = own && !heirs.empty() && heirs.front().incarnation == own->by;
  return is_first && refused && own->term > lost.term && IsAhead(*own, lost);
}

}  // namespace keel
