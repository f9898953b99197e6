// Shun: which host the job leaves out, since its machine is not to be trusted (PROTOCOL.md,
// section 9).
// Promises   one decision, with its reason in words. Nobody is left out where fewer hosts than the
//            minimum could take part then; that is said once for each death. Where workers of most
//            hosts die, it is not the machines: nobody is left out for that, and at most half of
//            all hosts that there ever were, but for those that have come back forgiven. Nobody
//            counts as staying who would be refused next, since a host of its machine is out.
// Threads    pure functions over plain values.
#pragma once

#include <optional>

#include "elastic/decisions/membership.h"

namespace keel {

std::optional<Decision> DecideShun(const JobView& view, const JobPolicy& policy, TimePoint now);

}  // namespace keel
