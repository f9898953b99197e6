// LaneEvidence: what shows that somebody computed a lane wrongly, in one file by which anybody can
// compute that lane again (trainer/loop/recompute.h).
// A safetensors file. Tensors: `model.*`, as the step began, and `kept.*`, which the program keeps
// beside it; `input.*`, the lane's samples, where they are tensors; `of_owner.*` and
// `of_checker.*`, in which the two results differ. Metadata:
// `evenkeel.corruption`, as JSON.
// Promises   what is written is read as the same, bit for bit.
// Threads    one.
// Errors     those of trainer/save/tensor_file.h; kInvalid: the file is no evidence, or of another
//            model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "trainer/loop/lane_result.h"
#include "trainer/state/train_state.h"

namespace keel {

// What somebody came to.
struct LaneClaim {
  std::string member;          // "rank 1 (node7/0)"
  std::string role;            // owner, checker, witness
  bool is_second = false;      // after a difference had been seen
  LaneResult result;
};

// As the two computed it first.
inline constexpr const char* kDifferingBuffers = "buffers";
inline constexpr const char* kDifferingGradient = "gradient.";
struct DifferingTensor {
  std::string name;            // of the above; behind a gradient's its parameter's
  at::Tensor owner;
  at::Tensor checker;
};

struct LaneEvidence {
  uint64_t step = 0;
  int lane = 0;
  std::string verdict = {};
  std::string fingerprint = {};     // of the job; empty: not known
  std::string numbers = {};         // of the state (StateRegistry::NumbersText())
  std::vector<std::string> parameters = {};   // their names
  std::vector<LaneClaim> claims = {};
  std::vector<DifferingTensor> differing = {};
  std::optional<Batch> batch = {};  // nothing: samples that are not of tensors alone
};

std::string EvidenceName(uint64_t step, int lane);

// What a lane is computed from, beside its samples: the model, and what the program keeps.
NamedTensors EvidenceTensors(TrainState& state);

// `model`: as EvidenceTensors() names it.
Status WriteEvidence(Files& files, const std::string& path, const LaneEvidence& evidence,
                     const NamedTensors& model);
// Brings the model and what is kept into `state`, but not the numbers. Files of former versions
// have nothing that is kept.
Result<LaneEvidence> ReadEvidence(Files& files, const std::string& path, TrainState& state);

}  // namespace keel
