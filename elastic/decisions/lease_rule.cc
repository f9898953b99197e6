// First whether the lease has a say, then whether the next number may be claimed, then how long to
// wait for others who have a quorum.
#include "elastic/decisions/lease_rule.h"

#include <algorithm>

#include "elastic/protocol/limits.h"

namespace keel {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsByLease(const QuorumView& view, const std::string& id) {
  const auto is_it = [&](const CountedEpoch& one) { return one.id == id && one.by_lease; };
  return (view.formed && is_it(*view.formed)) ||
         std::any_of(view.epochs.begin(), view.epochs.end(), is_it);
}

// Whether a host here has found an epoch that counts in the lease: then others may have, too. All
// know it of an epoch that has no quorum.
bool IsBound(const QuorumView& view, const QuorumVerdict& quorum) {
  const bool is_any_by_lease =
      std::any_of(quorum.counted.begin(), quorum.counted.end(),
                  [&](const std::string& id) { return IsByLease(view, id); });
  const auto has_found = [&](const HostPast& past) {
    return Contains(quorum.counted, past.seen.linked);
  };
  return is_any_by_lease || std::any_of(view.here.begin(), view.here.end(), has_found);
}

// Whether all hosts of each epoch that counts have found it in the lease, so that none of them
// forms another one past the lease.
bool IsShared(const QuorumView& view, const QuorumVerdict& quorum) {
  const auto is_shared = [&](const std::string& id) {
    return IsByLease(view, id) ||
           std::any_of(view.here.begin(), view.here.end(),
                       [&](const HostPast& past) { return past.seen.shared == id; });
  };
  return !quorum.counted.empty() &&
         std::all_of(quorum.counted.begin(), quorum.counted.end(), is_shared);
}

LeaseVerdict MayForm(bool claims, std::string detail) {
  return {true, claims, false, std::move(detail), ""};
}

LeaseVerdict MayNot(std::string detail, std::string cure) {
  return {false, false, false, std::move(detail), std::move(cure)};
}

std::string HolderText(const LinkView& lease) {
  return PlaceText(lease.link.place) + " (" + lease.detail + ")";
}

// Whether some host here tells that it was one of the newest epoch of the chain. That others name
// it there proves nothing: it may have gone to another board since it last wrote on this one.
bool IsOfLink(const QuorumView& view, const LinkRecord& link) {
  if (link.epoch.empty()) return false;
  return std::any_of(view.here.begin(), view.here.end(), [&](const HostPast& past) {
    return past.seen.met == link.epoch || Contains(past.seen.tried, link.epoch);
  });
}

}  // namespace

bool IsLeaseLost(const std::optional<LinkView>& lease, const std::string& id) {
  return !lease || !lease->is_seen || lease->link.epoch != id;
}

std::optional<BoardPlace> HeldElsewhere(const LinkView& lease, const QuorumView& view) {
  const bool is_elsewhere = lease.is_seen && lease.number > 0 && !lease.is_ours && !lease.is_over;
  if (!is_elsewhere || !lease.is_there || IsOfLink(view, lease.link)) return std::nullopt;
  return lease.link.place;
}

LeaseVerdict DecideLease(const LinkView& lease, const QuorumView& view,
                         const QuorumVerdict& quorum, Duration waited) {
  const bool is_first = quorum.counted.empty();
  const bool is_bound = IsBound(view, quorum);
  const bool has_a_say = is_first || is_bound;
  if (!lease.is_seen) {
    if (quorum.may_form && !has_a_say) return MayForm(false, quorum.detail);
    return MayNot("the job's lease cannot be used: " + lease.detail,
                  "bring its directory back, on this host");
  }
  const bool is_of_it = IsOfLink(view, lease.link);
  const bool is_own_opening = lease.is_ours && lease.link.epoch.empty();
  const bool is_empty = lease.number == 0;
  // Where a host here has found an epoch in the lease, a lease without any is another one.
  const bool is_free = is_of_it || is_own_opening || lease.is_over || (is_empty && !is_bound);
  if (!is_free) {
    if (quorum.may_form && !has_a_say) return MayForm(false, quorum.detail);
    if (is_empty) {
      return MayNot("the job's lease has no claim, although a host here has found one: it is not "
                    "the lease of that host",
                    "name the same directory on all hosts");
    }
    return MayNot("the job goes on at " + HolderText(lease), "");
  }
  if (quorum.may_form) return MayForm(true, quorum.detail);
  if (!is_of_it || !IsShared(view, quorum)) {
    return MayNot("others may go on without these hosts: " + quorum.detail +
                      (is_of_it ? "; not all hosts of that epoch have found it in the job's lease"
                                : ""),
                  "");
  }
  const std::string standing = "a host of the newest epoch of the lease is here, outside it";
  if (lease.is_ours || waited >= kLeaseCourtesy) {
    return {true, true, true, quorum.detail + ", but " + standing, ""};
  }
  return MayNot(quorum.detail + "; " + standing + ", so these hosts go on if nobody else does", "");
}

}  // namespace keel
