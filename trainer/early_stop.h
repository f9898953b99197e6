// EarlyStop: what signals do that ask a program to stop before anything in it can act on them.
// LibTorch's own initialisers take half a second before main().
// Promises   it works in every program that is linked with this and was not started by a
//            supervisor, from before the first initialiser of any library on. SIGTERM, SIGINT or
//            SIGUSR1 ends the program at once with kExitStopped, since nothing is lost, and a line
//            on stderr. SIGUSR2 is ignored, since there is nothing to save. A signal that was
//            ignored stays ignored.
// Does not   reach back to when the system maps and links the program's libraries: none of its
//            code runs then, and a signal ends it like any program. A supervisor's worker needs
//            none of this: its supervisor knows what it told which worker.
// Threads    EndEarlyStop() by the main thread, before there are others.
#pragma once

namespace keel {

// Signals have their usual effect again. A program that wants to act on them instead
// (trainer/loop/signal_wishes.h) says so before, and no signal falls in between: what it puts back
// in the end has the usual effect by then.
void EndEarlyStop();

}  // namespace keel
