// Whole small files and directory chains, on top of any Files.
#include "base/file_helpers.h"

#include "base/objects.h"

namespace keel {
namespace {

Status WriteAndSync(Files& files, const std::string& path, std::string_view content) {
  KEEL_TRY_ASSIGN(const auto file,
                  files.Open(path, {.write = true, .create = true, .truncate = true}));
  KEEL_TRY(file->WriteAt(0, BytesOf(content)));
  return file->Sync();
}

Error TooLong(const std::string& path, uint64_t limit_bytes) {
  return {Code::kInvalid, "read " + path + ": it holds more than the " +
                              std::to_string(limit_bytes) + " bytes that are expected at most"};
}

}  // namespace

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string ParentDir(std::string_view path) {
  const auto without_slashes = [](std::string_view text) {
    while (text.size() > 1 && text.back() == '/') text.remove_suffix(1);
    return text;
  };
  path = without_slashes(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(without_slashes(path.substr(0, slash + 1)));
}

std::string JoinPath(std::string_view dir, std::string_view name) {
  std::string joined(dir);
  if (!joined.empty() && joined.back() != '/') joined += '/';
  joined += name;
  return joined;
}

Result<bool> Exists(Files& files, const std::string& path) {
  const Result<FileInfo> info = files.Stat(path);
  if (info.ok()) return true;
  if (info.error().code == Code::kNotFound) return false;
  return info.error();
}

Result<std::string> ReadWhole(Files& files, const std::string& path, uint64_t limit_bytes) {
  KEEL_TRY_ASSIGN(const auto file, files.Open(path, {.sequential = true}));
  KEEL_TRY_ASSIGN(const uint64_t size, file->Size());
  if (size > limit_bytes) return TooLong(path, limit_bytes);
  std::string content;
  // Some files (those of /proc) say 0 and hold more, so the end is where reading says it is.
  for (uint64_t room = size + 1;; room = content.size() + 4096) {
    const size_t had = content.size();
    content.resize(room);
    const auto rest = std::as_writable_bytes(std::span(content)).subspan(had);
    KEEL_TRY_ASSIGN(const size_t got, file->ReadAt(had, rest));
    content.resize(had + got);
    if (content.size() > limit_bytes) return TooLong(path, limit_bytes);
    if (content.size() < room) return content;
  }
}

Status WriteDurably(Files& files, const std::string& path, std::string_view content) {
  KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(path));
  if (place.bucket != nullptr) return place.bucket->Replace(place.key, content);
  const std::string temporary = path + std::string(kTemporarySuffix);
  Status status = WriteAndSync(files, temporary, content);
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    (void)files.Remove(temporary);  // the first error is the one to tell
    return status.error().Doing("writing " + path);
  }
  const Status synced = files.SyncDir(ParentDir(path));
  if (!synced.ok()) return synced.error().Doing("writing " + path);
  return Ok();
}

Status MakeDirs(Files& files, const std::string& path) {
  const std::string parent = ParentDir(path);
  Status made = files.MakeDir(path);
  if (!made.ok() && made.error().code == Code::kNotFound && parent != path) {
    KEEL_TRY(MakeDirs(files, parent));
    made = files.MakeDir(path);
  }
  if (made.ok()) return files.SyncDir(parent);
  if (made.error().code != Code::kExists) return made;
  KEEL_TRY_ASSIGN(const FileInfo info, files.Stat(path));
  if (info.kind != FileKind::kDirectory) return made;
  (void)files.SyncDir(parent);
  return Ok();
}

}  // namespace keel
