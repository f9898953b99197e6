// Looks at what the path is, and says it in words.
#include "trainer/save/checkpoint_root.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/file_helpers.h"
#include "ckpt/catalog.h"
#include "ckpt/names.h"

namespace keel {
namespace {

// "ROOT/step-000000060/" to "ROOT/step-000000060".
std::string WithoutEnd(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool IsNamedAsAStep(std::string_view path) {
  const size_t slash = path.rfind('/');
  return ParseStepDirName(slash == path.npos ? path : path.substr(slash + 1)).has_value();
}

// Names the directory in which that checkpoint's job saves; unknown if the path has no step's name.
std::string GoOnThere(const std::string& path) {
  if (!IsNamedAsAStep(path)) return "";
  return "--checkpoint-dir " + ParentDir(path) + " resumes the job that it belongs to; ";
}

constexpr const char* kOtherName = "give a directory with another name";

Error IsACheckpoint(const std::string& option, const std::string& path) {
  const std::string meant =
      option == kCheckpointDirOption
          ? GoOnThere(path) + "--resume-from or --init-from " + path +
                ", with another --checkpoint-dir, begins with it"
          : kOtherName;
  return {Code::kInvalid, option + " " + path +
                              " is itself a checkpoint, not a directory of checkpoints: " + meant};
}

Error IsAStep(const std::string& option, const std::string& path) {
  const std::string meant = option == kCheckpointDirOption ? GoOnThere(path) : "";
  return {Code::kInvalid, option + " " + path +
                              " is the place of a single checkpoint, not a directory of "
                              "checkpoints: " +
                              meant + kOtherName};
}

bool IsOfASave(const DirEntry& entry) {
  const StepFile::Kind kind = ParseStepFile(entry.name).kind;
  return kind == StepFile::Kind::kShard || kind == StepFile::Kind::kShardLock ||
         kind == StepFile::Kind::kManifestTemp;
}

// "ROOT@1200" names a checkpoint elsewhere; here it would be a new directory of that name.
Status CheckIsNoReference(Files& files, const std::string& option, const std::string& path) {
  const size_t at = path.rfind('@');
  if (at == std::string::npos || path.find('/', at) != std::string::npos) return Ok();
  const std::string root = path.substr(0, at);
  const auto steps = ListSteps(files, root);
  if (!steps.ok() || steps->empty()) return Ok();
  return Error{Code::kInvalid, option + " " + path + " would be a new directory beside " +
                                   root + ", which holds checkpoints: --checkpoint-dir " + root +
                                   " resumes their job; --resume-from or --init-from " + path +
                                   ", with another --checkpoint-dir, begins with one of them"};
}

}  // namespace

Status CheckIsRoot(Files& files, const std::string& given, const std::string& option) {
  const std::string path = WithoutEnd(given);
  const auto info = files.Stat(path);
  if (!info.ok() && info.error().code != Code::kNotFound) return info.error();
  if (info.ok() && info->kind != FileKind::kDirectory) {
    return Error{Code::kInvalid, option + " " + path + " is a file, not a directory: give "
                                                        "a directory, which need not exist yet"};
  }
  std::vector<DirEntry> entries;
  if (info.ok()) {
    KEEL_TRY_ASSIGN(entries, files.List(path));
  }
  const bool committed = std::any_of(entries.begin(), entries.end(), [](const DirEntry& entry) {
    return entry.name == kManifestName;
  });
  if (committed) return IsACheckpoint(option, path);
  if (IsNamedAsAStep(path) || std::any_of(entries.begin(), entries.end(), IsOfASave)) {
    return IsAStep(option, path);
  }
  return info.ok() ? Ok() : CheckIsNoReference(files, option, path);
}

}  // namespace keel
