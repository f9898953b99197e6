// Follows who waits for whom to the workers that wait for nobody.
#include "elastic/decisions/hangs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"

namespace keel {
namespace {

using Standings = std::vector<RankStanding>;

bool IsUntold(const RankStanding& one) { return one.position.step < 0; }
bool Waits(const RankStanding& one) {
  return one.activity.waits_for >= 0 || one.activity.waits_for == Activity::kAnybody;
}
bool WaitsFor(const RankStanding& one, int rank) {
  return one.rank != rank && (one.activity.waits_for == rank ||
                              one.activity.waits_for == Activity::kAnybody);
}

std::string Ranks(const std::vector<int64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (const int64_t rank : ranks) text += " " + std::to_string(rank);
  return text;
}

// "step 7, lane 3, forward", or "step 7, phase 2" of a program that gives its phases no names.
std::string PlaceText(const RankStanding& one) {
  if (IsUntold(one)) return "an unknown position in this epoch";
  const std::string place = one.activity.place.empty()
                                ? "phase " + std::to_string(one.position.phase)
                                : Printable(one.activity.place);
  return "step " + std::to_string(one.position.step) + ", " + place;
}

// The workers that wait for `rank`, by what they told last. A silent worker does not count, for
// what it told may be long ago.
std::vector<int64_t> WaitersOf(const Standings& standings, int rank) {
  std::vector<int64_t> waiters;
  for (const RankStanding& one : standings) {
    if (!one.silent && WaitsFor(one, rank)) waiters.push_back(one.rank);
  }
  return waiters;
}

// "; ranks 0 2 wait for it at step 7, bucket 1", or nothing.
std::string WaitersText(const Standings& standings, int rank) {
  const std::vector<int64_t> waiters = WaitersOf(standings, rank);
  if (waiters.empty()) return "";
  const auto first = std::find_if(standings.begin(), standings.end(), [&](const auto& one) {
    return one.rank == waiters.front();
  });
  return "; " + Ranks(waiters) + (waiters.size() == 1 ? " waits" : " wait") + " for it at " +
         PlaceText(*first);
}

// The worker that most others wait for. Of several it is the one furthest behind, and of those the
// last rank: rank 0 writes logs and commits checkpoints, so losing it costs most.
const RankStanding& MostWaitedFor(const Standings& standings, const Standings& among) {
  std::map<int, size_t> waiters;
  for (const RankStanding& one : among) waiters[one.rank] = WaitersOf(standings, one.rank).size();
  return *std::max_element(among.begin(), among.end(), [&](const auto& a, const auto& b) {
    if (waiters[a.rank] != waiters[b.rank]) return waiters[a.rank] < waiters[b.rank];
    if (a.position != b.position) return b.position < a.position;
    return a.rank < b.rank;
  });
}

template <class Condition>
Standings Only(const Standings& standings, Condition condition) {
  Standings found;
  std::copy_if(standings.begin(), standings.end(), std::back_inserter(found), condition);
  return found;
}

std::vector<int64_t> RanksOf(const Standings& standings) {
  std::vector<int64_t> ranks;
  for (const RankStanding& one : standings) ranks.push_back(one.rank);
  return ranks;
}

struct Verdict {
  std::vector<int64_t> ranks;
  std::string why;
};

// Names the processes that were suspended, or whose machine stands still. On a busy machine a
// healthy worker may seem silent for a moment. So if anybody waits for somebody, only silent
// workers that are waited for are named.
std::optional<Verdict> Silent(const Standings& standings) {
  Standings silent = Only(standings, [](const auto& one) { return one.silent; });
  const bool anybody_waits = std::any_of(standings.begin(), standings.end(), [](const auto& one) {
    return !one.silent && Waits(one);
  });
  if (anybody_waits) {
    silent = Only(silent, [&](const auto& one) {
      return !WaitersOf(standings, one.rank).empty();
    });
  }
  const bool all = silent.size() == standings.size();
  if (silent.empty() || (all && silent.size() > 1)) return {};
  const bool one = silent.size() == 1;
  std::string why =
      Ranks(RanksOf(silent)) +
      (one ? " says nothing at all: is its process stopped? Last seen at "
           : " say nothing at all: are their processes stopped? The first was last seen at ") +
      PlaceText(silent.front());
  return Verdict{RanksOf(silent), why + WaitersText(standings, silent.front().rank)};
}

// Names the workers furthest behind, in a program that does not tell for whom its workers wait.
std::optional<Verdict> Behind(const Standings& standings) {
  const bool any_told = std::any_of(standings.begin(), standings.end(), [](const auto& one) {
    return one.activity.waits_for != Activity::kUntold;
  });
  if (any_told) return {};
  const auto by_position = [](const auto& a, const auto& b) { return a.position < b.position; };
  const auto [least, most] = std::minmax_element(standings.begin(), standings.end(), by_position);
  if (least->position == most->position) {
    const RankStanding& last = MostWaitedFor(standings, standings);
    return Verdict{{last.rank}, "all workers are at " + PlaceText(last) +
                                    ", so it cannot be told which one hangs; " +
                                    Ranks({last.rank}) + " is killed first"};
  }
  const Standings behind = Only(
      standings, [&here = least->position](const auto& one) { return one.position == here; });
  return Verdict{RanksOf(behind), Ranks(RanksOf(behind)) +
                                      (behind.size() == 1 ? " is" : " are") +
                                      " behind, at " + PlaceText(behind.front()) +
                                      "; the furthest is at step " +
                                      std::to_string(most->position.step)};
}

Verdict InOwnCode(const Standings& standings, const Standings& waited_for) {
  const RankStanding& one = MostWaitedFor(standings, waited_for);
  std::string why = Ranks({one.rank}) + " is stuck in its own code at " + PlaceText(one) +
                    WaitersText(standings, one.rank);
  if (waited_for.size() > 1) {
    why += "; other workers that are waited for are stuck, too, but more workers wait for this "
           "one, or it is furthest behind";
  }
  return {{one.rank}, why};
}

Verdict InACircle(const Standings& standings) {
  const RankStanding& one = MostWaitedFor(standings, standings);
  return {{one.rank}, "each worker waits for another one, as if a message was lost; " +
                          Ranks({one.rank}) + " is killed first, at " + PlaceText(one) +
                          WaitersText(standings, one.rank)};
}

// No worker waits: all compute, and may just be slow. The one furthest behind is named.
Verdict AllInOwnCode(const Standings& standings) {
  const RankStanding& one = MostWaitedFor(standings, standings);
  const std::string where = Ranks({one.rank}) + ", at " + PlaceText(one);
  if (standings.size() == 1) {
    return {{one.rank}, where + ", is stuck in its own code"};
  }
  return {{one.rank}, "all workers are in their own code, and none waits for another one; the "
                      "furthest behind is " + where};
}

// Who hangs among workers that have all told a position, and after how many limits without a move
// it may be said.
std::pair<int, Verdict> WhoHangs(const Standings& standings) {
  if (const auto verdict = Silent(standings)) return {1, *verdict};
  if (const auto verdict = Behind(standings)) return {1, *verdict};
  const Standings own = Only(standings, [](const auto& one) { return !Waits(one); });
  const Standings waited_for = Only(own, [&](const auto& one) {
    return !WaitersOf(standings, one.rank).empty();
  });
  if (!waited_for.empty()) return {1, InOwnCode(standings, waited_for)};
  if (own.size() < standings.size()) return {1, InACircle(standings)};
  return {standings.size() == 1 ? 1 : kOwnCodeLimits, AllInOwnCode(standings)};
}

}  // namespace

Duration HangLimit(std::optional<Duration> asked, Duration median_step) {
  return asked ? *asked : std::max(kHangLimitMin, kHangSteps * median_step);
}

Duration HangLimitOfStop(Duration usual, Duration deadline) {
  return std::min(usual, std::max(deadline / kStopPart, kHangLook));
}

HangDecision DecideHang(const Standings& standings, TimePoint moved, const HangLimits& limits,
                        TimePoint now) {
  HangDecision decision;
  if (standings.empty()) return decision;
  const Duration move = std::max(limits.move, kHangLook);
  const std::string still = "nothing moved for " + DurationText(now - moved) + "; ";
  // A worker without a position may be slow to take the epoch, so it has the longer limit. That
  // does not hold for one that says nothing at all while others wait for it already.
  const Standings slow = Only(standings, [&](const auto& one) {
    return IsUntold(one) && (!one.silent || WaitersOf(standings, one.rank).empty());
  });
  if (!slow.empty()) {
    decision.until = moved + std::max(limits.enter, move);
    if (now < decision.until) return decision;
    decision.ranks = RanksOf(slow);
    decision.reason = still + Ranks(decision.ranks) + (slow.size() == 1 ? " has" : " have") +
                      " not reported a position in this epoch";
    return decision;
  }
  decision.until = moved + move;
  if (now < decision.until) return decision;
  const auto [times, verdict] = WhoHangs(standings);
  decision.reason = still + verdict.why;
  decision.until = moved + times * move;
  if (now >= decision.until) {
    decision.ranks = verdict.ranks;
  } else {
    decision.reason += "; if their steps take that long, raise --hang-limit";
  }
  return decision;
}

}  // namespace keel
