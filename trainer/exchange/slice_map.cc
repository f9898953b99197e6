// Equal shares of whole blocks; the last block may be cut short.
#include "trainer/exchange/slice_map.h"

#include <algorithm>

namespace keel {

int64_t SliceMap::Begin(int number) const {
  const int64_t blocks = (elements_ + kBlock - 1) / kBlock;
  return std::min(elements_, blocks * number / world_ * kBlock);
}

Slice SliceMap::Of(int rank) const {
  const int number = (rank + turn_) % world_;
  return {Begin(number), Begin(number + 1) - Begin(number)};
}

std::vector<Slice> SliceMap::ChunksOf(int rank, int64_t most) const {
  const Slice slice = Of(rank);
  std::vector<Slice> chunks;
  for (int64_t done = 0; done < slice.count; done += most) {
    chunks.push_back({slice.begin + done, std::min(most, slice.count - done)});
  }
  return chunks;
}

}  // namespace keel
