// FreePort: a TCP port for a server that a test is about to start.
// Promises   nobody listens on it now; no other call gives it again, in this process or, while this
//            one lives, in another; the kernel does not give it to outgoing connections.
// Does not   keep it from programs that choose a fixed port.
// Threads    any.
#pragma once

#include <cstdint>

namespace keel {

uint16_t FreePort();

}  // namespace keel
