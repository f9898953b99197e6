// Checkpoints for Python: a state that was verified whole, as names and tensors, and the reverse.
#include "python/checkpoints.h"

#include <algorithm>
#include <utility>

#include "base/posix_files.h"
#include "ckpt/catalog.h"
#include "ckpt/glob.h"
#include "ckpt/restore.h"
#include "ckpt/safetensors.h"
#include "store/bucket_files.h"
#include "trainer/save/tensor_file.h"
#include "trainer/save/use_named.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

bool IsWanted(const std::vector<std::string>& only, const std::string& name) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& pattern) {
    return GlobMatches(pattern, name);
  });
}

Result<NamedTensors> ReadFile(Files& files, const std::string& path,
                              const std::vector<std::string>& only) {
  KEEL_TRY_ASSIGN(TensorFile file, ReadTensorFile(files, path, [&](const std::string& name) {
    return IsWanted(only, name);
  }));
  for (const std::string& pattern : only) {
    if (std::any_of(file.tensors.begin(), file.tensors.end(), [&](const NamedTensor& one) {
          return GlobMatches(pattern, one.name);
        })) continue;
    return Error{Code::kNotFound, "no tensor of " + path + " is called " + pattern};
  }
  return std::move(file.tensors);
}

// `text` has named it.
Result<NamedTensors> ReadStep(Files& files, const std::string& dir, const std::string& text,
                              std::vector<std::string> only,
                              const std::vector<std::string>& if_there) {
  KEEL_TRY_ASSIGN(const auto checkpoint, OpenNamed(files, dir, text));
  for (const PlacedTensor& placed : checkpoint->layout().tensors()) {
    const std::string& name = placed.spec.name;
    if (std::find(if_there.begin(), if_there.end(), name) != if_there.end()) only.push_back(name);
  }
  NamedTensors state;
  for (const PlacedTensor& placed : checkpoint->layout().tensors()) {
    if (!IsWanted(only, placed.spec.name)) continue;
    KEEL_TRY_ASSIGN(const at::ScalarType type, TypeOf(placed.spec));
    state.push_back({placed.spec.name, at::empty(placed.spec.shape, type)});
  }
  if (state.empty()) {
    return Error{Code::kNotFound, "no tensor of " + dir + " has a name that was asked for; "
                                      "`keel inspect " + dir + "` lists them"};
  }
  KEEL_TRY_ASSIGN(const HostRoom room, HostRoom::For(state));
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(state));
  std::vector<RestoreTarget> targets;
  for (size_t i = 0; i < specs.size(); ++i) targets.push_back({std::move(specs[i]), room.At(i)});
  KEEL_TRY(Restore(*checkpoint, targets, {.only = only, .into = Into::kFresh}));
  KEEL_TRY(room.Finish());
  return state;
}

}  // namespace

Result<NamedTensors> ReadState(const std::string& path, const std::vector<std::string>& only,
                               const std::vector<std::string>& if_there) {
  PosixFiles disk;
  BucketFiles files(disk);
  if (path.ends_with(kSafetensorsEnding)) return ReadFile(files, path, only);
  NamedTensors state;
  const auto ask = [](const auto& question) { return question(); };
  KEEL_TRY(UseNamed(files, path, ask, [&](const std::string& dir) -> Status {
    KEEL_TRY_ASSIGN(state, ReadStep(files, dir, path, only, if_there));
    return Ok();
  }));
  return state;
}

Status WriteState(const NamedTensors& state, const std::string& path, bool replace) {
  PosixFiles disk;
  BucketFiles files(disk);
  const Status written = WriteTensorFile(files, {state, {}}, path, replace);
  if (written.ok() || written.error().code != Code::kExists) return written;
  Error error = written.error();
  error.message += "; replace=True replaces it";
  return error;
}

}  // namespace keel
