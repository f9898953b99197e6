// StackSignal: asks a program of ours, from outside, to write the stacks of all its threads to its
// stderr: what a supervisor wants to see of a worker that hangs (elastic/process/stacks.h).
// Promises   once InstallStackDump() was called, the signal costs nothing until it comes; then each
//            thread writes its name and its stack, one thread after the other, and goes on. The
//            handler only makes async-signal-safe calls, allocates nothing, keeps errno, and ends
//            within 5 s, naming the threads that did not answer.
// Does not   reach threads that block this very signal (which costs no time) or do not come back
//            from the kernel; print
//            names of functions that the program does not export: their addresses are for
//            addr2line.
// Threads    any. Without InstallStackDump() the signal kills: ask CatchesSignal() before
//            (elastic/process/stacks.h).
#pragma once

namespace keel {

// A real-time signal, since SIGUSR1 and SIGUSR2 are what schedulers announce the end with.
int StackSignal();

// Leaves a handler of somebody else's alone, and gives false then.
bool InstallStackDump();

}  // namespace keel
