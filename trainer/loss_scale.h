// LossScale: by how much fp16 training multiplies losses, so that small gradients do not vanish.
// Promises   a pure function of the steps' outcomes: since every worker sees the same complete
//            gradients, every worker holds the same numbers. The scale is a power of two, so that
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
  uint64_t growth_interval = 2000;  // so many good steps double it

  // Once a step: `finite` says whether its gradients were. A step that was not is skipped.
  void After(bool finite);
  bool operator==(const LossScale&) const = default;
};

}  // namespace keel
