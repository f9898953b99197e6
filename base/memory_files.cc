// The calls of Files, on a MemoryDisk.
#include "base/memory_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_error.h"
#include "base/memory_disk.h"
#include "base/power_loss.h"

namespace keel {
namespace {

class MemoryFile : public File {
 public:
  MemoryFile(MemoryDisk& disk, std::string path, InodePtr inode, bool writable, bool direct)
      : disk_(disk),
        path_(std::move(path)),
        inode_(std::move(inode)),
        writable_(writable),
        direct_(direct) {}

  const std::string& path() const override { return path_; }
  bool direct() const override { return direct_; }

  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) override {
    if (direct_) KEEL_TRY(CheckDirectPiece(path_, offset, into.data(), into.size()));
    const std::lock_guard lock(disk_.mutex);
    const std::string& content = inode_->content;
    if (offset >= content.size()) return size_t{0};
    const size_t count = std::min<size_t>(into.size(), content.size() - offset);
    if (count > 0) std::memcpy(into.data(), content.data() + offset, count);
    return count;
  }

  Status WriteAt(uint64_t offset, std::span<const std::byte> from) override {
    if (direct_) KEEL_TRY(CheckDirectPiece(path_, offset, from.data(), from.size()));
    if (!writable_) return FileError("write", path_, EBADF);
    if (from.empty()) return Ok();
    const std::lock_guard lock(disk_.mutex);
    const uint64_t limit = disk_.LimitOf(*inode_);
    const uint64_t room = limit > offset ? limit - offset : 0;
    const size_t fits = static_cast<size_t>(std::min<uint64_t>(from.size(), room));
    if (fits > 0) {
      const std::string bytes(reinterpret_cast<const char*>(from.data()), fits);
      disk_.ChangeContent(*inode_, {ContentOp::Kind::kWrite, offset, bytes});
    }
    return fits == from.size() ? Ok() : Status(FileError("write", path_, ENOSPC));
  }

  Status Truncate(uint64_t bytes) override {
    if (!writable_) return FileError("truncate", path_, EBADF);
    const std::lock_guard lock(disk_.mutex);
    if (bytes > disk_.LimitOf(*inode_)) return FileError("truncate", path_, ENOSPC);
    disk_.ChangeContent(*inode_, {ContentOp::Kind::kTruncate, bytes, ""});
    inode_->reserved = std::min(inode_->reserved, bytes);
    return Ok();
  }

  Result<bool> Allocate(uint64_t bytes) override {
    const std::string doing = "reserve " + std::to_string(bytes) + " bytes for";
    if (!writable_) return FileError(doing, path_, EBADF);
    const std::lock_guard lock(disk_.mutex);
    if (bytes > disk_.LimitOf(*inode_)) return FileError(doing, path_, ENOSPC);
    inode_->reserved = std::max(inode_->reserved, bytes);
    return true;
  }

  Status Sync() override {
    const std::lock_guard lock(disk_.mutex);
    disk_.SyncContent(*inode_);
    return Ok();
  }

  Result<uint64_t> Size() override {
    const std::lock_guard lock(disk_.mutex);
    return static_cast<uint64_t>(inode_->content.size());
  }

 private:
  MemoryDisk& disk_;
  const std::string path_;
  const InodePtr inode_;
  const bool writable_;
  const bool direct_;
};

class MemoryLock : public FileLock {
 public:
  MemoryLock(MemoryDisk& disk, InodePtr inode) : disk_(disk), inode_(std::move(inode)) {}
  ~MemoryLock() override {
    const std::lock_guard lock(disk_.mutex);
    disk_.locks.erase(inode_);
  }

 private:
  MemoryDisk& disk_;
  const InodePtr inode_;
};

// Is `inner` the directory `outer`, or below it?
bool Holds(const InodePtr& outer, const InodePtr& inner) {
  if (outer == inner) return true;
  for (const auto& [name, child] : outer->names) {
    if (child->kind == FileKind::kDirectory && Holds(child, inner)) return true;
  }
  return false;
}

// The errno with which POSIX refuses to rename `from` to `to`; 0 where it may.
int WhyNoRename(const MemoryDisk::Place& from, const MemoryDisk::Place& to) {
  const bool moves_dir = from.inode->kind == FileKind::kDirectory;
  if (from.dir == nullptr || to.dir == nullptr) return EBUSY;  // "/" itself
  if (moves_dir && Holds(from.inode, to.dir)) return EINVAL;
  if (to.inode == nullptr) return 0;
  const bool hits_dir = to.inode->kind == FileKind::kDirectory;
  if (moves_dir && !hits_dir) return ENOTDIR;
  if (!moves_dir && hits_dir) return EISDIR;
  return hits_dir && !to.inode->names.empty() ? ENOTEMPTY : 0;
}

}  // namespace

MemoryFiles::MemoryFiles() : MemoryFiles(Options{}) {}
MemoryFiles::MemoryFiles(Options options)
    : MemoryFiles(options, std::make_unique<MemoryDisk>(options.capacity_bytes)) {}
MemoryFiles::MemoryFiles(Options options, std::unique_ptr<MemoryDisk> disk)
    : options_(options), disk_(std::move(disk)) {}
MemoryFiles::~MemoryFiles() = default;

Result<std::unique_ptr<File>> MemoryFiles::Open(const std::string& path, OpenFlags flags) {
  KEEL_TRY(CheckOpenFlags(path, flags));
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(MemoryDisk::Place place, disk_->Find("open", path));
  if (place.inode != nullptr && flags.exclusive) return FileError("open", path, EEXIST);
  if (place.inode == nullptr) {
    if (!flags.create) return FileError("open", path, ENOENT);
    place.inode = std::make_shared<Inode>(FileKind::kFile);
    disk_->ChangeNames({{place.dir, place.name, place.inode}});
  }
  if (place.inode->kind == FileKind::kDirectory) return FileError("open", path, EISDIR);
  if (flags.truncate) {
    disk_->ChangeContent(*place.inode, {ContentOp::Kind::kTruncate, 0, ""});
    place.inode->reserved = 0;
  }
  return std::unique_ptr<File>(std::make_unique<MemoryFile>(
      *disk_, path, place.inode, flags.write, flags.direct && options_.grants_direct));
}

Status MemoryFiles::Rename(const std::string& from, const std::string& to) {
  const std::string doing = "rename " + from + " to";
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place source, disk_->Find("rename", from));
  if (source.inode == nullptr) return FileError(doing, to, ENOENT);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place target, disk_->Find(doing, to));
  if (source.inode == target.inode) return Ok();
  if (const int why = WhyNoRename(source, target); why != 0) return FileError(doing, to, why);
  const NameChange appears{target.dir, target.name, source.inode};
  const NameChange goes{source.dir, source.name, nullptr};
  if (source.dir == target.dir || source.inode->kind == FileKind::kDirectory) {
    disk_->ChangeNames({appears, goes});
  } else {
    // Between directories: syncing the new one makes the new name certain, syncing the old one
    // both, and no loss of power takes both names away.
    const uint64_t appeared = disk_->ChangeNames({appears});
    disk_->ChangeNames({goes}, appeared);
  }
  return Ok();
}

Status MemoryFiles::Remove(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->FindExisting("remove", path));
  if (place.inode->kind == FileKind::kDirectory) return FileError("remove", path, EISDIR);
  disk_->ChangeNames({{place.dir, place.name, nullptr}});
  return Ok();
}

Status MemoryFiles::RemoveDir(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->FindExisting("remove directory", path));
  if (place.inode->kind != FileKind::kDirectory) {
    return FileError("remove directory", path, ENOTDIR);
  }
  if (place.dir == nullptr) return FileError("remove directory", path, EBUSY);
  if (!place.inode->names.empty()) return FileError("remove directory", path, ENOTEMPTY);
  disk_->ChangeNames({{place.dir, place.name, nullptr}});
  return Ok();
}

Status MemoryFiles::MakeDir(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->Find("make directory", path));
  if (place.inode != nullptr) return FileError("make directory", path, EEXIST);
  disk_->ChangeNames({{place.dir, place.name, std::make_shared<Inode>(FileKind::kDirectory)}});
  return Ok();
}

Result<std::vector<DirEntry>> MemoryFiles::List(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->FindExisting("list", path));
  if (place.inode->kind != FileKind::kDirectory) return FileError("list", path, ENOTDIR);
  std::vector<DirEntry> entries;
  for (const auto& [name, child] : place.inode->names) entries.push_back({name, child->kind});
  return entries;
}

Result<FileInfo> MemoryFiles::Stat(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->FindExisting("stat", path));
  return FileInfo{place.inode->kind, place.inode->content.size()};
}

Status MemoryFiles::SyncDir(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->FindExisting("open directory", path));
  if (place.inode->kind != FileKind::kDirectory) {
    return FileError("open directory", path, ENOTDIR);
  }
  disk_->SyncNames(place.inode);
  return Ok();
}

// It knows no links.
Result<std::string> MemoryFiles::Resolve(const std::string& path) { return path; }

Result<uint64_t> MemoryFiles::FreeBytes(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY(disk_->FindExisting("ask for the free space at", path));
  return disk_->LimitOf(Inode(FileKind::kFile));
}

Result<std::unique_ptr<FileLock>> MemoryFiles::Lock(const std::string& path,
                                                    const std::string& owner) {
  KEEL_TRY(Open(path, {.write = true, .create = true}));
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->FindExisting("lock", path));
  const auto [held, is_new] = disk_->locks.emplace(place.inode, owner);
  if (!is_new) return LockHeldError(path, held->second);
  return std::unique_ptr<FileLock>(std::make_unique<MemoryLock>(*disk_, place.inode));
}

Result<bool> MemoryFiles::IsLocked(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  KEEL_TRY_ASSIGN(const MemoryDisk::Place place, disk_->Find("look at lock", path));
  return place.inode != nullptr && disk_->locks.contains(place.inode);
}

std::vector<std::unique_ptr<MemoryFiles>> MemoryFiles::PossibleDisks(int mixes,
                                                                     uint64_t seed) const {
  const std::lock_guard lock(disk_->mutex);
  std::vector<std::unique_ptr<MemoryFiles>> all;
  for (std::unique_ptr<MemoryDisk>& disk : DisksAfterPowerLoss(*disk_, mixes, seed)) {
    all.push_back(std::unique_ptr<MemoryFiles>(new MemoryFiles(options_, std::move(disk))));
  }
  return all;
}

}  // namespace keel
