// OwnThread(): a thread of this client, which leaves the program's signals to other threads.
// Promises   only signals that a thread causes itself, and real-time ones, reach it.
// Threads    any.
#pragma once

#include <functional>
#include <thread>

namespace keel {

std::thread OwnThread(std::function<void()> body);

}  // namespace keel
