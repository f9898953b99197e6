// EarlyStop: what becomes of signals that ask a program to stop before it has somebody who acts on
// them. LibTorch's own initialisers take half a second before main().
// Promises   in every program that this is linked into, and that no supervisor has started, from
//            before the first initialiser of any library on: SIGTERM, SIGINT or SIGUSR1 ends it at
//            once with kExitStopped, for nothing is lost, and says so on stderr; SIGUSR2 is passed
//            over, for there is nothing to save. A signal that somebody ignores stays ignored.
// Does not   reach back to when the system maps and links the program's libraries: none of its code
//            runs then, and a signal ends it as any program. A worker of a supervisor needs none of
//            this: its supervisor knows what it told whom.
// Threads    EndEarlyStop() by the main thread, before there are others.
#pragma once

namespace keel {

// Signals do again what they always do. Whoever wants to act on them instead
// (elastic/process/stop_signals.h) holds them back before.
void EndEarlyStop();

}  // namespace keel
