// TrainConfig: what the options of a training run decide.
// Threads    plain values.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/loss_scale.h"
#include "trainer/precision.h"
#include "trainer/schedule.h"

namespace keel {

enum class Numerics { kPortable, kNative };
struct NumericsConfig {
  Numerics numerics = Numerics::kPortable;
  int threads = 1;  // of one operation; results of sums depend on it
};

enum class Reduce {
  kTree,       // exact: the order of lanes
  kAllReduce,  // for comparison: each worker adds its lanes, Gloo or NCCL adds the workers
};

// What to do with a step whose loss or gradients are NaN or infinite.
enum class NonFinite { kStop, kSkip };

// In place of a folder.
inline constexpr const char* kNoEvidence = "none";

// What to do where two workers come to other bits, and nobody can tell which one is wrong.
enum class OnCorruption { kStop, kContinue };

struct UpdateConfig {
  double learning_rate = 1e-3;
  Schedule schedule = {};
  std::optional<double> clip_norm = {};  // the gradients' global norm is brought down to it
  NonFinite non_finite = NonFinite::kStop;
  // Gradients are checked if their norm is needed anyway (clipping, loss scaling). Otherwise only
  // the losses are checked, unless this is set: it costs one pass over the gradients.
  bool check_gradients = false;
  std::optional<LossScale> loss_scale = {};  // fp16
};

struct LoaderConfig {
  int threads = 1;     // threads that load ahead; 0: each step loads its own batches
  size_t ahead = 4;    // batches of a lane that are loaded before they are needed
};

// For fewer bytes, the messages it takes to read a neighbour's memory cost more than reading saves.
inline constexpr size_t kReadBytesMin = size_t{128} << 10;

struct TrainConfig {
  uint64_t steps = 100;
  uint64_t seed = 0;
  uint64_t lanes = 8;        // V: fixed for ever, whatever the number of workers
  uint64_t lane_batch = 8;   // B: samples of one lane in one step
  Precision precision = Precision::kFp32;
  c10::Device device = c10::kCPU;   // where the program puts its model
  NumericsConfig numerics = {};
  Reduce reduce = Reduce::kTree;
  UpdateConfig update = {};
  LoaderConfig loader = {};        // no bit depends on it
  bool places_lanes = true;        // where they cost least; false: an even split
  bool joins_beside = true;        // newcomers receive a large state while the others go on
  size_t bucket_bytes = 25 << 20;  // of gradients that travel together; no bit depends on it
  // Workers on one host read each other's memory instead of sending, from this many bytes on.
  size_t read_bytes_min = kReadBytesMin;
  // Steps between those in which workers compute some lanes twice; none: as UsualRecheckEvery()
  // says (trainer/loop/recheck_plan.h); 0: never.
  std::optional<uint64_t> recheck_every = {};
  OnCorruption on_corruption = OnCorruption::kStop;
  // Where what shows a wrong result is saved. Empty: beside the checkpoints, if there are any.
  std::string evidence_dir = {};
  uint64_t digest_every = 100;  // steps after which parameters are compared; 0: never
  // Where members go on together, a state larger than this is compared piece by piece in the next
  // steps, so that nobody waits for it. A newcomer receives such a state while the others go on.
  uint64_t piece_bytes = 16 << 20;
};

}  // namespace keel
