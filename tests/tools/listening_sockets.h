// ListeningSockets: on which TCP ports a process listens.
// Promises   a socket's number is its own for ever, while a port may be given to another program.
// Does not   see sockets of another network namespace.
// Threads    any. Errors: a process that is gone listens nowhere.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>

namespace keel {

// The ports by the sockets' numbers.
std::map<uint64_t, uint16_t> ListeningSockets(pid_t pid);
// The sockets of all processes.
std::set<uint64_t> AllListeningSockets();

}  // namespace keel
