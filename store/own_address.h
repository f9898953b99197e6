// OwnAddressTowards: which of this host's addresses packets to another host leave from.
// Promises   sends nothing and asks nobody: the kernel's routes tell.
// Does not   know whether the other host is there, or can answer that address.
// Threads    any.
#pragma once

#include <netinet/in.h>

#include <string>

namespace keel {

// `number`: a numeric address, of this host or another. Empty: there is no way to it.
std::string OwnAddressTowards(const std::string& number);

// "10.0.0.7" or "2001:db8::7"; empty: it is neither IPv4 nor IPv6.
std::string NumericAddress(const sockaddr* address);

}  // namespace keel
