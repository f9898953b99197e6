// LeaseRule: whether these hosts may form the next epoch of a job that has a lease.
//
// The claims of the lease are a chain: each forms an epoch, or goes on with one, and each number is
// claimed once. A host that tells here that it was in the newest epoch of the chain, and is outside
// it, shows that the epoch stands still, for it needs all of its hosts. So whoever has such a host
// and claims the next number may form an epoch, however few its hosts are, and whatever clocks do.
//
// An epoch without a quorum runs only while its coordinator holds the lease: its beat rises. So a
// claim whose beat stands still for longer protects nothing that others with a quorum could harm.
// Its hosts never count it as met, so that the next one needs a quorum of the one before it, too,
// or has none either.
//
// Promises   an epoch that is formed without a quorum is formed by this chain, and from an epoch
//            all of whose hosts have found it there. One that is formed with a quorum goes through
//            the chain as well, once a host here has found an epoch that counts there. So no two of
//            them run at once.
// Does not   read or claim the lease (elastic/board/lease_hand.h). Protect a job whose hosts have
//            all lost the lease's place and each other, and go on, from newcomers who find that the
//            beat of the last claim stands still: they begin anew.
// Needs      what quorum.h needs, and that the hosts proposed have been in no epoch since they told
//            their past.
// Threads    pure functions over plain values.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "elastic/decisions/quorum.h"
#include "elastic/protocol/records.h"

namespace keel {

// The newest claim, as this host saw it last.
struct LinkView {
  bool is_seen = false;       // lately
  int64_t number = 0;         // 0: there is no claim yet
  LinkRecord link;            // empty, too, where it is damaged
  bool is_ours = false;       // this launcher has claimed it, and holds it
  bool is_over = false;       // it was released, or its beat stands still, or its launcher is dead
  bool is_there = false;      // its board can be reached
  std::string detail;         // why it is not seen; else what is known of its holder
  bool operator==(const LinkView&) const = default;
};

struct LeaseVerdict {
  bool may_form = false;
  bool claims = false;        // the next number of the lease comes first
  bool by_lease = false;      // it has no quorum, and runs only while the lease is held
  std::string detail;
  std::string cure;           // what a person can do
};

// `waited`: for how long there has been no way to form one.
LeaseVerdict DecideLease(const LinkView& lease, const QuorumView& view,
                         const QuorumVerdict& quorum, Duration waited);

// Whether an epoch that has no quorum must break. `id`: the epoch's.
bool IsLeaseLost(const std::optional<LinkView>& lease, const std::string& id);

// Where the job goes on, if that is elsewhere: another launcher, which can be reached, holds the
// lease for hosts of which none is here.
std::optional<BoardPlace> HeldElsewhere(const LinkView& lease, const QuorumView& view);

}  // namespace keel
