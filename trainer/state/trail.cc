// One step of the rolling digest.
#include "trainer/state/trail.h"

#include <bit>

namespace keel {

static_assert(std::endian::native == std::endian::little, "numbers are hashed as they lie");

void Trail::Add(uint64_t step, std::span<const float> lane_losses) {
  const uint64_t head[] = {step, lane_losses.size()};
  Digester digester;
  digester.Update(digest_.bytes);
  digester.Update(std::as_bytes(std::span(head)));
  digester.Update(std::as_bytes(lane_losses));
  digest_ = digester.Current();
}

}  // namespace keel
