// What of HTTP the sink needs: requests read from a socket, bytes written to it.
// Promises   a body is received where it stays. One that comes in signed chunks loses what is
//            between them.
// Threads    a reader serves one connection.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bench/ckpt/sink/server.h"

namespace keel {

class SinkReader {
 public:
  explicit SinkReader(int connection) : connection_(connection) {}

  // Nothing: the connection has ended, or says what is no request. `carry` is called for each piece
  // of a body, of `piece_max` bytes at most.
  std::optional<SinkRequest> Next(size_t piece_max, const std::function<void(uint64_t)>& carry);

 private:
  std::optional<std::string> Head();
  bool Body(uint64_t bytes, size_t piece_max, const std::function<void(uint64_t)>& carry,
            std::string* body);

  const int connection_;
  std::string ahead_;    // received, and not yet read
};

bool SendWhole(int connection, std::string_view bytes);
// First and count of "bytes=10-19", "bytes=10-" or "bytes=-10" of so many; nothing where there is
// no range; a count of 0 where none of it is there.
std::optional<std::pair<uint64_t, uint64_t>> ParseSinkRange(const std::string& text,
                                                            uint64_t bytes);

}  // namespace keel
