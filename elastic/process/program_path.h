// Where a program's file is, and in plain words why it would not start.
// Does not   start anything (elastic/process/spawn.h); promise that what it finds good will start.
// Errors     kNotFound: no such file; kInvalid: there is one, but it cannot be run.
// Threads    any.
#pragma once

#include <string>

#include "base/environment.h"
#include "base/result.h"

namespace keel {

// As execvp does: a name with a slash is taken as it is (its check is left to exec), another is
// looked for in the folders of `search_path`; a relative folder there is meant from `working_dir`
// (empty: ours).
Result<std::string> FindProgram(const std::string& name, const std::string& search_path,
                                const std::string& working_dir);

// PATH, or what the system takes where there is none.
std::string SearchPath(const Environment& environment);

// Whether it could be started, as far as its files can tell: found, executable, its interpreter
// there.
Status CheckProgram(const std::string& name, const std::string& search_path);
// Of a file that an interpreter is to read; "-" is its standard input.
Status CheckScript(const std::string& path);

// What execve's `error` means for `path`, as seen from `working_dir`.
Error ExplainExecFailure(const std::string& path, const std::string& working_dir, int error);

}  // namespace keel
