// Looks at the store first, since without it nothing else can be known.
#include "elastic/decisions/host_wait.h"

#include <algorithm>

#include "elastic/decisions/host_machine.h"

namespace keel {

std::optional<HostWait> HostMachine::WaitsFor(TimePoint now) const {
  if (mode_ != Mode::kMember) return std::nullopt;
  if (!contact_) {
    return HostWait{"the store, which has not been reached yet", born_, StoreDeadline(),
                    "start the host of the endpoint with the same endpoint and job id, and let "
                    "this one reach its port"};
  }
  if (now - *contact_ >= kBeatLimit) {
    return HostWait{"the store, which was last reached " + DurationText(now - *contact_) + " ago",
                    *contact_, StoreDeadline(),
                    "nothing, if enough other hosts are there, for one of them takes its place; "
                    "otherwise start its host again"};
  }
  const bool has_epoch = epoch_ && !epoch_over_;
  if (has_epoch || coordinates_) return std::nullopt;   // the coordinator tells its own
  return HostWait{"the coordinator to form an epoch with this host", outside_since_, kNever,
                  "the log of the store's host says what it waits for"};
}

// A host that leaves with the whole job, and has no worker left, waits for the coordinator to say
// the end on the board. Nobody can while the store is away, so there is no more to wait for than in
// a job that goes on. Workers that still save have their time all the same.
TimePoint HostMachine::StoreDeadline() const {
  const bool waits_for_end = mode_ == Mode::kLeaving && job_stops_ && slot_ && !AnyProcess();
  if (mode_ != Mode::kMember && mode_ != Mode::kFencing && !waits_for_end) return kNever;
  return std::max(store_grace_, contact_ ? *contact_ + config_.store_limit
                                         : born_ + config_.join_limit);
}

}  // namespace keel
