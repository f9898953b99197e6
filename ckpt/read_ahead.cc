// Straight to the system, not through Files: a hint changes no byte, so there is nothing about it
// that a test's disk could get wrong.
#include "ckpt/read_ahead.h"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "base/thread_priority.h"
#include "ckpt/catalog.h"

namespace keel {
namespace {

// Of a larger piece Linux reads only the beginning.
constexpr uint64_t kPieceBytes = 1 << 20;

}  // namespace

ReadAhead::ReadAhead(std::string root) {
  if (root.empty()) return;
  try {
    thread_ = std::thread([this, moved = std::move(root)] { Run(moved); });
  } catch (const std::system_error&) {
    // No thread to be had: the reader waits for the disk itself.
  }
}

ReadAhead::~ReadAhead() {
  stop_ = true;
  Wait();
}

void ReadAhead::Wait() {
  if (thread_.joinable()) thread_.join();
}

void ReadAhead::Run(const std::string& root) {
  LetOthersFirst();
  PosixFiles files;
  const auto newest = NewestComplete(files, root);
  if (!newest.ok()) return;
  const auto names = files.List(newest->dir);
  if (!names.ok()) return;
  for (const DirEntry& name : *names) ReadFile(files, JoinPath(newest->dir, name.name));
}

void ReadAhead::ReadFile(Files& files, const std::string& path) {
  const auto info = files.Stat(path);
  if (!info.ok() || info->kind != FileKind::kFile) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  for (uint64_t offset = 0; offset < info->bytes && !stop_; offset += kPieceBytes) {
    (void)::posix_fadvise(fd, static_cast<off_t>(offset), kPieceBytes, POSIX_FADV_WILLNEED);
  }
  ::close(fd);
}

}  // namespace keel
