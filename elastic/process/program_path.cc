// Searches PATH, and takes a second look at a file that exec refused.
#include "elastic/process/program_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace keel {
namespace {

std::string Resolved(const std::string& path, const std::string& working_dir) {
  if (working_dir.empty() || path.starts_with('/')) return path;
  return working_dir + "/" + path;
}

bool IsFile(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool IsFolder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The program that a script's first line names, as the system reads it; empty if there is none.
std::string InterpreterOf(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> head{};
  const ssize_t count = file.valid() ? read(file.number(), head.data(), head.size()) : 0;
  if (count < 2 || head[0] != '#' || head[1] != '!') return "";
  const std::string line(head.data() + 2, static_cast<size_t>(count - 2));
  const size_t start = line.find_first_not_of(" \t");
  if (start == std::string::npos) return "";
  return line.substr(start, line.find_first_of(" \t\n", start) - start);
}

Error NotExecutable(const std::string& path) {
  return {Code::kInvalid, "'" + path + "' is not executable: permission denied (chmod +x, or run "
                          "it through its interpreter)"};
}

Error BadInterpreter(const std::string& path, const std::string& why) {
  return {Code::kInvalid, "'" + path + "' has a bad interpreter: " + why};
}

Error ExplainMissing(const std::string& path, const std::string& seen,
                     const std::string& working_dir) {
  if (!IsFile(seen)) {
    const std::string where = working_dir.empty() ? "" : " (seen from " + working_dir + ")";
    return {Code::kNotFound, "program not found: there is no '" + path + "'" + where};
  }
  const std::string interpreter = InterpreterOf(seen);
  if (interpreter.empty()) {
    return BadInterpreter(path, "the loader that it was linked for is not there");
  }
  if (interpreter.back() == '\r') {
    return BadInterpreter(path, "its first line ends with a carriage return, as on Windows; end "
                                "its lines as Unix does (sed -i 's/\\r$//')");
  }
  return BadInterpreter(path, "its first line names '" + interpreter + "', which is not there");
}

Error ExplainRefused(const std::string& path, const std::string& seen) {
  if (IsFolder(seen)) return {Code::kInvalid, "'" + path + "' is a folder, not a program"};
  if (access(seen.c_str(), X_OK) != 0) return NotExecutable(path);
  const std::string interpreter = InterpreterOf(seen);
  if (!interpreter.empty() && access(interpreter.c_str(), X_OK) != 0) {
    return BadInterpreter(path, "its first line names '" + interpreter +
                                    "', which is not executable");
  }
  return {Code::kInvalid, "'" + path + "' may not be run: permission denied (is its file system "
                          "mounted with noexec?)"};
}

}  // namespace

Result<std::string> FindProgram(const std::string& name, const std::string& search_path,
                                const std::string& working_dir) {
  if (name.empty()) return Error{Code::kInvalid, "the program's name is empty"};
  if (name.find('/') != std::string::npos) return name;
  std::string refused;
  for (size_t start = 0; start <= search_path.size();) {
    const size_t end = std::min(search_path.find(':', start), search_path.size());
    const std::string folder = search_path.substr(start, end - start);
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const std::string seen = Resolved(path, working_dir);
    start = end + 1;
    if (!IsFile(seen)) continue;
    if (access(seen.c_str(), X_OK) == 0) return path;
    if (refused.empty()) refused = path;
  }
  if (!refused.empty()) return NotExecutable(refused);
  return Error{Code::kNotFound, "program not found: '" + name + "' is in no folder of PATH (" +
                                    search_path + ")"};
}

std::string SearchPath(const Environment& environment) {
  const auto path = environment.find("PATH");
  return path == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second;
}

Status CheckProgram(const std::string& name, const std::string& search_path) {
  KEEL_TRY_ASSIGN(const std::string path, FindProgram(name, search_path, ""));
  if (access(path.c_str(), F_OK) != 0) return ExplainExecFailure(path, "", errno);
  if (!IsFile(path) || access(path.c_str(), X_OK) != 0) return ExplainRefused(path, path);
  const std::string interpreter = InterpreterOf(path);
  if (interpreter.empty() || access(interpreter.c_str(), X_OK) == 0) return Ok();
  return ExplainExecFailure(path, "", errno);
}

Status CheckScript(const std::string& path) {
  if (path == "-") return Ok();
  if (access(path.c_str(), R_OK) != 0) {
    return Error{Code::kNotFound, "script not found: '" + path + "': " + std::strerror(errno)};
  }
  if (IsFile(path)) return Ok();
  if (!IsFolder(path)) {
    return Error{Code::kInvalid, "'" + path + "' is a pipe, a device or the like, not a script: "
                                 "every worker must be able to read it from its beginning"};
  }
  if (IsFile(path + "/__main__.py") || IsFile(path + "/__main__.pyc")) return Ok();
  return Error{Code::kInvalid, "'" + path + "' is a folder without a __main__.py, not a script"};
}

Error ExplainExecFailure(const std::string& path, const std::string& working_dir, int error) {
  const std::string seen = Resolved(path, working_dir);
  switch (error) {
    case ENOENT:
      return ExplainMissing(path, seen, working_dir);
    case EACCES:
      return ExplainRefused(path, seen);
    case ENOEXEC:
      return {Code::kInvalid, "'" + path + "' is not a program for this machine: neither a binary "
                              "of its kind nor a script that begins with #!"};
    default:
      return {Code::kForeign, "'" + path + "' did not start: " + std::strerror(error)};
  }
}

}  // namespace keel
