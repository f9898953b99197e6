// ErrorFile: what a worker wrote about its own failure, for torchrun and for us:
//   {"message": {"message": "Boom", "extraInfo": {"py_callstack": "...", "timestamp": "17950"}}}
// where the outer "message" may also be a plain text.
// Promises   reading accepts any JSON object that has a message; whatever else it holds is passed
//            on.
// Threads    any.
// Errors     kCorrupt: it is no such file (its writer may have been killed); those of
//            base/files.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "elastic/process/exit_status.h"

namespace keel {

struct WorkerError {
  std::string message;
  std::string traceback;             // empty: it has none
  std::optional<int64_t> time_s;     // since 1970
  std::string json;                  // the whole file
};

// Empty if there is no file, or an empty one.
Result<std::optional<WorkerError>> ReadErrorFile(Files& files, const std::string& path);

// A message or traceback for people: of a long one some KB of its beginning and its end, cut
// between lines or characters, and in between how much is left out and which file has all of it.
std::string BriefError(const std::string& text, const std::string& path);

// In the numbering of Python's subprocess: the exit code, or minus the signal.
int PythonExitCode(const ExitStatus& status);

// Writes the worker's error once more, for those who started the launcher: with "errorCode" beside
// the inner message, to the file that the launcher's own TORCHELASTIC_ERROR_FILE names.
Status PassErrorOn(Files& files, const WorkerError& error, const ExitStatus& status,
                   const std::string& path);

}  // namespace keel
