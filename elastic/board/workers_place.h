// WorkersPlace: where the workers of fixed hosts expect to meet, in the store of the first board.
// Threads    a plain value.
#pragma once

#include <cstdint>
#include <string>

namespace keel {

struct WorkersPlace {
  std::string host;        // as the user wrote it
  uint16_t port = 0;
  std::string bind = {};   // the numeric address at which that store listens; empty: all
};

}  // namespace keel
