// ProbeObjects: whether a store does what commits and leases in it rest on.
// Promises   asks with objects of its own below the prefix, and removes them: of two puts where
//            nothing is, the second is refused; a list shows what was put just before.
// Threads    any. Errors: kInvalid where the store fails, with what that means; else those of
//            base/objects.h.
#pragma once

#include <string>

#include "base/objects.h"
#include "base/random.h"
#include "base/result.h"

namespace keel {

// `prefix`: "run/a/", or "" for the whole bucket. `way_out`: a clause that ends the advice where a
// store ignores conditions.
Status ProbeObjects(Objects& bucket, const std::string& prefix, Random& random,
                    const std::string& way_out = "");

}  // namespace keel
