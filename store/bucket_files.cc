// Sends each path to the disk or to its bucket.
#include "store/bucket_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/object_files.h"
#include "base/posix_files.h"
#include "store/find_module.h"

namespace keel {
namespace {

constexpr std::string_view kSchemes[] = {"s3://", "gs://"};

}  // namespace

bool IsBucketPath(std::string_view path) {
  return std::any_of(std::begin(kSchemes), std::end(kSchemes),
                     [&](std::string_view scheme) { return path.starts_with(scheme); });
}

struct BucketFiles::Opened {
  explicit Opened(std::unique_ptr<Objects> opened) : objects(std::move(opened)), files(*objects) {}

  std::unique_ptr<Objects> objects;
  ObjectFiles files;
};

BucketFiles::BucketFiles(Files& disk) : disk_(disk) {}
BucketFiles::~BucketFiles() = default;

void BucketFiles::SetUnguarded(bool is_unguarded) {
  const std::lock_guard lock(mutex_);
  is_unguarded_ = is_unguarded;
}

Result<BucketOpener*> BucketFiles::Opener() {
  if (opener_ != nullptr) return opener_;
  const auto load = [&]() -> Result<BucketOpener*> {
    KEEL_TRY_ASSIGN(const std::string prefix, OwnPrefix());
    // A program of somebody else, or Python, finds it where it was told to look for our libraries.
    const Result<std::string> found = FindModule(prefix, kBucketModuleFile);
    const std::string path = found.ok() ? *found : kBucketModuleFile;
    KEEL_TRY_ASSIGN(void* const entry, LoadModule(path, kBucketModuleEntry));
    BucketOpener* const opener =
        reinterpret_cast<BucketModuleEntry>(entry)(kBucketModuleVersion, LogFormat::kText,
                                                   LogLevel::kWarn);
    if (opener != nullptr) return opener;
    return Error{Code::kForeign,
                 path + " belongs to another version of Evenkeel; reinstall both"};
  };
  Result<BucketOpener*> loaded = load();
  if (!loaded.ok()) {
    return loaded.error().Doing("paths in buckets need a module, and that the system's "
                                "curl (libcurl4 of Debian)");
  }
  return opener_ = *loaded;
}

Result<Files*> BucketFiles::Of(const std::string& path) {
  if (!IsBucketPath(path)) return &disk_;
  const std::string bucket = path.substr(0, path.find('/', path.find("//") + 2));
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find({bucket, is_unguarded_});
  if (found != buckets_.end()) return &found->second->files;
  KEEL_TRY_ASSIGN(BucketOpener* const opener, Opener());
  KEEL_TRY_ASSIGN(std::unique_ptr<Objects> objects, opener->Open(bucket, is_unguarded_));
  std::unique_ptr<Opened>& place = buckets_[{bucket, is_unguarded_}];
  place = std::make_unique<Opened>(std::move(objects));
  return &place->files;
}

Result<std::unique_ptr<File>> BucketFiles::Open(const std::string& path, OpenFlags flags) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->Open(path, flags);
}
Status BucketFiles::Rename(const std::string& from, const std::string& to) {
  if (IsBucketPath(to)) return WriteRefused(to);
  KEEL_TRY_ASSIGN(Files* const files, Of(from));
  return files->Rename(from, to);
}
Status BucketFiles::Remove(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->Remove(path);
}
Status BucketFiles::RemoveDir(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->RemoveDir(path);
}
Status BucketFiles::MakeDir(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->MakeDir(path);
}
Result<std::vector<DirEntry>> BucketFiles::List(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->List(path);
}
Result<FileInfo> BucketFiles::Stat(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->Stat(path);
}
Status BucketFiles::SyncDir(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->SyncDir(path);
}
Result<std::string> BucketFiles::Resolve(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->Resolve(path);
}
Result<uint64_t> BucketFiles::FreeBytes(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->FreeBytes(path);
}
Result<std::unique_ptr<FileLock>> BucketFiles::Lock(const std::string& path,
                                                    const std::string& owner) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->Lock(path, owner);
}
Result<bool> BucketFiles::IsLocked(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->IsLocked(path);
}
Result<BucketPlace> BucketFiles::Bucket(const std::string& path) {
  KEEL_TRY_ASSIGN(Files* const files, Of(path));
  return files->Bucket(path);
}

BucketFiles& OwnBuckets() {
  static auto& disk = *new PosixFiles;
  static auto& files = *new BucketFiles(disk);
  return files;
}

}  // namespace keel
