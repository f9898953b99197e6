// QuietThread: a thread of ours that receives none of the program's signals.
// Promises   signals meant for the process go to other threads. Those that a thread causes itself
//            (SIGSEGV and the like), and the one that asks for its stack
//            (elastic/process/stack_signal.h), still reach it. It has a name, for ps, gdb and
//            stacks.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace keel {

// `name` is cut to the 15 bytes that the kernel keeps.
std::thread StartQuietThread(const std::string& name, std::function<void()> body);

}  // namespace keel
