// Checkpoints for Python: a state that was verified whole, as names and tensors, and the reverse.
#include "python/checkpoints.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/output_file.h"
#include "base/posix_files.h"
#include "ckpt/catalog.h"
#include "ckpt/glob.h"
#include "ckpt/restore.h"
#include "ckpt/safetensors_file.h"
#include "store/bucket_files.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

// LibTorch's type of that name.
Result<at::ScalarType> TypeOf(const TensorSpec& spec) {
  for (const at::ScalarType type :
       {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt, at::kShort,
        at::kChar, at::kByte, at::kBool, at::kFloat8_e4m3fn, at::kFloat8_e5m2,
        at::kComplexFloat, at::kComplexDouble}) {
    KEEL_TRY_ASSIGN(const auto specs, SpecsOf({{spec.name, at::empty({0}, type)}}));
    if (specs.front().dtype == spec.dtype) return type;
  }
  return Error{Code::kInvalid, "tensor " + spec.name + " has the type " +
                                   std::string(DtypeName(spec.dtype)) +
                                   ", which PyTorch has not"};
}

bool IsWanted(const std::vector<std::string>& only, const std::string& name) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& pattern) {
    return GlobMatches(pattern, name);
  });
}

}  // namespace

Result<NamedTensors> ReadState(const std::string& path, std::vector<std::string> only,
                               const std::vector<std::string>& if_there) {
  PosixFiles disk;
  BucketFiles files(disk);
  KEEL_TRY_ASSIGN(const std::string from, ResolveCheckpoint(files, path));
  KEEL_TRY_ASSIGN(const auto checkpoint, Checkpoint::Open(files, from));
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
    return Error{Code::kNotFound, "no tensor of " + from + " has a name that was asked for; "
                                      "`keel ls " + from + "` lists them"};
  }
  KEEL_TRY_ASSIGN(const HostRoom room, HostRoom::For(state));
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(state));
  std::vector<RestoreTarget> targets;
  for (size_t i = 0; i < specs.size(); ++i) targets.push_back({std::move(specs[i]), room.At(i)});
  KEEL_TRY(Restore(*checkpoint, targets, {.only = only, .into = Into::kFresh}));
  KEEL_TRY(room.Finish());
  return state;
}

Status WriteState(const NamedTensors& state, const std::string& path, bool replace) {
  PosixFiles disk;
  BucketFiles files(disk);
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(state));
  KEEL_TRY_ASSIGN(const SafetensorsHeader header, MakeSafetensorsHeader(std::move(specs), {}));
  KEEL_TRY_ASSIGN(const CpuBytes bytes,
                  CpuBytes::Of(state, [](size_t) { return CpuBytes::Take::kAlias; }));
  std::map<std::string_view, size_t> index_of;
  for (size_t i = 0; i < state.size(); ++i) index_of[state[i].name] = i;
  RemoveOutputLeftovers(files, path);
  Result<std::unique_ptr<SafetensorsWriter>> writer =
      SafetensorsWriter::Begin(files, {path, NewOutputId(), replace}, header);
  if (!writer.ok()) {
    Error error = writer.error();
    if (error.code == Code::kExists) error.message += "; replace=True replaces it";
    return error;
  }
  for (const SafetensorsTensor& tensor : header.tensors) {
    KEEL_TRY((*writer)->Append(bytes.spans()[index_of.at(tensor.spec.name)]));
  }
  return (*writer)->Commit();
}

}  // namespace keel
