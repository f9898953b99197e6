// WorkerProgram: makes the command line of a worker from what stood behind the launcher's options,
// by torchrun's rules.
// Promises   a Python script or module runs unbuffered (`python -u`); --no-python runs a program as
//            it is; --run-path runs a script by runpy.run_path(), as __main__ with its own argv.
//            ${local_rank} in arguments becomes the worker's number (base/text_template.h).
// Differs    from torchrun in one case that cannot work there: a compiled program (ELF) runs as it
//            is even without --no-python.
// Does not   look for the program (elastic/process/program_path.h) or read files.
// Threads    plain values. Errors: kInvalid.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace keel {

struct WorkerProgram {
  enum class Kind { kScript, kModule, kRunPath, kBinary };

  Kind kind = Kind::kScript;
  std::string python;                  // the interpreter; unused for kBinary
  std::string name;                    // script, module or program
  std::vector<std::string> arguments;  // its own

  // The command line of the worker with that local rank: argv[0] and all behind it.
  std::vector<std::string> CommandLine(int local_rank) const;
};

struct ProgramOptions {
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  bool is_compiled = false;   // the file begins like an ELF program
  std::string python = {};
};

// `words`: the program and its arguments, at least one.
Result<WorkerProgram> ChooseProgram(const ProgramOptions& options,
                                    const std::vector<std::string>& words);

}  // namespace keel
