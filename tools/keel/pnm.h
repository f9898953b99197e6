// Pnm: pictures in the binary formats of Netpbm, P5 (grey) and P6 (colour), with 8 bits a value.
// Promises   pixels as models take them: all of one channel, row by row, then the next channel.
// Threads    any; pure functions.
// Errors     kInvalid: it is no such picture, has more than 8 bits, or ends early.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

struct Picture {
  int64_t channels = 1;
  int64_t height = 0;
  int64_t width = 0;
  std::string pixels = {};
};

Result<Picture> ParsePnm(std::string_view file);

}  // namespace keel
