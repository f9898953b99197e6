// LineFramer: puts bytes that arrive in pieces together again to lines.
// Promises   gives every whole line once, in order, however the bytes were cut; holds at most one
//            unfinished line of `bytes_max` bytes. Lines in front of one that is too long are given
//            all the same; behind it there are none any more.
// Does not   read anything, or give a line that never got its line feed.
// Threads    a plain value: one thread at a time.
// Errors     kCorrupt: a line is too long.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

class LineFramer {
 public:
  explicit LineFramer(size_t bytes_max) : bytes_max_(bytes_max) {}

  // After an error every further call gives the same one.
  Status Feed(std::string_view bytes);
  // The oldest line that was not yet given, without its line feed.
  std::optional<std::string> Next();
  // How much of an unfinished line is held: not 0 at the end means that the end was cut off.
  size_t partial_bytes() const { return partial_.size(); }

 private:
  const size_t bytes_max_;
  bool broken_ = false;
  std::string partial_;
  std::deque<std::string> lines_;
};

}  // namespace keel
