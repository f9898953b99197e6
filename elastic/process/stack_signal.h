// StackSignal: asks a program of ours, from outside, to write the stacks of all its threads to its
// stderr. A supervisor does so with a worker that hangs (elastic/process/stacks.h).
// Promises   once InstallStackDump() was called, the signal costs nothing until it comes. Then
//            each thread writes its name and its stack, one thread after the other, and goes on.
//            The handler only makes async-signal-safe calls, allocates nothing, keeps errno, and
//            ends within 5 s, naming the threads that did not answer.
// Does not   reach threads that block this very signal (which costs no time) or do not return from
//            the kernel; print names of functions that the program does not export: their
//            addresses are for addr2line.
// Threads    any. Without InstallStackDump() the signal kills: ask CatchesSignal() before
//            (elastic/process/stacks.h).
#pragma once

namespace keel {

// A real-time signal, since schedulers announce the end with SIGUSR1 and SIGUSR2.
int StackSignal();

// Leaves another handler alone, and returns false then.
bool InstallStackDump();

}  // namespace keel
