// TwoAddresses: a name that has two addresses, whatever the machine's name service says. In the
// program that links two_addresses.cc, getaddrinfo() has 127.0.0.2 for it, and then 127.0.0.1.
// Threads    any.
#pragma once

namespace keel {

inline constexpr const char* kTwoAddresses = "two-addresses.test";

}  // namespace keel
