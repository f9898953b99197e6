// A descriptor that is written to from front to back.
#include "tools/keel/output_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>

#include "base/check.h"
#include "base/file_error.h"
#include "base/file_helpers.h"
#include "base/text.h"
#include "tools/keel/stop_signals.h"

namespace keel {
namespace {

class StreamFile : public File {
 public:
  StreamFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~StreamFile() override { ::close(descriptor_); }

  const std::string& path() const override { return path_; }
  bool direct() const override { return false; }
  Result<size_t> ReadAt(uint64_t, std::span<std::byte>) override { return CannotDo("read"); }
  Status WriteAt(uint64_t offset, std::span<const std::byte> from) override {
    KEEL_CHECK(offset == written_, "byte " << offset << " of a stream after " << written_);
    const std::string_view text(reinterpret_cast<const char*>(from.data()), from.size());
    KEEL_TRY(WriteToDescriptor(descriptor_, text, path_));
    written_ += from.size();
    return Ok();
  }
  Status Truncate(uint64_t) override { return CannotDo("cut"); }
  Result<bool> Allocate(uint64_t) override { return false; }
  Status Sync() override { return Ok(); }
  Result<uint64_t> Size() override { return written_; }

 private:
  Error CannotDo(const std::string& what) const {
    return {Code::kIo, path_ + " is a stream, which nobody can " + what};
  }

  const std::string path_;
  const int descriptor_;
  uint64_t written_ = 0;
};

// The number of the open file of this process that `path` leads to (/dev/stdout, /proc/self/fd/3).
std::optional<int> OwnDescriptor(std::string place) {
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/fd";
  for (int links = 0; links < 40; ++links) {
    char dir[PATH_MAX];
    if (::realpath(ParentDir(place).c_str(), dir) != nullptr && dir == own) {
      const auto number = ParseInteger(place.substr(place.rfind('/') + 1));
      if (number.ok() && *number >= 0 && *number <= INT_MAX) return static_cast<int>(*number);
      return std::nullopt;
    }
    char target[PATH_MAX];
    const ssize_t bytes = ::readlink(place.c_str(), target, sizeof target);
    if (bytes < 0) return std::nullopt;
    const std::string next(target, static_cast<size_t>(bytes));
    place = next.starts_with('/') ? next : JoinPath(ParentDir(place), next);
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<File>> OpenOutputStream(Files& files, const std::string& path) {
  const auto info = files.Stat(path);
  const bool is_stream = info.ok() && info->kind == FileKind::kOther;
  if (!is_stream && files.Resolve(path).ok()) return std::unique_ptr<File>();
  if (info.ok() && info->kind == FileKind::kDirectory) return std::unique_ptr<File>();
  const std::optional<int> own = OwnDescriptor(path);
  const int descriptor = own.has_value() ? ::fcntl(*own, F_DUPFD_CLOEXEC, 3)
                                         : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return FileError("open", path, errno);
  return std::unique_ptr<File>(std::make_unique<StreamFile>(path, descriptor));
}

bool IsStdout(const std::string& path) {
  if (OwnDescriptor(path) == STDOUT_FILENO) return true;
  struct stat named {}, out {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &out) == 0 &&
         !S_ISREG(named.st_mode) && named.st_dev == out.st_dev && named.st_ino == out.st_ino;
}

Status RestWhileRead(int descriptor, Duration time, const std::string& what) {
  pollfd watched{descriptor, 0, 0};   // what is asked for is only what is always told
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  const int ready = ::poll(&watched, 1, static_cast<int>(std::clamp<int64_t>(millis, 0, INT_MAX)));
  if (ready <= 0) return CheckStop();
  return Error{Code::kPeerLost, "writing " + what + ": nobody reads it"};
}

Status WriteToDescriptor(int descriptor, std::string_view text, const std::string& what) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) {
      KEEL_TRY(CheckStop());
      continue;
    }
    if (wrote < 0 && errno == EAGAIN) {   // another process has made the pipe non-blocking
      pollfd full{descriptor, POLLOUT, 0};
      if (::poll(&full, 1, -1) < 0 && errno != EINTR) return FileError("write", what, errno);
      KEEL_TRY(CheckStop());
      continue;
    }
    if (wrote < 0 && errno == EPIPE) {
      return Error{Code::kPeerLost, "writing " + what + ": nobody reads it"};
    }
    if (wrote < 0) return FileError("write", what, errno);
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return Ok();
}

}  // namespace keel
