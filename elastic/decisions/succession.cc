// Names the heirs, asks one of them when the own host leaves, and leaves the board.
#include "elastic/decisions/succession.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace keel {
namespace {

const HostView* FindHost(const JobView& job, const std::string& incarnation) {
  const HostView* found = nullptr;
  for (const HostView& host : job.hosts) {
    if (host.record.incarnation == incarnation) found = &host;   // the newest of its slots counts
  }
  return found;
}

// The hosts that stay, but for the coordinator's: those of the epoch first, by group rank.
std::vector<const HostView*> Staying(const JobView& job) {
  std::vector<const HostView*> staying;
  for (const HostView& host : job.hosts) {
    // While the whole job stops, somebody must still see to its end.
    const bool is_member = host.record.state == MemberState::kMember ||
                           (job.stop && host.record.state == MemberState::kLeaving);
    const bool stays = !host.gone && is_member;
    if (stays && host.record.incarnation != job.coordinator) staying.push_back(&host);
  }
  const auto rank_of = [&](const HostView* host) {
    const EpochHost* const member =
        job.epoch ? job.epoch->record.FindHost(host->slot, host->record.incarnation) : nullptr;
    return member != nullptr ? int64_t{member->group_rank} : int64_t{1} << 32;
  };
  std::stable_sort(staying.begin(), staying.end(), [&](const HostView* a, const HostView* b) {
    return rank_of(a) < rank_of(b);
  });
  return staying;
}

std::vector<Heir> HeirsAmong(const std::vector<const HostView*>& staying, const JobView& job) {
  const HostView* const own = FindHost(job, job.coordinator);
  const std::string numerics = own != nullptr ? own->record.fingerprint : "";
  std::vector<Heir> heirs;
  for (const HostView* const host : staying) {
    if (heirs.size() == kHeirsMax) break;
    if (!CanCoordinate(*host, numerics, job)) continue;
    heirs.push_back({host->record.incarnation, host->record.peer});
  }
  return heirs;
}

// Whether `holds` for each host that the epoch was formed with. A record that was taken up names
// only those that have come.
template <class Test>
bool HoldsForAll(const EpochView& epoch, const JobView& job, Test holds) {
  const auto counted = std::find_if(job.counted.begin(), job.counted.end(), [&](const auto& one) {
    return one.id == epoch.record.id;
  });
  if (counted == job.counted.end() || counted->hosts.size() != epoch.record.hosts.size()) {
    return false;
  }
  return std::all_of(epoch.record.hosts.begin(), epoch.record.hosts.end(),
                     [&](const EpochHost& member) {
                       const HostView* const host = FindSlot(job.hosts, member.slot);
                       return host != nullptr && host->record.incarnation == member.incarnation &&
                              holds(host->record);
                     });
}

// Whether all hosts of the epoch tell that they have taken it.
bool AllHaveTaken(const EpochView& epoch, const JobView& job) {
  return HoldsForAll(epoch, job, [&](const MemberRecord& record) {
    return record.epoch.id == epoch.record.id;
  });
}

// Whether all hosts of the epoch tell that they have found it in the job's lease.
bool AllHaveLinked(const EpochView& epoch, const JobView& job) {
  return HoldsForAll(epoch, job, [&](const MemberRecord& record) {
    return record.seen.linked == epoch.record.id;
  });
}

// Whether the coordinator's own host goes, and the job is to go on without it.
bool Leaves(const SuccessionView& view, size_t staying) {
  const HostView* const own = FindHost(view.job, view.job.coordinator);
  if (own == nullptr || own->record.state == MemberState::kMember || own->record.refused) {
    return false;
  }
  return !view.job.stop && static_cast<int>(staying) >= std::max(view.hosts_min, 1);
}

void Choose(Succession& next, TimePoint now) {
  const auto fits = [&](const Heir& heir) { return !next.passed_over.contains(heir.incarnation); };
  auto& heirs = next.record.heirs;
  auto heir = std::find_if(heirs.begin(), heirs.end(), fits);
  if (heir == heirs.end()) {   // all were silent: once more from the first
    next.passed_over.clear();
    heir = heirs.begin();
  }
  if (heir == heirs.end()) return;
  next.record.chosen = heir->incarnation;
  next.chosen_at = now;
}

}  // namespace

bool CanCoordinate(const HostView& host, const std::string& numerics, const JobView& job) {
  const std::string& own = host.record.fingerprint;
  const bool differs = !numerics.empty() && !own.empty() && own != numerics;
  return !host.record.peer.empty() && !differs && !job.IsShunned(host);
}

Succession NextSuccession(Succession before, const SuccessionView& view, TimePoint now) {
  Succession next = std::move(before);
  SuccessionRecord& record = next.record;
  if (record.moved) return next;
  const std::vector<const HostView*> staying = Staying(view.job);
  record.heirs = HeirsAmong(staying, view.job);
  const std::optional<EpochView>& epoch = view.job.epoch;
  if (epoch && record.met != epoch->record.id && AllHaveTaken(*epoch, view.job)) {
    record.met = epoch->record.id;
  }
  if (epoch && record.met == epoch->record.id && AllHaveLinked(*epoch, view.job)) {
    record.shared = record.met;
  }
  if (view.held) {
    record.moved = view.held;
    return next;
  }
  const bool is_asked_for = view.offer && !record.chosen.empty() &&
                            view.offer->by == record.chosen && view.offer->term > record.term;
  if (view.offer && (is_asked_for || IsAhead(*view.offer, view.here))) {
    record.moved = view.offer;
    return next;
  }
  if (!Leaves(view, staying.size())) return next;
  if (!next.leaving_since) next.leaving_since = now;
  const bool is_silent = !record.chosen.empty() && now - next.chosen_at >= kHeirLimit;
  if (is_silent) next.passed_over.insert(record.chosen);
  if (record.chosen.empty() || is_silent) Choose(next, now);
  return next;
}

TimePoint NextSuccessionLook(const Succession& succession) {
  const bool waits = !succession.record.chosen.empty() && !succession.record.moved;
  return waits ? succession.chosen_at + kHeirLimit : kNever;
}

bool IsHandingOver(const Succession& succession, TimePoint now) {
  return succession.leaving_since && !succession.record.moved &&
         now - *succession.leaving_since < kHandOverPatience;
}

}  // namespace keel
