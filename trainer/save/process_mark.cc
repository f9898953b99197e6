// A number may be given to another process, which then began at another time.
#include "trainer/save/process_mark.h"

#include <unistd.h>

#include <array>
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

// "" where there is no such process.
std::string StartOf(const std::string& pid) {
  const std::string stat = FirstLine("/proc/" + pid + "/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return "";
  const std::vector<std::string> fields = SplitList(stat.substr(end + 2), ' ');
  // A zombie has ended.
  if (fields.size() <= kStartField || fields[0] == "Z" || fields[0] == "X") return "";
  return fields[kStartField];
}

}  // namespace

std::string OwnProcessMark() {
  const std::string pid = std::to_string(getpid());
  return Space() + " " + pid + " " + StartOf(pid);
}

bool IsProcessGone(const std::string& mark) {
  const std::vector<std::string> parts = SplitList(mark, ' ');
  if (parts.size() != 3 || parts[0].empty() || parts[0] != Space()) return false;
  return StartOf(parts[1]) != parts[2];
}

}  // namespace keel
