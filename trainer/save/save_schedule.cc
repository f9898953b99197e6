// Decides whether a save is due if none is under way, else what becomes of that one.
#include "trainer/save/save_schedule.h"

#include <algorithm>

#include "base/text.h"

namespace keel {
namespace {

// "ranks 1, 2"; empty: nobody.
template <class Is>
std::string RanksWho(const std::vector<SaveVote>& votes, Is is) {
  std::vector<std::string> ranks;
  for (size_t rank = 0; rank < votes.size(); ++rank) {
    if (is(votes[rank])) ranks.push_back(std::to_string(rank));
  }
  if (ranks.empty()) return "";
  return (ranks.size() == 1 ? "rank " : "ranks ") + JoinList(ranks, ", ");
}

std::string RanksIn(const std::vector<SaveVote>& votes, SaveState state) {
  return RanksWho(votes, [&](const SaveVote& vote) { return vote.state == state; });
}

SaveDecision Begin(std::string reason) { return {SaveAction::kBegin, false, std::move(reason)}; }

}  // namespace

SaveDecision DecideSave(const std::vector<SaveVote>& votes, uint64_t step, uint64_t every_steps) {
  const auto all_are = [&](SaveState state) {
    return std::all_of(votes.begin(), votes.end(),
                       [&](const SaveVote& vote) { return vote.state == state; });
  };
  const bool due = every_steps > 0 && step % every_steps == 0;
  if (all_are(SaveState::kIdle)) {
    if (due) return Begin("every " + std::to_string(every_steps) + " steps");
    const std::string who = RanksWho(votes, [](const SaveVote& vote) { return vote.wanted; });
    return who.empty() ? SaveDecision() : Begin("wanted by " + who);
  }
  const std::string failed = RanksIn(votes, SaveState::kFailed);
  if (!failed.empty()) return {SaveAction::kGiveUp, due, failed + " failed"};
  if (all_are(SaveState::kDurable)) {
    return {SaveAction::kCommit, due, "all shares are durable", true};
  }
  const std::string committing = RanksIn(votes, SaveState::kCommitting);
  if (!committing.empty()) return {SaveAction::kNothing, due, committing + " commits", true};
  return {SaveAction::kNothing, due, "waiting for " + RanksIn(votes, SaveState::kWriting)};
}

}  // namespace keel
