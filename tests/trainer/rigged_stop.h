// A rigged stop: linked into a test's program, it lets one worker of a real, whole job stand still
// at a chosen moment. The moment is one of the program's own (StandStillIfRigged), a position that
// the worker tells, or a look into another worker's memory.
// KEEL_RIGGED_STOP names a file with one rule, which is removed as it strikes, so that it strikes
// one worker once:
//   RANK MOMENT NTH HOW
//   RANK     LOCAL_RANK of the process as it was started
//   MOMENT   a pattern as the shell's: of the program's moments ("forward"), of "at PLACE" for a
//            position ("at*voting*"), or "read" for a look into memory
//   NTH      strikes at that one of the moments that match
//   HOW      stop: SIGSTOP, of the whole process; stand: this thread sleeps for ever
// Promises   who is struck tells it first: "rigged HOW at MOMENT pid N".
// Threads    any.
#pragma once

#include <string>

namespace keel {

void StandStillIfRigged(const std::string& moment);

}  // namespace keel
