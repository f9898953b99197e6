// Such a file has no size, so it is read until it ends.
#include "elastic/process/proc_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/fd.h"

namespace keel {

std::optional<std::string> ReadProcFile(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t count = read(fd.number(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
    text.append(part.data(), static_cast<size_t>(count));
  }
}

std::vector<pid_t> ThreadsOf(pid_t pid) {
  struct CloseDirectory {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  std::vector<pid_t> threads;
  const std::string path = "/proc/" + std::to_string(pid) + "/task";
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(path.c_str()));
  while (const dirent* entry = directory ? readdir(directory.get()) : nullptr) {
    const long thread = std::strtol(entry->d_name, nullptr, 10);
    if (thread > 0) threads.push_back(static_cast<pid_t>(thread));
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

}  // namespace keel
