// Finds a program's file, and explains in plain words why it would not start.
// Does not   start anything (elastic/process/spawn.h); promise that what it finds good will start.
// Errors     kNotFound: no such file; kInvalid: there is one, but it cannot be run.
// Threads    any.
#pragma once

#include <string>

#include "base/environment.h"
#include "base/result.h"

namespace keel {

// Works like execvp: a name with a slash is taken as it is (exec will check it); any other name is
// searched for in the folders of `search_path`. A relative folder there is relative to
// `working_dir` (empty: ours).
Result<std::string> FindProgram(const std::string& name, const std::string& search_path,
                                const std::string& working_dir);

// PATH, or the system's default if there is none.
std::string SearchPath(const Environment& environment);

// Whether it could be started, as far as its files show: it is found and executable, and its
// interpreter exists.
Status CheckProgram(const std::string& name, const std::string& search_path);
// The same for a file that an interpreter is to read; "-" is its standard input.
Status CheckScript(const std::string& path);

// What execve's `error` means for `path`, as seen from `working_dir`.
Error ExplainExecFailure(const std::string& path, const std::string& working_dir, int error);

}  // namespace keel
