// A locked temporary file beside the target, and what was left of earlier ones.
#include "base/output_file.h"

#include <algorithm>
#include <utility>

#include "base/file_helpers.h"
#include "base/random.h"
#include "base/upload_age.h"

namespace keel {
namespace {

constexpr size_t kIdDigits = 16;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool IsLeftoverOf(const std::string& base, const std::string& name) {
  const std::string begin = base + ".";
  if (!name.starts_with(begin) || !name.ends_with(kTemporarySuffix)) return false;
  const size_t around = begin.size() + kTemporarySuffix.size();
  if (name.size() != around + kIdDigits) return false;
  const std::string id = name.substr(begin.size(), kIdDigits);
  return id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// What is uploaded is no object before its end, but it is billed.
void DiscardUploadsTo(const BucketPlace& place) {
  const auto unfinished = place.bucket->Unfinished(place.key);
  if (!unfinished.ok()) return;
  for (const UnfinishedObject& one : *unfinished) {
    if (one.key == place.key) (void)DiscardIfDead(*place.bucket, one);
  }
}

}  // namespace

std::string NewOutputId() {
  Random random(EntropySeed());
  return RandomId(random, kIdDigits);
}

OutputFile::OutputFile(Files& files, Target target, std::string path)
    : files_(files),
      target_(std::move(target)),
      path_(std::move(path)),
      temporary_(path_ + "." + target_.id + std::string(kTemporarySuffix)) {}

Result<std::unique_ptr<OutputFile>> OutputFile::Open(Files& files, Target target) {
  KEEL_TRY_ASSIGN(std::string path, files.Resolve(target.path));
  std::unique_ptr<OutputFile> output(new OutputFile(files, std::move(target), std::move(path)));
  KEEL_TRY(output->CheckTarget());
  KEEL_TRY(output->Make());
  return output;
}

Status OutputFile::CheckTarget() const {
  const Result<FileInfo> info = files_.Stat(path_);
  if (!info.ok()) {
    return info.error().code == Code::kNotFound ? Ok() : Status(info.error());
  }
  if (info->kind != FileKind::kFile) {
    const bool is_dir = info->kind == FileKind::kDirectory;
    return Error{Code::kInvalid, target_.path + " is there already, and no file but a " +
                                     (is_dir ? "directory" : "device or a pipe") +
                                     ": name a file"};
  }
  if (target_.replace) return Ok();
  return Error{Code::kExists, target_.path + " is there already"};
}

// The lock makes the file, so that it is never there without it for longer than a moment.
Status OutputFile::Make() {
  auto lock = files_.Lock(temporary_, "");
  if (lock.ok()) {
    lock_ = std::move(*lock);
  } else if (lock.error().code != Code::kInvalid) {
    return lock.error();
  }
  auto file = files_.Open(temporary_, {.write = true, .create = true, .early_writeback = true});
  if (!file.ok()) {
    (void)files_.Remove(temporary_);
    return file.error();
  }
  file_ = std::move(*file);
  return Ok();
}

OutputFile::~OutputFile() {
  // Where it cannot be removed, its name says what it is, and the next writer of PATH tries again.
  if (file_ != nullptr) (void)files_.Remove(temporary_);
}

Status OutputFile::Commit() {
  KEEL_TRY(file_->Sync());
  KEEL_TRY(CheckTarget());
  KEEL_TRY(files_.Rename(temporary_, path_));
  file_ = nullptr;
  lock_ = nullptr;
  return files_.SyncDir(ParentDir(path_));
}

void RemoveOutputLeftovers(Files& files, const std::string& path) {
  const auto place = files.Bucket(path);
  if (place.ok() && place->bucket != nullptr) return DiscardUploadsTo(*place);
  const auto resolved = files.Resolve(path);
  if (!resolved.ok()) return;
  const std::string dir = ParentDir(*resolved);
  const auto entries = files.List(dir);
  if (!entries.ok()) return;
  for (const DirEntry& entry : *entries) {
    if (entry.kind != FileKind::kFile || !IsLeftoverOf(BaseName(*resolved), entry.name)) continue;
    const std::string leftover = JoinPath(dir, entry.name);
    const auto lock = files.Lock(leftover, "");
    if (lock.ok()) (void)files.Remove(leftover);
  }
}

}  // namespace keel
