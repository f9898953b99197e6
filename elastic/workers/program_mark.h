// ProgramMark: tells a launcher, before anything runs, that a program was built with this library:
// its file has a section of this name, which elastic/workers/worker_link.cc puts there.
// Does not   see through a script or a wrapper that starts such a program.
// Threads    any.
#pragma once

#include <string>

namespace keel {

inline constexpr const char* kProgramMark = ".note.evenkeel";

// False if there is no such file, or it is no ELF program.
bool HasProgramMark(const std::string& path);

}  // namespace keel
