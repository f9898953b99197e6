// Own addresses: this host's name and addresses, and the address from which packets to another host
// leave.
// Promises   sends nothing and asks no other host: the kernel's interfaces and routes tell.
// Does not   know whether the other host is there, or can answer that address.
// Threads    any.
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

namespace keel {

// `number`: a numeric address, of this host or another. Empty: no route leads to it.
std::string OwnAddressTowards(const std::string& number);

// "10.0.0.7" or "2001:db8::7"; empty: it is neither IPv4 nor IPv6.
std::string NumericAddress(const sockaddr* address);

// The name that the system has for this host.
std::string OwnHostName();
// The numeric addresses of this host's interfaces.
std::vector<std::string> OwnAddresses();
bool IsLoopback(const std::string& address);

}  // namespace keel
