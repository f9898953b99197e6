// Counting elements says where lines end.
#include "tools/keel/value_lines.h"

#include "tools/keel/numbers.h"

namespace keel {

ValueLines::ValueLines(Dtype dtype, const std::vector<int64_t>& shape) : dtype_(dtype) {
  if (shape.size() < 2) return;
  for (const int64_t size : shape) {
    if (size == 0) return;  // nothing will come, and the other sizes may be huge
  }
  width_ = static_cast<uint64_t>(shape.back());
  uint64_t block = width_;
  for (size_t axis = shape.size() - 1; axis-- > 1;) {
    block *= static_cast<uint64_t>(shape[axis]);
    blocks_.push_back(block);
  }
}

void ValueLines::Append(std::span<const std::byte> elements, std::string* to) {
  const size_t step = DtypeBytes(dtype_);
  for (size_t at = 0; at < elements.size(); at += step) {
    if (done_ % width_ != 0) {
      *to += ' ';
    } else {
      // Before what follows, so that none stands at the end.
      for (const uint64_t block : blocks_) {
        if (done_ > 0 && done_ % block == 0) *to += '\n';
      }
    }
    *to += ElementText(dtype_, elements.data() + at);
    if (++done_ % width_ == 0) *to += '\n';
  }
}

}  // namespace keel
