// What every program of ours sets once about its own process, first thing in main().
// Promises   never overrides a choice that somebody made on purpose.
// Does not   undo anything at exit; reach children (elastic/process/spawn.h resets their signals).
// Threads    call before the first thread starts.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace keel {

// Without this a peer that died a moment ago kills us: writing to its socket raises SIGPIPE, whose
// default is a silent death. Leaves a handler, or an ignore, that is already there alone.
void IgnoreSigpipe();

// Opens /dev/null in the place of each of the streams 0, 1 and 2 that is closed. Without this the
// next file that we open takes its number, and what we print goes into it.
Status OpenClosedStreams();

// Raises the soft limit of open files to the hard one, at most to 65536 (some programs close every
// number up to the limit when they start). Never lowers it. Gives the limit that now holds.
Result<uint64_t> RaiseFileLimit();

// How many numbers of files are taken now.
Result<uint64_t> CountOpenFiles();

// How many processors this process may run on, as taskset or a container's set of them says; at
// least 1.
int UsableProcessors();

// Makes malloc keep what is freed, in large pieces too, instead of giving it back to the system:
// each step of training frees what the next one needs, and memory that is new to a process costs
// several times what it costs to write it. Nothing where a variable of malloc's is set, or where
// malloc is not glibc's.
void KeepFreedMemory();

// Sets a variable of our own environment that a library will look at, unless somebody has set it
// already.
void SetOwnVariableUnlessSet(const char* name, const char* value);

}  // namespace keel
