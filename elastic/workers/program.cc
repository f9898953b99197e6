// Considers one kind after the other, in torchrun's order of precedence.
#include "elastic/workers/program.h"

#include "base/check.h"
#include "base/text_template.h"

namespace keel {
namespace {

// What `python -c` runs for --run-path: argv[0] is "-c" there; the script's own comes next.
constexpr const char* kRunPathCode =
    "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')";

WorkerProgram::Kind KindOf(const ProgramOptions& options) {
  using Kind = WorkerProgram::Kind;
  if (options.run_path) return Kind::kRunPath;
  if (options.no_python) return Kind::kBinary;
  if (options.module) return Kind::kModule;
  return options.is_compiled ? Kind::kBinary : Kind::kScript;
}

// The words in front of the program's arguments that take part in the substitution.
std::vector<std::string> PythonWords(const WorkerProgram& program) {
  switch (program.kind) {
    case WorkerProgram::Kind::kScript: return {"-u", program.name};
    case WorkerProgram::Kind::kModule: return {"-u", "-m", program.name};
    case WorkerProgram::Kind::kRunPath: return {program.name};
    case WorkerProgram::Kind::kBinary: return {};
  }
  return {};
}

}  // namespace

std::vector<std::string> WorkerProgram::CommandLine(int local_rank) const {
  std::vector<std::string> line = {kind == Kind::kBinary ? name : python};
  if (kind == Kind::kRunPath) line.insert(line.end(), {"-u", "-c", kRunPathCode});
  std::vector<std::string> words = PythonWords(*this);
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (const std::string& word : words) {
    line.push_back(SubstituteText(word, {{"local_rank", std::to_string(local_rank)}}));
  }
  return line;
}

Result<WorkerProgram> ChooseProgram(const ProgramOptions& options,
                                    const std::vector<std::string>& words) {
  KEEL_CHECK(!words.empty(), "a program to run is asked for before");
  if (options.no_python && options.module && !options.run_path) {
    return Error{Code::kInvalid, "--no-python and --module contradict each other: a module needs "
                                 "Python; leave one of them out"};
  }
  const WorkerProgram::Kind kind = KindOf(options);
  if (kind != WorkerProgram::Kind::kBinary && options.python.empty()) {
    return Error{Code::kInvalid, "'" + words.front() + "' needs Python, and neither python3 nor "
                                 "python is in PATH; set PYTHON_EXEC, or give --no-python for a "
                                 "program that is not Python"};
  }
  return WorkerProgram{kind, options.python, words.front(),
                       std::vector<std::string>(words.begin() + 1, words.end())};
}

}  // namespace keel
