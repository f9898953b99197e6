// Trail: a rolling digest of every step's lane losses. Two runs agree up to step s exactly when
// their trails after s do.
// Promises   the trail after a step is XXH3-128 over the trail before it (16 bytes), the step, the
//            number of lanes, and each lane's loss as the bits of a float in lane order; all whole
//            numbers as 8 (losses as 4) little-endian bytes. It begins as 16 zero bytes.
// Does not   read losses as numbers: NaNs and signed zeros count by their bits.
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/digest.h"

namespace keel {

class Trail {
 public:
  Trail() = default;
  // Goes on from a saved trail.
  explicit Trail(const Digest& digest) : digest_(digest) {}

  void Add(uint64_t step, std::span<const float> lane_losses);

  const Digest& digest() const { return digest_; }
  std::string Hex() const { return digest_.Hex(); }
  bool operator==(const Trail&) const = default;

 private:
  Digest digest_;
};

}  // namespace keel
