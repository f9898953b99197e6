// MemberEvent: what a host reads on the board of its job: about itself, the epochs and the end.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "elastic/protocol/records.h"

namespace keel {

struct Registered { int64_t slot = 0; };
struct KindKnown { JobKind kind = JobKind::kForeign; };
struct EpochSeen { EpochRecord epoch; };      // the board names this epoch now
struct BreakSeen { BreakRecord record; };
struct JoiningSeen { int64_t epoch = 0; };
struct StopSeen { StopRecord stop; };
struct EndSeen { EndRecord end; };
struct ShunnedSeen { ShunnedRecord record; };
struct PresenceSeen { std::string address; };
struct SuccessionSeen { SuccessionRecord record; };
struct LinkSeen { std::string epoch; };       // the job's lease names this epoch now, by its id
struct Buried { Tombstone tombstone; };       // taken for dead, refused or shunned
using MemberEvent = std::variant<Registered, KindKnown, EpochSeen, BreakSeen, JoiningSeen, StopSeen,
                                 EndSeen, ShunnedSeen, PresenceSeen, SuccessionSeen, LinkSeen,
                                 Buried>;

}  // namespace keel
