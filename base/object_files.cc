// Objects with the paths and errors of files.
#include "base/object_files.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace keel {
namespace {

class ObjectFile : public File {
 public:
  ObjectFile(Objects& bucket, std::string path, std::string key, uint64_t bytes)
      : bucket_(bucket), path_(std::move(path)), key_(std::move(key)), bytes_(bytes) {}

  const std::string& path() const override { return path_; }
  bool direct() const override { return false; }

  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) override {
    if (offset >= bytes_) return size_t{0};
    const size_t count = std::min<uint64_t>(into.size(), bytes_ - offset);
    if (count == 0) return count;
    return bucket_.Get(key_, offset, into.first(count));
  }
  Result<uint64_t> Size() override { return bytes_; }

  Status WriteAt(uint64_t, std::span<const std::byte>) override { return Opened(); }
  Status Truncate(uint64_t) override { return Opened(); }
  Result<bool> Allocate(uint64_t) override { return Opened(); }
  Status Sync() override { return Opened(); }

 private:
  Error Opened() const { return {Code::kInvalid, path_ + " was opened to be read"}; }

  Objects& bucket_;
  const std::string path_;
  const std::string key_;
  const uint64_t bytes_;
};

// "a/b" of "a/b/c", "" of "c".
std::string ParentOf(const std::string& key) {
  const size_t slash = key.rfind('/');
  return slash == std::string::npos ? "" : key.substr(0, slash);
}

}  // namespace

Error WriteRefused(const std::string& path) {
  return {Code::kInvalid, path + " is in a bucket, where such a file cannot be written: name one "
                                 "on a disk, then copy it (for one, `aws s3 sync`)"};
}

std::string PrefixOf(const BucketPlace& place) {
  return place.key.empty() ? "" : place.key + "/";
}

bool IsInBucket(Files& files, const std::string& path) {
  const Result<BucketPlace> place = files.Bucket(path);
  return place.ok() && place->bucket != nullptr;
}

std::string ObjectFiles::KeyOf(const std::string& path) const {
  const std::string& name = bucket_.name();
  KEEL_CHECK(path.starts_with(name), path << " is not in " << name);
  std::string key = path.substr(name.size());
  const auto is_slash = [](char c) { return c == '/'; };
  key.erase(key.begin(), std::find_if_not(key.begin(), key.end(), is_slash));
  key.erase(std::find_if_not(key.rbegin(), key.rend(), is_slash).base(), key.end());
  const auto both = [&](char a, char b) { return is_slash(a) && is_slash(b); };
  key.erase(std::unique(key.begin(), key.end(), both), key.end());
  return key;
}

bool ObjectFiles::TakeListed(const std::string& key, uint64_t* bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = listed_.find(key);
  if (found == listed_.end()) return false;
  *bytes = found->second;
  listed_.erase(found);
  return true;
}

Result<std::unique_ptr<File>> ObjectFiles::Open(const std::string& path, OpenFlags flags) {
  KEEL_TRY(CheckOpenFlags(path, flags));
  if (flags.write) return WriteRefused(path);
  const std::string key = KeyOf(path);
  KEEL_TRY_ASSIGN(const ObjectInfo info, bucket_.Look(key));
  return std::unique_ptr<File>(std::make_unique<ObjectFile>(bucket_, path, key, info.bytes));
}

Result<std::vector<DirEntry>> ObjectFiles::List(const std::string& path) {
  const std::string key = KeyOf(path);
  const std::string prefix = PrefixOf({&bucket_, key});
  KEEL_TRY_ASSIGN(const ObjectListing listing, bucket_.List(prefix, Objects::Depth::kToSlash));
  const std::lock_guard lock(mutex_);
  std::erase_if(listed_, [&](const auto& one) { return ParentOf(one.first) == key; });
  if (listing.objects.empty() && listing.prefixes.empty() && !key.empty()) {
    return Error{Code::kNotFound, path + " is not there"};
  }
  std::vector<DirEntry> entries;
  for (const ObjectInfo& object : listing.objects) {
    const std::string name = object.key.substr(prefix.size());
    if (name.empty()) continue;   // some programs put one where a directory would be
    entries.push_back({name, FileKind::kFile});
    listed_[object.key] = object.bytes;
  }
  for (const std::string& below : listing.prefixes) {
    const std::string name = below.substr(prefix.size(), below.size() - prefix.size() - 1);
    if (!name.empty()) entries.push_back({name, FileKind::kDirectory});
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

Result<FileInfo> ObjectFiles::Stat(const std::string& path) {
  const std::string key = KeyOf(path);
  if (key.empty()) return FileInfo{FileKind::kDirectory, 0};
  uint64_t bytes = 0;
  if (TakeListed(key, &bytes)) return FileInfo{FileKind::kFile, bytes};
  const Result<ObjectInfo> object = bucket_.Look(key);
  if (object.ok()) return FileInfo{FileKind::kFile, object->bytes};
  if (object.error().code != Code::kNotFound) return object.error();
  KEEL_TRY_ASSIGN(const ObjectListing below, bucket_.List(key + "/", Objects::Depth::kToSlash));
  if (below.objects.empty() && below.prefixes.empty()) {
    return Error{Code::kNotFound, path + " is not there"};
  }
  return FileInfo{FileKind::kDirectory, 0};
}

Result<bool> ObjectFiles::IsLocked(const std::string&) { return false; }

Status ObjectFiles::Rename(const std::string& from, const std::string&) {
  return WriteRefused(from);
}
Status ObjectFiles::Remove(const std::string& path) { return bucket_.Remove({KeyOf(path)}); }
Status ObjectFiles::RemoveDir(const std::string&) { return Ok(); }
Status ObjectFiles::MakeDir(const std::string&) { return Ok(); }
Status ObjectFiles::SyncDir(const std::string&) { return Ok(); }
Result<BucketPlace> ObjectFiles::Bucket(const std::string& path) {
  return BucketPlace{&bucket_, KeyOf(path)};
}
Result<uint64_t> ObjectFiles::FreeBytes(const std::string& path) { return WriteRefused(path); }

Result<std::unique_ptr<FileLock>> ObjectFiles::Lock(const std::string& path, const std::string&) {
  return WriteRefused(path);
}

}  // namespace keel
