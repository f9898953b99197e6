// RangeSink: puts the bytes of an answer where they were asked for, whatever part of the object the
// answer brings.
// Promises   nothing is written outside of `into`; what a try before it brought is written over.
//            Flaw() is empty only if all bytes came that the object has there.
// Threads    Take() on the transport's thread; the rest once the answer has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "store/s3/transport.h"

namespace keel {

class RangeSink {
 public:
  RangeSink(uint64_t offset, std::span<std::byte> into) : offset_(offset), into_(into) {}

  bool Take(const HttpAnswer& answer, std::span<const std::byte> piece);
  std::string Flaw(const HttpAnswer& answer) const;
  size_t filled() const { return filled_; }

 private:
  const uint64_t offset_;
  const std::span<std::byte> into_;
  uint64_t first_ = 0;         // the place in the object of the answer's first byte
  size_t filled_ = 0;
};

}  // namespace keel
