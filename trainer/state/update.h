// Updater: what happens to a step once the vote has decided it: unscale, clip, check, apply.
// Promises   a pure function of what every worker holds alike (all lanes' losses, the complete
//            gradients, its own state): all workers apply the step, or skip it, or stop, and with
//            the same bits. A step that stops the job has changed nothing.
// Does not   advance step, cursor or trail: the engine does, for applied and skipped steps alike.
// Threads    one.
// Errors     kInvalid: the loss or a gradient is not finite and the policy is to stop; the message
//            names the step and the lanes. Those of the optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/loss_scale.h"
#include "trainer/optimizer.h"
#include "trainer/state/registry.h"
#include "trainer/train_config.h"
#include "trainer/train_program.h"

namespace keel {

std::string_view NonFiniteName(NonFinite policy);  // "stop", "skip"
Result<NonFinite> ParseNonFinite(std::string_view name);

class Updater {
 public:
  // `optimizer` must outlive it.
  static Result<std::unique_ptr<Updater>> Make(const UpdateConfig& config,
                                               std::vector<at::Tensor> parameters,
                                               Optimizer& optimizer);
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // Uses the gradients that the parameters hold: complete, averaged over lanes, still multiplied by
  // loss_scale(). It may change them.
  Result<StepOutcome> Apply(uint64_t step, std::span<const float> lane_losses);

  // Empty: to all parameters. Others keep what they hold, whatever their gradients.
  void ApplyOnlyTo(std::vector<bool> parameters) { only_ = std::move(parameters); }

  // Losses are multiplied by it before backward; 1 without loss scaling.
  double loss_scale() const { return scale_ ? scale_->scale : 1.0; }
  double LearningRate(uint64_t step) const;

  // Adds "loss_scale" and "loss_scale_good_steps" if there is loss scaling. The registry keeps
  // pointers into this object.
  Status Register(StateRegistry& registry);

 private:
  Updater(const UpdateConfig& config, std::vector<at::Tensor> parameters, Optimizer& optimizer);
  std::vector<at::Tensor> Gradients() const;

  const UpdateConfig config_;
  const std::vector<at::Tensor> parameters_;
  Optimizer& optimizer_;
  std::optional<LossScale> scale_;
  std::vector<bool> only_;
};

}  // namespace keel
