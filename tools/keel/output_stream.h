// OpenOutputStream: where a command writes when its output is named by a path that is no place for
// a file: a device, a pipe, or an open file of this process (/dev/stdout, a shell's >(...)).
// Promises   such a thing is written to, from front to back, and never replaced. An open file of
//            this process goes on where it is, as if it were written to by its number.
// Does not   make anything be there whole or not at all; sync.
// Threads    one at a time.
// Errors     kIo; kPeerLost: nobody reads the other end; kCancelled (tools/keel/stop_signals.h).
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"

namespace keel {

// Null where `path` is a place for a file, whether there is one or not, or a directory.
Result<std::unique_ptr<File>> OpenOutputStream(Files& files, const std::string& path);

// Whether `path` leads to what stdout is.
bool IsStdout(const std::string& path);

// Waits so long, or less where a signal comes. kPeerLost, at once: nobody can read any more what is
// written to an open file's number.
Status RestWhileRead(int descriptor, Duration time, const std::string& what);

// Writes all of it to an open file's number.
Status WriteToDescriptor(int descriptor, std::string_view text, const std::string& what);

}  // namespace keel
