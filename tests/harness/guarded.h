// RunGuarded: runs a test program so that it can leave no process behind, also when it is killed.
// Promises   the body runs in a child that dies with its guard; orphans fall to the guard, which
//            kills all of them at the end, names each that was still alive, and makes the run fail
//            for it. Signals that ask the guard to stop are passed on to the child.
// Does not   survive SIGKILL on the guard itself: the test process and the programs it started die
//            then, their own children need not.
// Threads    call in main(), before the first thread exists: it forks.
#pragma once

#include <functional>

namespace keel {

// The exit code for the process: the body's, or 128 + signal when it was killed, or 1 for
// leftovers.
int RunGuarded(const std::function<int()>& body);

}  // namespace keel
