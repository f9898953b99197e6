// LossScale: the factor by which fp16 training multiplies losses, so that small gradients do not
// vanish.
// Promises   a pure function of the steps' outcomes: every worker sees the same complete
//            gradients, so every worker holds the same numbers. The scale is a power of two, so
//            scaling and unscaling change no bit of what does not overflow or vanish.
// Does not   look at gradients (trainer/state/update.h does).
// Threads    a plain value.
#pragma once

#include <cstdint>

namespace keel {

struct LossScale {
  static constexpr double kMax = 1ull << 24;
  static constexpr double kMin = 1;

  double scale = 65536;
  uint64_t good_steps = 0;        // since the scale last changed
  uint64_t growth_interval = 2000;  // this many good steps double the scale

  // To be called once a step; `finite`: its gradients were. A step whose gradients were not is
  // skipped.
  void After(bool finite);
  bool operator==(const LossScale&) const = default;
};

}  // namespace keel
