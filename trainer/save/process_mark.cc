// A number may be given to another process, which then began at another time.
#include "trainer/save/process_mark.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/text.h"

namespace keel {
namespace {

// The field of /proc/PID/stat, counted from the one behind the name in parentheses.
constexpr size_t kStartField = 19;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Where process numbers mean the same: of one boot, in one container.
std::string Space() {
  std::array<char, 64> name{};
  const ssize_t bytes = readlink("/proc/self/ns/pid", name.data(), name.size());
  const std::string boot = FirstLine("/proc/sys/kernel/random/boot_id");
  if (bytes <= 0 || boot.empty()) return "";
  return boot + "/" + std::string(name.data(), static_cast<size_t>(bytes));
}

// Its state, and what follows; empty where none can be seen.
std::vector<std::string> StatOf(const std::string& pid) {
  const std::string stat = FirstLine("/proc/" + pid + "/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return {};
  return SplitList(stat.substr(end + 2), ' ');
}

// A zombie has ended.
bool IsZombie(const std::string& pid) {
  const std::vector<std::string> fields = StatOf(pid);
  return !fields.empty() && (fields[0] == "Z" || fields[0] == "X");
}

// "" where no such process can be seen.
std::string StartOf(const std::string& pid) {
  const std::vector<std::string> fields = StatOf(pid);
  return fields.size() <= kStartField || IsZombie(pid) ? "" : fields[kStartField];
}

}  // namespace

std::string OwnProcessMark() {
  const std::string pid = std::to_string(getpid());
  return Space() + " " + pid + " " + StartOf(pid);
}

bool IsProcessGone(const std::string& mark) {
  const std::vector<std::string> parts = SplitList(mark, ' ');
  if (parts.size() != 3 || parts[0].empty() || parts[0] != Space()) return false;
  const std::string start = StartOf(parts[1]);
  if (!start.empty()) return start != parts[2];
  // Where /proc hides the processes of others, the kernel says whether there is one.
  const Result<int64_t> pid = ParseInteger(parts[1]);
  if (!pid.ok() || *pid <= 0) return false;
  const bool is_there = kill(static_cast<pid_t>(*pid), 0) == 0 || errno != ESRCH;
  return !is_there || IsZombie(parts[1]);
}

}  // namespace keel
