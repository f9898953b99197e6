// The search through PATH, and a second look at the file that exec refused.
#include "elastic/program_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "elastic/fd.h"

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

// The program that a script's first line names, or nothing.
std::string InterpreterOf(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> head{};
  const ssize_t count = file.valid() ? read(file.number(), head.data(), head.size()) : 0;
  if (count < 2 || head[0] != '#' || head[1] != '!') return "";
  const std::string line(head.data() + 2, static_cast<size_t>(count - 2));
  const size_t start = line.find_first_not_of(" \t");
  if (start == std::string::npos) return "";
  return line.substr(start, line.find_first_of(" \t\r\n", start) - start);
}

Error NotExecutable(const std::string& path) {
  return {Code::kInvalid, "'" + path + "' is not executable: permission denied (chmod +x, or run "
                          "it through its interpreter)"};
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

Error ExplainExecFailure(const std::string& path, const std::string& working_dir, int error) {
  const std::string seen = Resolved(path, working_dir);
  switch (error) {
    case ENOENT: {
      if (!IsFile(seen)) {
        const std::string where = working_dir.empty() ? "" : " (seen from " + working_dir + ")";
        return {Code::kNotFound, "program not found: there is no '" + path + "'" + where};
      }
      const std::string interpreter = InterpreterOf(seen);
      return {Code::kInvalid,
              "'" + path + "' has a bad interpreter: " +
                  (interpreter.empty() ? "the loader that it was linked for is not there"
                                       : "its first line names '" + interpreter +
                                             "', which is not there")};
    }
    case EACCES:
      return NotExecutable(path);
    case ENOEXEC:
      return {Code::kInvalid, "'" + path + "' is no program for this machine: neither a binary of "
                              "its kind nor a script that begins with #!"};
    default:
      return {Code::kForeign, "'" + path + "' did not start: " + std::strerror(error)};
  }
}

}  // namespace keel
