// Each call passes Enter(), which records it and lets the planned faults strike.
#include "base/faulty_files.h"

#include <algorithm>
#include <utility>

#include "base/file_error.h"

namespace keel {

class FaultyFile : public File {
 public:
  FaultyFile(FaultyFiles& files, std::unique_ptr<File> below)
      : files_(files), below_(std::move(below)) {}

  const std::string& path() const override { return below_->path(); }
  bool direct() const override { return below_->direct(); }

  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) override {
    KEEL_TRY(files_.Enter(FileOp::kReadAt, path()));
    return below_->ReadAt(offset, into);
  }
  Status WriteAt(uint64_t offset, std::span<const std::byte> from) override {
    const auto write_part = [&](uint64_t bytes) {
      // The call fails anyway: what this part of it meets makes no difference.
      (void)below_->WriteAt(offset, from.first(std::min<uint64_t>(bytes, from.size())));
    };
    KEEL_TRY(files_.Enter(FileOp::kWriteAt, path(), write_part));
    return below_->WriteAt(offset, from);
  }
  Status Truncate(uint64_t bytes) override {
    KEEL_TRY(files_.Enter(FileOp::kTruncate, path()));
    return below_->Truncate(bytes);
  }
  Result<bool> Allocate(uint64_t bytes) override {
    KEEL_TRY(files_.Enter(FileOp::kAllocate, path()));
    return below_->Allocate(bytes);
  }
  Status Sync() override {
    KEEL_TRY(files_.Enter(FileOp::kSync, path()));
    return below_->Sync();
  }
  Result<uint64_t> Size() override {
    KEEL_TRY(files_.Enter(FileOp::kSize, path()));
    return below_->Size();
  }

 private:
  FaultyFiles& files_;
  const std::unique_ptr<File> below_;
};

std::string_view FileOpName(FileOp op) {
  switch (op) {
    case FileOp::kOpen: return "open";
    case FileOp::kReadAt: return "read";
    case FileOp::kWriteAt: return "write";
    case FileOp::kTruncate: return "truncate";
    case FileOp::kAllocate: return "allocate";
    case FileOp::kSync: return "sync";
    case FileOp::kSize: return "size";
    case FileOp::kRename: return "rename";
    case FileOp::kRemove: return "remove";
    case FileOp::kRemoveDir: return "remove directory";
    case FileOp::kMakeDir: return "make directory";
    case FileOp::kList: return "list";
    case FileOp::kStat: return "stat";
    case FileOp::kSyncDir: return "sync directory";
    case FileOp::kFreeBytes: return "ask for the free space at";
    case FileOp::kLock: return "lock";
    case FileOp::kIsLocked: return "look at lock";
    case FileOp::kResolve: return "resolve";
  }
  return "unknown";
}

void FaultyFiles::Plan(Fault fault) {
  KEEL_CHECK(fault.at_call >= 1, "at_call=" << fault.at_call);
  KEEL_CHECK((fault.kind == Fault::Kind::kAct) == static_cast<bool>(fault.act),
             "kAct, and only kAct, needs `act`");
  const std::lock_guard lock(mutex_);
  planned_.push_back({std::move(fault), 0});
}

std::vector<FileCall> FaultyFiles::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int FaultyFiles::strikes() const {
  const std::lock_guard lock(mutex_);
  return strikes_;
}

bool FaultyFiles::crashed() const {
  const std::lock_guard lock(mutex_);
  return crashed_;
}

std::optional<Fault> FaultyFiles::Record(FileOp op, const std::string& path) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({op, path});
  if (crashed_) return Fault{.kind = Fault::Kind::kCrash};
  std::optional<Fault> strikes;
  for (Planned& planned : planned_) {
    const Fault& fault = planned.fault;
    if (fault.op.has_value() && *fault.op != op) continue;
    if (path.find(fault.path_part) == std::string::npos) continue;
    ++planned.matched;
    const bool due = planned.matched == fault.at_call ||
                     (fault.lasting && planned.matched > fault.at_call);
    if (due && !strikes.has_value()) strikes = fault;
  }
  if (strikes.has_value()) {
    ++strikes_;
    crashed_ = strikes->kind == Fault::Kind::kCrash;
  }
  return strikes;
}

Status FaultyFiles::Enter(FileOp op, const std::string& path,
                          const std::function<void(uint64_t)>& write_part) {
  const std::optional<Fault> fault = Record(op, path);
  if (!fault.has_value()) return Ok();
  if (write_part != nullptr && fault->written_bytes > 0) write_part(fault->written_bytes);
  switch (fault->kind) {
    case Fault::Kind::kFail: return FileError(FileOpName(op), path, fault->error_number);
    case Fault::Kind::kCrash: return FileError(FileOpName(op), path, EIO);
    case Fault::Kind::kAct: fault->act();
  }
  return Ok();
}

Result<std::unique_ptr<File>> FaultyFiles::Open(const std::string& path, OpenFlags flags) {
  KEEL_TRY(Enter(FileOp::kOpen, path));
  KEEL_TRY_ASSIGN(std::unique_ptr<File> file, below_.Open(path, flags));
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*this, std::move(file)));
}

Status FaultyFiles::Rename(const std::string& from, const std::string& to) {
  KEEL_TRY(Enter(FileOp::kRename, to));
  return below_.Rename(from, to);
}

Status FaultyFiles::Remove(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kRemove, path));
  return below_.Remove(path);
}

Status FaultyFiles::RemoveDir(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kRemoveDir, path));
  return below_.RemoveDir(path);
}

Status FaultyFiles::MakeDir(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kMakeDir, path));
  return below_.MakeDir(path);
}

Result<std::vector<DirEntry>> FaultyFiles::List(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kList, path));
  return below_.List(path);
}

Result<FileInfo> FaultyFiles::Stat(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kStat, path));
  return below_.Stat(path);
}

Status FaultyFiles::SyncDir(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kSyncDir, path));
  return below_.SyncDir(path);
}

Result<std::string> FaultyFiles::Resolve(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kResolve, path));
  return below_.Resolve(path);
}

Result<uint64_t> FaultyFiles::FreeBytes(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kFreeBytes, path));
  return below_.FreeBytes(path);
}

Result<std::unique_ptr<FileLock>> FaultyFiles::Lock(const std::string& path,
                                                    const std::string& owner) {
  KEEL_TRY(Enter(FileOp::kLock, path));
  return below_.Lock(path, owner);
}

Result<bool> FaultyFiles::IsLocked(const std::string& path) {
  KEEL_TRY(Enter(FileOp::kIsLocked, path));
  return below_.IsLocked(path);
}

}  // namespace keel
