// Calls the system directly, not through Files: a hint changes no byte, so a test's disk could get
// nothing wrong about it.
#include "ckpt/read_ahead.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "ckpt/catalog.h"

namespace keel {
namespace {

// Of a larger piece, Linux would read only the beginning.
constexpr uint64_t kPieceBytes = 1 << 20;

void ReadFile(Files& files, const std::string& path, const std::atomic<bool>& stop) {
  const auto info = files.Stat(path);
  if (!info.ok() || info->kind != FileKind::kFile) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  for (uint64_t offset = 0; offset < info->bytes && !stop; offset += kPieceBytes) {
    (void)::posix_fadvise(fd, static_cast<off_t>(offset), kPieceBytes, POSIX_FADV_WILLNEED);
  }
  ::close(fd);
}

void ReadNewest(const std::string& root, const std::atomic<bool>& stop) {
  PosixFiles files;
  const auto newest = NewestComplete(files, root);
  if (!newest.ok()) return;
  const auto names = files.List(newest->dir);
  if (!names.ok()) return;
  for (const DirEntry& name : *names) ReadFile(files, JoinPath(newest->dir, name.name), stop);
}

}  // namespace

ReadAhead::ReadAhead(std::string root)
    : work_(root.empty() ? IdleWork::Job()
                         : [moved = std::move(root)](const std::atomic<bool>& stop) {
                             ReadNewest(moved, stop);
                           }) {}

}  // namespace keel
