// TellMisused: a program that did not understand its command line says so to its launcher, which
// would start the same command again and again.
// Promises   without a launcher it does nothing.
// Threads    the main thread, before it trains; the program ends afterwards.
#pragma once

#include <string>

namespace keel {

// `why`: what the program also prints.
void TellMisused(const std::string& why);

}  // namespace keel
