// Directories that are made elsewhere and renamed into place.
#include "store/lease/put_if_absent.h"

#include "base/file_helpers.h"

namespace keel {
namespace {

constexpr std::string_view kContentName = "content";
constexpr std::string_view kPuttingPrefix = "putting-";
constexpr std::string_view kRemovingPrefix = "removing-";
constexpr std::string_view kProbePrefix = "probe-";
constexpr uint64_t kProbeBytesMax = 64;

std::string PathOf(const PutPlace& place, std::string_view prefix) {
  return JoinPath(place.folder, std::string(prefix) + place.name + "-" + place.writer);
}

Status Write(Files& files, const std::string& dir, std::string_view bytes) {
  KEEL_TRY_ASSIGN(const auto file,
                  files.Open(JoinPath(dir, kContentName),
                             {.write = true, .create = true, .exclusive = true}));
  KEEL_TRY(file->WriteAt(0, BytesOf(bytes)));
  KEEL_TRY(file->Sync());
  return files.SyncDir(dir);
}

// Of a directory whose name nobody puts to.
Status RemoveAside(Files& files, const std::string& dir) {
  const Status content = files.Remove(JoinPath(dir, kContentName));
  if (!content.ok() && content.error().code != Code::kNotFound) return content;
  return files.RemoveDir(dir);
}

}  // namespace

Status PutIfAbsent(Files& files, const PutPlace& place, std::string_view bytes) {
  const std::string aside = PathOf(place, kPuttingPrefix);
  // The same writer may have tried before.
  if (const Status made = files.MakeDir(aside); !made.ok()) {
    if (made.error().code != Code::kExists) return made;
    KEEL_TRY(RemoveAside(files, aside));
    KEEL_TRY(files.MakeDir(aside));
  }
  Status put = Write(files, aside, bytes);
  if (put.ok()) put = files.Rename(aside, JoinPath(place.folder, place.name));
  if (!put.ok()) {
    (void)RemoveAside(files, aside);   // the first error is the one to tell
    return put;
  }
  return files.SyncDir(place.folder);
}

Result<std::string> ReadPut(Files& files, const std::string& folder, const std::string& name,
                            uint64_t limit_bytes) {
  return ReadWhole(files, JoinPath(JoinPath(folder, name), kContentName), limit_bytes);
}

Status RemovePut(Files& files, const PutPlace& place) {
  if (place.name.starts_with(kRemovingPrefix)) {
    return RemoveAside(files, JoinPath(place.folder, place.name));
  }
  const std::string aside = PathOf(place, kRemovingPrefix);
  (void)RemoveAside(files, aside);   // of an earlier try, if there was one
  KEEL_TRY(files.Rename(JoinPath(place.folder, place.name), aside));
  return RemoveAside(files, aside);
}

std::optional<std::string> NameOnTheWay(std::string_view name) {
  for (const std::string_view prefix : {kPuttingPrefix, kRemovingPrefix}) {
    const size_t end = name.rfind('-');
    if (!name.starts_with(prefix) || end < prefix.size()) continue;
    return std::string(name.substr(prefix.size(), end - prefix.size()));
  }
  return std::nullopt;
}

Status ProbePutIfAbsent(Files& files, const std::string& folder, Random& random) {
  const std::string id = RandomId(random, 16);
  PutPlace place{folder, std::string(kProbePrefix) + id, id};
  KEEL_TRY(PutIfAbsent(files, place, "first"));
  const Status second = PutIfAbsent(files, place, "second");
  const Result<std::string> found = ReadPut(files, folder, place.name, kProbeBytesMax);
  (void)RemovePut(files, place);   // a leftover means nothing
  if (second.ok() || (found.ok() && *found != "first")) {
    return Error{Code::kInvalid, "two claims of one name in " + folder +
                                     " both succeeded: its file system is not atomic; name a "
                                     "directory on another one that all hosts share"};
  }
  if (second.error().code != Code::kExists) return second;
  return found.ok() ? Ok() : Status(found.error());
}

}  // namespace keel
