// Numeric names: keeps reverse DNS off the recovery path.
// c10d writes the name of every peer into its log text and asks the name service for it: in the client on
// each connect and, on each accept, in the store's only thread. One lost answer stops the store of the
// whole job for 5 s. A program that links this file answers such look-ups with the number itself.
// Promises   no getnameinfo() of this program, nor of the libraries it loads, ever leaves the machine.
// Does not   change forward look-ups (store/resolve.h does those once, at the start).
// Threads    any.
#pragma once

namespace keel {

// Whether getnameinfo() really is ours here. Calling it also makes the linker take this file.
bool NumericNamesActive();

}  // namespace keel
