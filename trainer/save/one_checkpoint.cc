// Compares, verifies, fills.
#include "trainer/save/one_checkpoint.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/object_files.h"
#include "ckpt/error_list.h"
#include "ckpt/restore.h"
#include "ckpt/verify.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

// More threads would only wait for the disk.
constexpr int kReadingThreadsMax = 8;

void CompareTensors(const Layout& layout, const std::vector<TensorSpec>& ours, ErrorList* errors) {
  for (const TensorSpec& spec : ours) {
    const auto found = layout.Find(spec.name);
    if (!found) {
      errors->Add(Code::kInvalid, "tensor " + spec.name + " is not in the checkpoint");
    } else if (layout.tensors()[*found].spec != spec) {
      errors->Add(Code::kInvalid, "tensor " + spec.name + " is " + TypeText(spec) + " here and " +
                                      TypeText(layout.tensors()[*found].spec) +
                                      " in the checkpoint");
    }
  }
  for (const PlacedTensor& placed : layout.tensors()) {
    const bool known = std::any_of(ours.begin(), ours.end(), [&](const TensorSpec& spec) {
      return spec.name == placed.spec.name;
    });
    if (known) continue;
    errors->Add(Code::kInvalid, "tensor " + placed.spec.name + " is not in this program");
  }
}

Result<std::vector<RestoreTarget>> TargetsIn(const NamedTensors& tensors, const HostRoom& room) {
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(tensors));
  std::vector<RestoreTarget> targets;
  for (size_t i = 0; i < specs.size(); ++i) targets.push_back({std::move(specs[i]), room.At(i)});
  return targets;
}

Metadata NumbersOf(TrainState& state, const Metadata& metadata) {
  Metadata numbers;
  for (const auto& [name, value] : state.registry().Numbers()) {
    const auto found = metadata.find(name);
    if (found != metadata.end()) numbers[name] = found->second;
  }
  return numbers;
}

int ReadingThreads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, kReadingThreadsMax);
}

}  // namespace

Result<bool> CheckSameJob(TrainState& state, const Checkpoint& checkpoint,
                          const std::string& fingerprint, bool allow_inexact) {
  const Description& description = checkpoint.manifest().description;
  ErrorList errors;
  KEEL_TRY_ASSIGN(const auto specs, SpecsOf(state.registry().tensors()));
  CompareTensors(checkpoint.layout(), specs, &errors);
  KEEL_TRY_ASSIGN(const FingerprintCheck check,
                  CompareFingerprints(fingerprint, FingerprintIn(description.metadata)));
  if (!check.never.empty()) errors.Add(Code::kInvalid, check.never);
  if (!check.inexact.empty() && !allow_inexact) {
    const char* const cure = check.never.empty()
                                 ? " (--allow-inexact resumes all the same, and records it)"
                                 : "";
    errors.Add(Code::kInvalid, "the results would differ in their bits: " + check.inexact + cure);
  }
  if (description.step > state.config().steps) {
    errors.Add(Code::kInvalid, "it is at step " + std::to_string(description.step) +
                       ", beyond the last one of this job (--steps " +
                       std::to_string(state.config().steps) + ")");
  }
  KEEL_TRY(errors.ToStatus("checkpoint " + checkpoint.dir() + " is not of this job"));
  return check.inexact.empty();
}

bool IsReadOnce(Files& files, const Checkpoint& checkpoint) {
  return IsInBucket(files, checkpoint.dir());
}

Status VerifyStored(const Checkpoint& checkpoint, Progress* progress) {
  const ScanOptions options{.threads = ReadingThreads(), .progress = progress,
                            .depth = Depth::kStored};
  KEEL_TRY_ASSIGN(const auto damages, VerifyFrames(checkpoint, options));
  return DamageStatus(checkpoint, damages);
}

Status FillTensors(TrainState& state, const Checkpoint& checkpoint, Progress* progress) {
  KEEL_TRY_ASSIGN(const HostRoom room, HostRoom::For(state.registry().tensors()));
  KEEL_TRY_ASSIGN(const auto targets, TargetsIn(state.registry().tensors(), room));
  const RestoreOptions options{.into = Into::kFresh, .threads = ReadingThreads(),
                               .progress = progress};
  KEEL_TRY(Restore(checkpoint, targets, options));
  return room.Finish();
}

Status TakeNumbers(TrainState& state, const Checkpoint& checkpoint, bool exact) {
  const Metadata& metadata = checkpoint.manifest().description.metadata;
  const auto since = metadata.find("inexact_since");
  const int64_t* const inexact =
      since == metadata.end() ? nullptr : std::get_if<int64_t>(&since->second);
  KEEL_TRY(state.EndRestoring(NumbersOf(state, metadata), inexact == nullptr ? -1 : *inexact));
  if (!exact) state.NoteInexact();
  return Ok();
}

}  // namespace keel
