// ProcessStacks: what a process that hangs is doing, as seen from outside: each thread's name and
// state, the system call and the place in the kernel where it waits, and what it waits for.
// Promises   needs no debugger and no help of the process, which it does not disturb.
// Does not   see stacks in the program itself: a program of ours writes those when it gets
//            StackSignal() (elastic/process/stack_signal.h). Where ptrace is forbidden, only names
//            and states are there; kernel stacks only for root.
// Threads    any.
// Errors     kNotFound: there is no such process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace keel {

struct ThreadState {
  pid_t thread = 0;
  std::string name;
  char state = '?';                        // as in /proc/PID/stat: R, S, D, T, t, Z ...
  std::string call;                        // "read(3 = /data/part-1)"; "" where it is unknown
  std::string wait_channel;                // the kernel's function it waits in
  std::vector<std::string> kernel_stack;
};

struct ProcessStacks {
  pid_t pid = 0;
  std::string command;
  std::vector<ThreadState> threads;
};

Result<ProcessStacks> ReadStacks(pid_t pid);
// "process 12 (python -u train.py), 3 threads:\n  12 main: sleeping in futex ..."
std::string StacksText(const ProcessStacks& stacks);

// Whether the process has a handler for that signal, so that it will not die of it.
bool CatchesSignal(pid_t pid, int signal);

// "futex", "read"; a number that has no name here is given as such: "system call 451".
std::string SyscallName(long number);
// Whether its first argument is a descriptor.
bool TakesDescriptor(long number);

}  // namespace keel
