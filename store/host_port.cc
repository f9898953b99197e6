// The last colon precedes the port, unless brackets end the text.
#include "store/host_port.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.h"

namespace keel {
namespace {

bool IsNumericV6(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// Only IPv6 addresses have colons. Where one without brackets has lost its end to the port, as
// "fd00::2" has, what is left is mostly none.
bool IsHost(const std::string& host) {
  const bool is_plain = std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == ':' || c == '-';
  });
  const bool has_colon = host.find(':') != std::string::npos;
  return !host.empty() && is_plain && (!has_colon || IsNumericV6(host));
}

std::string_view WithoutBrackets(std::string_view host) {
  const bool has_both = host.size() > 1 && host.front() == '[' && host.back() == ']';
  return has_both ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

std::optional<uint16_t> PortIn(std::string_view text) {
  const Result<int64_t> number = ParseInteger(Trim(text));
  if (!number.ok() || *number < 0 || *number > 65535) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

Result<HostPort> ParseEndpoint(const std::string& text) {
  const std::string_view trimmed = Trim(text);
  if (trimmed.empty()) return HostPort{"localhost", std::nullopt};
  const bool is_bare_address = trimmed.front() == '[' && trimmed.back() == ']';
  const size_t colon = is_bare_address ? std::string_view::npos : trimmed.rfind(':');
  HostPort endpoint{std::string(WithoutBrackets(trimmed.substr(0, colon))), std::nullopt};
  if (colon != std::string_view::npos) {
    endpoint.port = PortIn(trimmed.substr(colon + 1));
    if (!endpoint.port) return MustBe(text, "HOST[:PORT] with a port from 0 to 65535");
  }
  if (IsHost(endpoint.host)) return endpoint;
  return MustBe(text, "HOST[:PORT]: a name, an IPv4 address, or an IPv6 address in brackets");
}

std::string AddressText(const std::string& address, uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

std::optional<std::string> NumericHost(const std::string& host) {
  if (host == "localhost") return "127.0.0.1";
  in_addr ignored;
  const bool is_numeric = inet_pton(AF_INET, host.c_str(), &ignored) == 1 || IsNumericV6(host);
  return is_numeric ? std::optional(host) : std::nullopt;
}

}  // namespace keel
