// Looks at the store first, since without it nothing else can be known.
#include "elastic/decisions/host_wait.h"

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

}  // namespace keel
