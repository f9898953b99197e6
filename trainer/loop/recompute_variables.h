// The variables by which `keel recompute` tells a training program what to do in place of training.
#pragma once

namespace keel {

// The evidence file of the lane that it is to compute, and where it writes what came of it, as
// JSON.
inline constexpr const char* kRecomputeVariable = "KEEL_RECOMPUTE";
inline constexpr const char* kRecomputedVariable = "KEEL_RECOMPUTED";

}  // namespace keel
