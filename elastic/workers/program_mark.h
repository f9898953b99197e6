// ProgramMark: tells a launcher, before anything runs, that a program was built with this library:
// its file has a section of this name, which elastic/workers/worker_link.cc puts there.
//            A script that trains with the package for Python is known by its text.
// Does not   see through a wrapper that starts such a program, or a script that leaves all to other
//            files.
// Threads    any.
#pragma once

#include <string>

namespace keel {

inline constexpr const char* kProgramMark = ".note.evenkeel";

// False if there is no such file, or it is no ELF program.
bool HasProgramMark(const std::string& path);

// Whether this is a script that imports `evenkeel`, and names its Job, its rerun() or an adapter.
bool IsScriptOfPackage(const std::string& path);

}  // namespace keel
