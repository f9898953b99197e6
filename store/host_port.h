// Hosts and ports as people write them: "HOST:PORT", with brackets around an address that has
// colons.
// Promises   pure; an error names what is refused, and the form that is expected. ParseEndpoint()
//            reads back what AddressText() makes.
// Does not   look names up (store/resolve.h).
// Threads    any. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

struct HostPort {
  std::string host;
  std::optional<uint16_t> port;   // empty: none was given
  bool operator==(const HostPort&) const = default;
};
// "host:port", "host", "[2001:db8::1]:29400"; empty is localhost. An IPv6 address without brackets
// needs a port behind it.
Result<HostPort> ParseEndpoint(const std::string& text);

// "8090"; empty: the text is no port.
std::optional<uint16_t> PortIn(std::string_view text);

// "10.0.0.7:4711", "[2001:db8::7]:4711"
std::string AddressText(const std::string& address, uint16_t port);

// A numeric address unchanged, or that of localhost; empty: the host would have to be looked up.
std::optional<std::string> NumericHost(const std::string& host);

}  // namespace keel
