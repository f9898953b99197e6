// The scale is halved by a step that overflows, and doubled after many that do not.
#include "trainer/loss_scale.h"

#include <algorithm>

namespace keel {

void LossScale::After(bool finite) {
  if (!finite) {
    scale = std::max(kMin, scale / 2);
    good_steps = 0;
    return;
  }
  if (++good_steps < growth_interval) return;
  scale = std::min(kMax, scale * 2);
  good_steps = 0;
}

}  // namespace keel
