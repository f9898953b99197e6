// Politeness: a child that takes what processors others leave until it is needed: one that is
// started as a replacement beside workers that train (ChildSpec::polite).
// Promises   where others leave nothing it still gets about a tenth of a processor, so that it
//            comes up in the end. What EndPoliteness() was told of runs as others do from then on,
//            with the threads and processes that it has started; what such a thread had lowered
//            further stays lower.
// Does not   work where the system does not let a process raise its priority again (an ordinary
//            user without `ulimit -e`): CanEndPoliteness() says so, and nobody may be polite then.
// Threads    any.
// Errors     none: what the system refuses is logged.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/clock.h"

namespace keel {

bool CanEndPoliteness();

// For Spawn(), between fork and exec, in a session of its own: it lowers that and the calling
// thread, and makes system calls only.
void BecomePolite();

// Of the session and process group that `leader` leads. False: the kernel takes no such change now,
// since others have made one a moment ago, and nothing has changed; call it again after
// kPoliteAgain.
bool EndPoliteness(pid_t leader);
// The kernel takes a change of a session from ordinary users so seldom, from all of them together.
inline constexpr Duration kPoliteAgain = std::chrono::milliseconds(100);

}  // namespace keel
