// ResolveHost: turns a name into a number once, at the start; from then on only numbers are used.
// Promises   ends within its limit whatever the name service does; a number needs no name service,
//            and neither does "localhost", which is 127.0.0.1.
// Does not   cache, or try again. The reverse, from a number to its name, is for finding faults
//            (elastic/doctor/doctor.h): no job ever uses it.
// Threads    any. A look-up that outlives its limit goes on in a thread of its own until libc gives
//            up.
// Errors     kTimeout (the name service is silent), kNotFound (no such name), kInvalid.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

// The name that the name service has for a numeric address.
Result<std::string> NameOfAddress(const std::string& number, Duration limit);

// All addresses that a name has, IPv4 first; of a number that one.
Result<std::vector<std::string>> ResolveAll(const std::string& host, Duration limit);

// Whether other programs of this machine can look that host up, too, "localhost" among others.
bool IsHostKnown(const std::string& host, Duration limit);

// "10.0.0.7" or "2001:db8::7" for a host name or a number: the first of its addresses.
Result<std::string> ResolveHost(const std::string& host, Duration limit);

}  // namespace keel
