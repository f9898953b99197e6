// Checks the losses, checks the gradients, scales them once, applies.
#include "trainer/state/update.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/state/gradients.h"

namespace keel {
namespace {

constexpr std::array<std::pair<NonFinite, std::string_view>, 2> kNames = {
    {{NonFinite::kStop, "stop"}, {NonFinite::kSkip, "skip"}}};

std::string NumberWord(double number) {
  if (std::isnan(number)) return "nan";
  return number > 0 ? "inf" : "-inf";
}

// "the loss of lane 3 is nan", "the losses of lanes 0, 3 are nan, inf"; empty if all are finite.
std::string NotFiniteAmong(std::span<const float> lane_losses) {
  std::vector<std::string> lanes;
  std::vector<std::string> values;
  for (size_t lane = 0; lane < lane_losses.size(); ++lane) {
    if (std::isfinite(lane_losses[lane])) continue;
    lanes.push_back(std::to_string(lane));
    values.push_back(NumberWord(lane_losses[lane]));
  }
  if (lanes.empty()) return {};
  if (lanes.size() == 1) return "the loss of lane " + lanes[0] + " is " + values[0];
  return "the losses of lanes " + JoinList(lanes, ", ") + " are " + JoinList(values, ", ");
}

Error StoppedAt(uint64_t step, const std::string& why) {
  return {Code::kInvalid, "step " + std::to_string(step) + ": " + why +
                              "; nothing of this step was applied (the policy is to stop; with "
                              "'skip' training would go on without the step)"};
}

}  // namespace

std::string_view NonFiniteName(NonFinite policy) {
  return kNames[static_cast<size_t>(policy)].second;
}

Result<NonFinite> ParseNonFinite(std::string_view name) {
  for (const auto& [policy, known] : kNames) {
    if (name == known) return policy;
  }
  return Error{Code::kInvalid,
               "the policy for values that are not finite is " + Shown(name) +
                   "; it must be stop or skip"};
}

Updater::Updater(const UpdateConfig& config, std::vector<at::Tensor> parameters,
                 Optimizer& optimizer)
    : config_(config), parameters_(std::move(parameters)), optimizer_(optimizer),
      scale_(config.loss_scale) {}

Result<std::unique_ptr<Updater>> Updater::Make(const UpdateConfig& config,
                                               std::vector<at::Tensor> parameters,
                                               Optimizer& optimizer) {
  if (!(config.learning_rate > 0 && std::isfinite(config.learning_rate))) {
    return Error{Code::kInvalid, "the learning rate is " + std::to_string(config.learning_rate) +
                                     ", but must be a number above 0"};
  }
  if (config.clip_norm && !(*config.clip_norm > 0)) {
    return Error{Code::kInvalid, "gradients are to be clipped to a norm of " +
                                     std::to_string(*config.clip_norm) +
                                     ", but it must be above 0"};
  }
  if (config.loss_scale) {
    const double scale = config.loss_scale->scale;
    int exponent = 0;
    const bool in_range = scale >= LossScale::kMin && scale <= LossScale::kMax;
    if (!in_range || std::frexp(scale, &exponent) != 0.5) {
      return Error{Code::kInvalid, "the loss scale is " + NumberText(scale) +
                                       ", but must be a power of two from " +
                                       NumberText(LossScale::kMin) + " to " +
                                       NumberText(LossScale::kMax)};
    }
  }
  return std::unique_ptr<Updater>(new Updater(config, std::move(parameters), optimizer));
}

double Updater::LearningRate(uint64_t step) const {
  return config_.learning_rate * config_.schedule.Factor(step);
}

std::vector<at::Tensor> Updater::Gradients() const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

Result<StepOutcome> Updater::Apply(uint64_t step, std::span<const float> lane_losses) {
  StepOutcome outcome{.learning_rate = LearningRate(step)};
  outcome.note = NotFiniteAmong(lane_losses);
  bool overflowed = false;
  double factor = 1;
  if (outcome.note.empty() && (config_.clip_norm || scale_ || config_.check_gradients)) {
    const std::vector<at::Tensor> gradients = Gradients();
    KEEL_TRY_ASSIGN(const double scaled, CatchTorch("measuring the gradients",
                                               [&] { return GlobalNorm(gradients); }));
    const double norm = scaled / loss_scale();
    outcome.gradient_norm = norm;
    overflowed = !std::isfinite(norm);
    factor = 1 / loss_scale();
    if (config_.clip_norm && !overflowed) factor *= ClipFactor(norm, *config_.clip_norm);
    if (overflowed) outcome.note = "the gradients are not finite";
  }
  // Loss scaling provokes overflows in order to find them, so one is no reason to stop, unless at
  // the lowest scale, which provokes none.
  const bool is_provoked = overflowed && scale_ && scale_->scale > LossScale::kMin;
  if (!outcome.note.empty() && config_.non_finite == NonFinite::kStop && !is_provoked) {
    return StoppedAt(step, outcome.note);
  }
  if (scale_) scale_->After(outcome.note.empty());
  outcome.applied = outcome.note.empty();
  if (!outcome.applied) return outcome;
  KEEL_TRY(CatchTorch("scaling the gradients", [&] { ScaleInPlace(Gradients(), factor); }));
  std::vector<at::Tensor> left_out;
  for (size_t i = 0; i < only_.size(); ++i) {
    if (!only_[i]) left_out.push_back(parameters_[i]);
  }
  const Status applied = left_out.empty()
                             ? optimizer_.Step(outcome.learning_rate)
                             : optimizer_.StepWithout(left_out, outcome.learning_rate);
  if (!applied.ok()) return applied.error().Doing("step " + std::to_string(step));
  outcome.learning_rate = optimizer_.OwnRate().value_or(outcome.learning_rate);
  return outcome;
}

Status Updater::Register(StateRegistry& registry) {
  if (!scale_) return Ok();
  KEEL_TRY(registry.AddNumber("loss_scale", &scale_->scale));
  return registry.AddNumber("loss_scale_good_steps", &scale_->good_steps);
}

}  // namespace keel
