// Fills the tensors' own memory; those on another device or in another order go through a copy.
#include "trainer/weights.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckpt/catalog.h"
#include "ckpt/checkpoint.h"
#include "ckpt/error_list.h"
#include "ckpt/layout.h"
#include "ckpt/restore.h"
#include "ckpt/safetensors_file.h"
#include "trainer/save/use_named.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

// Of the model's own names, the file has each without the "model." in front, as state_dict() does.
// (With it, these would be other names: a part of a model may be called so, too.)
bool HasPlainNames(const SafetensorsFile& file, const std::vector<RestoreTarget>& targets) {
  std::set<std::string> names;
  for (const SafetensorsTensor& tensor : file.header().tensors) {
    names.insert(std::string(kModelPrefix) + tensor.spec.name);
  }
  return std::all_of(targets.begin(), targets.end(), [&](const RestoreTarget& target) {
    return names.contains(target.spec.name);
  });
}

// How a checkpoint names the buffers that weights need not have.
std::set<std::string> MaySpare(const ModelTensors& model) {
  std::set<std::string> names;
  for (const std::string& name : model.derived) names.insert(std::string(kModelPrefix) + name);
  return names;
}

// What is to be filled: the model's tensors without those that are spared.
NamedTensors Without(const std::set<std::string>& spared, const ModelTensors& model) {
  NamedTensors tensors = AsSaved(model);
  std::erase_if(tensors, [&](const NamedTensor& one) { return spared.contains(one.name); });
  return tensors;
}

// Without the derived buffers that the file has not, under either name.
NamedTensors ExpectedIn(const SafetensorsFile& file, const ModelTensors& model) {
  std::set<std::string> spared = MaySpare(model);
  for (const SafetensorsTensor& tensor : file.header().tensors) {
    spared.erase(tensor.spec.name);
    spared.erase(std::string(kModelPrefix) + tensor.spec.name);
  }
  return Without(spared, model);
}

// A job's own checkpoint has all of them, and one that was imported may lack the derived ones.
NamedTensors ExpectedIn(const Checkpoint& checkpoint, const ModelTensors& model) {
  std::set<std::string> spared = MaySpare(model);
  for (const PlacedTensor& tensor : checkpoint.layout().tensors()) spared.erase(tensor.spec.name);
  return Without(spared, model);
}

// state_dict() has a tensor under each name that a model has for it, and the model under one.
Result<bool> IsCopyOfATarget(const SafetensorsFile& file, size_t tensor,
                             const std::vector<RestoreTarget>& targets) {
  const TensorSpec& spec = file.header().tensors[tensor].spec;
  std::vector<std::byte> bytes;
  for (const RestoreTarget& target : targets) {
    if (target.spec.dtype != spec.dtype || target.spec.shape != spec.shape) continue;
    if (bytes.empty()) {
      bytes.resize(target.into.size());
      KEEL_TRY(file.Read(tensor, 0, bytes));
    }
    if (std::equal(bytes.begin(), bytes.end(), target.into.begin(), target.into.end())) return true;
  }
  return false;
}

// Names may begin with "model." or not; what else a checkpoint holds is ignored.
Status ReadSafetensors(const SafetensorsFile& file, const std::vector<RestoreTarget>& targets) {
  ErrorList errors;
  std::vector<bool> filled(targets.size(), false);
  std::vector<size_t> unknown;
  const auto& tensors = file.header().tensors;
  const bool is_plain = HasPlainNames(file, targets);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].spec.name;
    TensorSpec spec = tensors[i].spec;
    if (is_plain || !name.starts_with(kModelPrefix)) spec.name = std::string(kModelPrefix) + name;
    const auto target = std::find_if(targets.begin(), targets.end(), [&](const auto& one) {
      return one.spec.name == spec.name;
    });
    if (target == targets.end()) {
      const bool is_other = name.starts_with(kOptimizerPrefix) || name.starts_with(kKeptPrefix);
      if (!is_other) unknown.push_back(i);
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
  for (const size_t i : unknown) {
    KEEL_TRY_ASSIGN(const bool is_copy, IsCopyOfATarget(file, i, targets));
    if (is_copy) continue;
    errors.Add(Code::kInvalid, "tensor " + tensors[i].spec.name + " is not in this model");
  }
  return errors.ToStatus("weights from " + file.path());
}

bool IsSafetensors(std::string_view path) {
  return path.size() > kSafetensorsEnding.size() && path.ends_with(kSafetensorsEnding);
}

// `read` fills the targets, which are memory of the host's, of the tensors themselves if possible.
template <class Read>
Status FillRoom(const NamedTensors& tensors, const Read& read) {
  KEEL_TRY_ASSIGN(const HostRoom room, HostRoom::For(tensors));
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(tensors));
  std::vector<RestoreTarget> targets;
  for (size_t i = 0; i < specs.size(); ++i) targets.push_back({std::move(specs[i]), room.At(i)});
  KEEL_TRY(read(targets));
  return room.Finish();
}

Status FillFromFile(const ModelTensors& model, Files& files, const std::string& path) {
  KEEL_TRY_ASSIGN(const auto file, SafetensorsFile::Open(files, path));
  return FillRoom(ExpectedIn(*file, model), [&](const std::vector<RestoreTarget>& targets) {
    return ReadSafetensors(*file, targets);
  });
}

// `text` has named it.
Status FillFromStep(const ModelTensors& model, Files& files, const std::string& dir,
                    const std::string& text, Progress* progress) {
  KEEL_TRY_ASSIGN(const auto checkpoint, OpenNamed(files, dir, text));
  const auto read = [&](const std::vector<RestoreTarget>& targets) -> Status {
    KEEL_TRY(Restore(*checkpoint, targets,
                     {.only = {std::string(kModelPrefix) + "*"}, .progress = progress}));
    return Ok();
  };
  return FillRoom(ExpectedIn(*checkpoint, model), read);
}

}  // namespace

Result<std::string> LoadWeights(const torch::nn::Module& model, Files& files,
                                const std::string& path, Progress* progress) {
  return LoadWeights(TensorsOf(model), files, path, progress);
}

Result<std::string> LoadWeights(const ModelTensors& model, Files& files, const std::string& path,
                                Progress* progress) {
  if (IsSafetensors(path)) {
    KEEL_TRY(FillFromFile(model, files, path));
    return path;
  }
  const auto ask = [](const auto& question) { return question(); };
  return UseNamed(files, path, ask, [&](const std::string& dir) {
    return FillFromStep(model, files, dir, path, progress);
  });
}

}  // namespace keel
