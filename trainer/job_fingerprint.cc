// Lists what decides the bits: the host, the config, the program, its options, its tensors.
#include "trainer/job_fingerprint.h"

#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "trainer/numerics/numerics.h"
#include "trainer/state/device.h"

namespace keel {
namespace {

// As std::to_string() writes it, with six digits after the point, if that is exact.
std::string ExactText(double number) {
  const std::string usual = std::to_string(number);
  return std::strtod(usual.c_str(), nullptr) == number ? usual : NumberText(number);
}

}  // namespace

const char* ReduceName(Reduce reduce) { return reduce == Reduce::kTree ? "tree" : "allreduce"; }

Result<std::string> FingerprintOf(TrainState& state, const RunConfig& run) {
  const TrainConfig& config = state.config();
  KEEL_TRY_ASSIGN(std::string device_name, DeviceName(config.device));
  KEEL_TRY_ASSIGN(Fingerprint fingerprint,
                  HostFingerprint({.numerics = config.numerics.numerics,
                                   .device = config.device,
                                   .device_name = std::move(device_name),
                                   .precision = config.precision,
                                   .lanes = config.lanes,
                                   .lane_batch = config.lane_batch}));
  // A worker that stopped earlier would leave the others waiting for its lanes.
  fingerprint.Add("steps", std::to_string(config.steps));
  fingerprint.Add("seed", std::to_string(config.seed));
  fingerprint.Add("samples", std::to_string(state.program().dataset->size()));
  if (const std::string data = state.program().dataset->Identity(); !data.empty()) {
    fingerprint.Add("data", data);
  }
  // Earlier versions loaded a lane with the seed that it is computed with, to other bits.
  if (state.program().dataset->loading() == Loading::kInStep) fingerprint.Add("draws", "apart");
  fingerprint.Add("reduce", ReduceName(config.reduce));
  fingerprint.Add("rate", ExactText(config.update.learning_rate));
  fingerprint.Add("schedule", config.update.schedule.Text());
  fingerprint.Add("clip_norm", ExactText(config.update.clip_norm.value_or(0)));
  fingerprint.Add("non_finite", NonFiniteName(config.update.non_finite));
  fingerprint.Add("optimizer", state.program().optimizer->Text());
  if (const std::string decay = state.program().optimizer->DecayText(); !decay.empty()) {
    fingerprint.Add("decay", decay);
  }
  AddOptions(run, &fingerprint);
  fingerprint.Add("layout", state.registry().LayoutDigest().Hex().substr(0, 16));
  return fingerprint.Text();
}

}  // namespace keel
