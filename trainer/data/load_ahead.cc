// Says which request follows which.
#include "trainer/data/load_ahead.h"

namespace keel {

std::optional<LoadRequest> LoadOrder::After(const LoadRequest& request) const {
  LoadRequest next = request;
  if (request.lane + 1 < lanes.end) {
    ++next.lane;
    return next;
  }
  ++next.step;
  next.cursor += samples_per_step;
  next.lane = lanes.begin;
  if (next.step >= steps) return std::nullopt;
  return next;
}

}  // namespace keel
