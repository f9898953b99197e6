// StatusAddress: the numeric address of the status page, since looking up a name could take long.
// Promises   pure; an error names what is refused, and the form that is expected.
// Threads    any. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace keel {

struct StatusAddress {
  std::string address = "127.0.0.1";
  uint16_t port = 0;      // 0: a free one
  std::string token = {}; // empty: none is needed
  bool operator==(const StatusAddress&) const = default;
};
// "127.0.0.1:8090", "[::]:8090"; ":8090" and "8090" mean the loopback. Without a token.
Result<StatusAddress> ParseStatusAddress(const std::string& text);

}  // namespace keel
