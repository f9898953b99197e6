// /dev/kmsg gives one record for each read(), and EAGAIN behind the last one.
#include "tools/keel/kernel_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/fd.h"

namespace keel {
namespace {

constexpr size_t kReadBytes = 1 << 16;   // the kernel refuses less than its record has
constexpr size_t kLineBytesMost = 4096;

// Cuts what it is given into lines.
class LineTaker {
 public:
  explicit LineTaker(const std::function<void(std::string_view)>& take) : take_(take) {}

  void Add(std::string_view part) {
    while (!part.empty()) {
      const size_t length = std::min(part.find('\n'), part.size());
      line_.append(part.substr(0, std::min(length, kLineBytesMost - line_.size())));
      if (length == part.size()) return;
      End();
      part.remove_prefix(length + 1);
    }
  }
  void End() {
    if (!line_.empty()) take_(line_);
    line_.clear();
  }

 private:
  const std::function<void(std::string_view)>& take_;
  std::string line_;
};

}  // namespace

KernelLogRead ReadKernelLog(const std::string& path, TimePoint deadline,
                            const std::function<void(std::string_view)>& take) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) return {.error = errno};
  struct stat about {};
  if (::fstat(file.number(), &about) != 0) return {.error = errno};
  // An older kernel that does not know it begins with its first record.
  if (S_ISCHR(about.st_mode)) (void)::lseek(file.number(), 0, SEEK_DATA);
  LineTaker lines(take);
  std::vector<char> buffer(kReadBytes);
  for (;;) {
    if (RealClock().Monotonic() >= deadline) return {.is_whole = false};
    const ssize_t count = ::read(file.number(), buffer.data(), buffer.size());
    // Of records that were overwritten before they were read, the kernel says EPIPE, once.
    if (count < 0 && (errno == EINTR || errno == EPIPE)) continue;
    if (count < 0 && errno != EAGAIN) return {.error = errno};
    if (count <= 0) break;
    lines.Add({buffer.data(), static_cast<size_t>(count)});
  }
  lines.End();
  return {};
}

}  // namespace keel
