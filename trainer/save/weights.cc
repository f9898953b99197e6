// Fills the tensors' own memory; those on another device or in another order go through a copy.
#include "trainer/weights.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "ckpt/catalog.h"
#include "ckpt/error_list.h"
#include "ckpt/restore.h"
#include "ckpt/safetensors_file.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

constexpr std::string_view kOptimizerPrefix = "optimizer.";

// Names may begin with "model." or not; tensors of an optimizer are ignored.
Status ReadSafetensors(const SafetensorsFile& file, const std::vector<RestoreTarget>& targets) {
  ErrorList errors;
  std::vector<bool> filled(targets.size(), false);
  const auto& tensors = file.header().tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].spec.name;
    if (name.rfind(kOptimizerPrefix, 0) == 0) continue;
    const bool has_prefix = name.rfind(kModelPrefix, 0) == 0;
    TensorSpec spec = tensors[i].spec;
    if (!has_prefix) spec.name = std::string(kModelPrefix) + name;
    const auto target = std::find_if(targets.begin(), targets.end(), [&](const auto& one) {
      return one.spec.name == spec.name;
    });
    if (target == targets.end()) {
      errors.Add(Code::kInvalid, "tensor " + name + " is not in this model");
    } else if (target->spec != spec) {
      errors.Add(Code::kInvalid, "tensor " + name + " is " + TypeText(spec) + " there and " +
                         TypeText(target->spec) + " in this model");
    } else {
      filled[static_cast<size_t>(target - targets.begin())] = true;
      KEEL_TRY(file.Read(i, 0, target->into));
    }
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!filled[i]) errors.Add(Code::kInvalid, "tensor " + targets[i].spec.name + " is missing");
  }
  return errors.ToStatus("weights from " + file.path());
}

bool IsSafetensors(std::string_view path) {
  return path.size() > kSafetensorsEnding.size() && path.ends_with(kSafetensorsEnding);
}

constexpr int kWeightsTries = 10;

// From the checkpoint that `path` names, whose directory is returned. A job that runs there may
// remove it meanwhile, and has made another one then.
Result<std::string> RestoreWeights(Files& files, const std::string& path,
                                   const std::vector<RestoreTarget>& targets, Progress* progress) {
  for (int tries = 1;; ++tries) {
    KEEL_TRY_ASSIGN(const std::string from, ResolveCheckpoint(files, path));
    const auto restored = [&]() -> Status {
      KEEL_TRY_ASSIGN(const auto checkpoint, Checkpoint::Open(files, from));
      KEEL_TRY(Restore(*checkpoint, targets,
                       {.only = {std::string(kModelPrefix) + "*"}, .progress = progress}));
      return Ok();
    }();
    if (restored.ok()) return from;
    if (!IsRemoved(files, from)) return restored.error();
    KEEL_TRY_ASSIGN(const std::string next, ResolveCheckpoint(files, path));
    if (next == from || tries == kWeightsTries) return restored.error();
  }
}

}  // namespace

Result<std::string> LoadWeights(const torch::nn::Module& model, Files& files,
                                const std::string& path, Progress* progress) {
  return LoadWeights(TensorsOf(model), files, path, progress);
}

Result<std::string> LoadWeights(const ModelTensors& model, Files& files, const std::string& path,
                                Progress* progress) {
  const NamedTensors tensors = AsSaved(model);
  KEEL_TRY_ASSIGN(const HostRoom room, HostRoom::For(tensors));
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(tensors));
  std::vector<RestoreTarget> targets;
  for (size_t i = 0; i < specs.size(); ++i) targets.push_back({std::move(specs[i]), room.At(i)});
  std::string from = path;
  if (IsSafetensors(path)) {
    KEEL_TRY_ASSIGN(const auto file, SafetensorsFile::Open(files, path));
    KEEL_TRY(ReadSafetensors(*file, targets));
  } else {
    KEEL_TRY_ASSIGN(from, RestoreWeights(files, path, targets, progress));
  }
  KEEL_TRY(room.Finish());
  return from;
}

}  // namespace keel
