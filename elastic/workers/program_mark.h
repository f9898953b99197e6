// ProgramMark: how a launcher knows, before anything runs, that a program is one of this library:
// its file has a section of this name, which elastic/workers/worker_link.cc puts there.
// Does not   see through a script or a wrapper that starts such a program.
// Threads    any.
#pragma once

#include <string>

namespace keel {

inline constexpr const char* kProgramMark = ".note.evenkeel";

// False where there is no such file, or it is no ELF program.
bool HasProgramMark(const std::string& path);

}  // namespace keel
