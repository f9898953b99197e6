// Counts the proposed hosts among those of each epoch that may still run somewhere.
#include "elastic/decisions/quorum.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace keel {
namespace {

using Names = std::vector<std::string>;

// Sorted, since a job may have a thousand hosts.
Names SortedHosts(const std::vector<HostPast>& pasts) {
  Names names;
  for (const HostPast& past : pasts) names.push_back(past.host);
  std::sort(names.begin(), names.end());
  return names;
}

bool Has(const Names& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

const CountedEpoch* FindEpoch(const QuorumView& view, const std::string& id) {
  const auto found = std::find_if(view.epochs.begin(), view.epochs.end(),
                                  [&](const CountedEpoch& epoch) { return epoch.id == id; });
  return found == view.epochs.end() ? nullptr : &*found;
}

// The hosts of the new epoch, and those that are known to take part in no other one.
struct Sets {
  Names proposed;
  Names gone;
};

// A coordinator cannot form an epoch before each host on its board has promised to be outside the
// former one, or has been silent for `beat_limit`. A host that had done neither when the process of
// the coordinator died knows that there is no newer epoch than the one it was inside. If the same
// coordinator had formed that one after `epoch`, it was in no other one in between.
bool SawItsCoordinatorDie(const HostPast& past, const CountedEpoch& epoch,
                          const QuorumView& view) {
  const std::optional<LostCoordinator>& lost = past.seen.lost;
  if (!lost || !lost->refused || lost->who != epoch.coordinator) return false;
  const CountedEpoch* const inside = FindEpoch(view, lost->inside);
  const bool is_its_own = inside != nullptr && inside->coordinator == epoch.coordinator &&
                          inside->number >= epoch.number;
  return is_its_own && lost->outside < inside->number && lost->beat_age < view.beat_limit;
}

struct Count {
  size_t counted = 0;   // hosts of the epoch that are not known to be gone
  size_t present = 0;   // ... and are in the new one
  bool has_vote = false;
  Names missing;

  bool IsHalf() const { return 2 * present == counted; }
  bool Suffices() const {
    return 2 * present > counted || (IsHalf() && (has_vote || counted == 0));
  }
};

Count CountHosts(const CountedEpoch& epoch, const QuorumView& view, const Sets& sets) {
  const bool coordinator_died =
      std::any_of(view.here.begin(), view.here.end(), [&](const HostPast& past) {
        return SawItsCoordinatorDie(past, epoch, view) &&
               Has(sets.proposed, past.host);
      });
  // The coordinator has the casting vote. Where it is not counted, the first heir has it.
  Names order = epoch.hosts;
  std::stable_partition(order.begin(), order.end(),
                        [&](const std::string& host) { return host == epoch.coordinator; });
  Count count;
  for (const std::string& host : order) {
    if (Has(sets.gone, host)) continue;
    if (coordinator_died && host == epoch.coordinator) continue;
    const bool is_present = Has(sets.proposed, host);
    if (count.counted == 0) count.has_vote = is_present;
    ++count.counted;
    if (is_present) ++count.present;
    if (!is_present) count.missing.push_back(host);
  }
  return count;
}

std::string CountDetail(const CountedEpoch& epoch, const Count& count) {
  const size_t gone = epoch.hosts.size() - count.counted;
  const std::string text = std::to_string(count.present) + " of " +
                           CountText(count.counted, "host") + " of epoch " +
                           std::to_string(epoch.number) + " (" +
                           (gone > 0 ? std::to_string(gone) + " known to be gone; " : "");
  if (count.IsHalf() && count.counted > 0) {
    return text + (count.has_vote ? "with" : "without") + " the casting vote)";
  }
  return text + "needed: " + std::to_string(count.counted == 0 ? 0 : count.counted / 2 + 1) + ")";
}

// The epochs that count: the newest that was met, all that were tried since, and the newest of this
// board, since none of its hosts may be here to tell of it. Sets `unknown` to an id whose epoch is
// not in the view, if there is one.
std::vector<const CountedEpoch*> EpochsThatCount(const QuorumView& view, std::string* unknown) {
  std::vector<const CountedEpoch*> met, all;
  const auto add = [&](const std::string& id, std::vector<const CountedEpoch*>& to) {
    const CountedEpoch* const epoch = FindEpoch(view, id);
    if (epoch == nullptr) *unknown = id;
    const bool is_new = std::find(to.begin(), to.end(), epoch) == to.end();
    if (epoch != nullptr && is_new) to.push_back(epoch);
  };
  for (const std::vector<HostPast>* const hosts : {&view.here, &view.gone}) {
    for (const HostPast& past : *hosts) {
      if (!past.seen.met.empty()) add(past.seen.met, met);
      for (const std::string& id : past.seen.tried) add(id, all);
    }
  }
  const auto newest = std::max_element(met.begin(), met.end(), [](const auto* a, const auto* b) {
    return a->number < b->number;
  });
  for (const CountedEpoch* const epoch : met) {
    if (epoch->number == (*newest)->number) add(epoch->id, all);
  }
  const bool is_told = view.formed && std::any_of(all.begin(), all.end(), [&](const auto* epoch) {
    return epoch->id == view.formed->id;
  });
  if (view.formed && !is_told) all.push_back(&*view.formed);
  return all;
}

}  // namespace

QuorumVerdict DecideQuorum(const QuorumView& view, const std::vector<std::string>& proposed) {
  Sets sets{proposed, SortedHosts(view.gone)};
  std::sort(sets.proposed.begin(), sets.proposed.end());
  const Names here = SortedHosts(view.here);
  for (const std::string& host : proposed) {
    KEEL_CHECK(Has(here, host), "host " << host << " is not registered here");
    KEEL_CHECK(!Has(sets.gone, host), "host " << host << " is gone");
  }
  QuorumVerdict verdict;
  std::string unknown;
  const std::vector<const CountedEpoch*> epochs = EpochsThatCount(view, &unknown);
  if (!unknown.empty()) {
    verdict.reason = QuorumReason::kUnknownEpoch;
    verdict.detail = "nobody has told the hosts of epoch " + unknown;
    return verdict;
  }
  verdict.may_form = true;
  verdict.reason = epochs.empty() ? QuorumReason::kFirst : QuorumReason::kMajority;
  verdict.detail = epochs.empty() ? "nobody here was in an epoch before" : "";
  for (const CountedEpoch* const epoch : epochs) {
    verdict.number = std::max(verdict.number, epoch->number + 1);
    verdict.counted.push_back(epoch->id);
    const Count count = CountHosts(*epoch, view, sets);
    if (!count.Suffices() && verdict.may_form) {
      // The first epoch that forbids it explains the verdict.
      verdict.may_form = false;
      verdict.reason = QuorumReason::kTooFew;
      verdict.detail = CountDetail(*epoch, count);
      verdict.missing = count.missing;
    }
    if (!verdict.may_form) continue;
    const bool by_vote = count.IsHalf() && count.counted > 0;
    if (by_vote) verdict.reason = QuorumReason::kCastingVote;
    if (by_vote || verdict.detail.empty()) verdict.detail = CountDetail(*epoch, count);
  }
  return verdict;
}

}  // namespace keel
