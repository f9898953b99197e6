// UnsyncedFiles: the machine's own disk without a single sync, for races of thousands of rounds.
// Threads    any.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/posix_files.h"

namespace keel {

class UnsyncedFile : public File {
 public:
  explicit UnsyncedFile(std::unique_ptr<File> below) : below_(std::move(below)) {}

  const std::string& path() const override { return below_->path(); }
  bool direct() const override { return below_->direct(); }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) override {
    return below_->ReadAt(offset, into);
  }
  Status WriteAt(uint64_t offset, std::span<const std::byte> from) override {
    return below_->WriteAt(offset, from);
  }
  Status Truncate(uint64_t bytes) override { return below_->Truncate(bytes); }
  Result<bool> Allocate(uint64_t bytes) override { return below_->Allocate(bytes); }
  Status Sync() override { return Ok(); }
  Result<uint64_t> Size() override { return below_->Size(); }

 private:
  const std::unique_ptr<File> below_;
};

class UnsyncedFiles : public PosixFiles {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) override {
    KEEL_TRY_ASSIGN(auto file, PosixFiles::Open(path, flags));
    return std::unique_ptr<File>(std::make_unique<UnsyncedFile>(std::move(file)));
  }
  Status SyncDir(const std::string&) override { return Ok(); }
};

}  // namespace keel
