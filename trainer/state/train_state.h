// TrainState: everything that one worker trains with, and what a decided step does to it.
// Promises   the registry covers all that decides how training goes on: parameters, buffers,
//            optimizer, step, cursor, seed, loss scale, trail. Apply() is a pure function of that,
//            of the complete gradients and of all lanes' losses.
// Does not   compute gradients (trainer/loop/lane_work.h) or talk to anybody
//            (trainer/loop/epoch_run.h).
// Threads    one.
// Errors     kInvalid: a config or program that makes no sense; those of Updater::Apply().
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "trainer/data/loader.h"
#include "trainer/data/samples.h"
#include "trainer/exchange/sum_claims.h"
#include "trainer/state/lane_buffers.h"
#include "trainer/state/reform.h"
#include "trainer/state/registry.h"
#include "trainer/state/state_parts.h"
#include "trainer/state/trail.h"
#include "trainer/state/update.h"
#include "trainer/train_config.h"
#include "trainer/train_program.h"

namespace keel {

class GradientBuckets;

class TrainState {
 public:
  static Result<std::unique_ptr<TrainState>> Make(const TrainConfig& config, TrainProgram program);
  TrainState(const TrainState&) = delete;
  TrainState& operator=(const TrainState&) = delete;

  const TrainConfig& config() const { return config_; }
  TrainProgram& program() { return program_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  // Where their gradients come together.
  // Once there is room for them.
  const std::shared_ptr<GradientBuckets>& gradients() const { return gradients_; }
  Status MakeRoomForGradients();
  // The next ones will be in other memory. Pending ones stay where they are.
  void LeaveGradients() { gradients_.reset(); }
  LaneBuffers& buffers() { return *buffers_; }
  const SampleOrder& samples() const { return order_; }
  BatchLoader& loader() { return *loader_; }
  double loss_scale() const { return updater_->loss_scale(); }
  uint64_t step() const { return step_; }
  uint64_t cursor() const { return cursor_; }
  const Trail& trail() const { return trail_; }

  // --- One step ---

  // To be called when the gradients of step() are complete, with the mean of the lanes' buffers.
  // Both are kept until Apply() or Drop().
  void SetPending(at::Tensor mean_buffers) { pending_ = std::move(mean_buffers); }
  bool pending() const { return pending_.has_value(); }
  void Drop();
  Result<StepOutcome> Apply(const std::vector<float>& lane_losses);
  // After code of the program that may change buffers between steps.
  Status KeepBuffers();
  // The mean over lanes, added in the order in which gradients are.
  static float MeanLoss(const std::vector<float>& lane_losses);

  // How fast this worker and its links were, for the next epoch to begin with.
  struct Speed {
    int64_t lane_ns = 0;   // as in MemberReport
    int64_t link_ns = 0;
  };
  void NoteSpeed(const Speed& speed) { speed_ = speed; }

  // The step under way is made again, since results differ, and nobody can tell whose are right.
  // `claims`: what its members said of the sums, if those differ.
  void NoteDoubt(std::optional<SumClaims> claims = {}) {
    doubt_ = {step_, doubts() + 1, std::move(claims)};
  }
  // As all members have agreed, of whom some were not there.
  void SetDoubts(int64_t doubts) {
    if (doubts != this->doubts()) doubt_ = {step_, doubts, {}};
  }
  int64_t doubts() const { return doubt_.step == step_ ? doubt_.times : 0; }
  const SumClaims* doubted_sums() const {
    return doubts() > 0 && doubt_.claims ? &*doubt_.claims : nullptr;
  }
  // It has this state from others, and nothing that it computed was rechecked yet.
  void SetUnproven(bool unproven) { unproven_ = unproven; }
  // Others have shown that this machine changes bits.
  void NoteUnfit() { is_unfit_ = true; }
  bool is_unfit() const { return is_unfit_; }

  // --- Comparing it with others' ---

  // Whether all members hold the same bits, and will: they compute alike. That is so until this
  // state is replaced.
  void NoteCompared(bool are_same) { compared_ = are_same; }
  // 1: it is small enough to be compared at once.
  uint64_t pieces() const;
  // Of what no piece covers: layout, numbers, and the buffers, which lanes change.
  Digest SmallDigest() const;
  Digest PieceDigest(uint64_t piece) const;
  // All of that where it is small, else a part, which is another one each turn.
  Digest DigestOfTurn(uint64_t turn) const;

  // --- The whole state ---

  StateRegistry& registry() { return registry_; }
  Digest ParametersDigest() const;
  MemberReport Report() const;
  // A transfer begins to write into the tensors; it has ended well.
  void BeginReceiving() {
    held_ = Held::kSpoiled;
    compared_ = false;
  }
  Status EndReceiving(const MemberReport& source);
  // Null: it must be received as a whole.
  const StateParts* parts() const { return parts_ ? &*parts_ : nullptr; }
  // It begins to catch up, with the numbers of `source` and what parts()->first names: steps are
  // made with what has been received. Until it has ended the state counts as being received.
  Status BeginCatchingUp(const MemberReport& source);
  // Some of parts()->parts have been written into its tensors.
  void NoteReceived(size_t begin, size_t end);
  void EndCatchingUp();
  // What came of it differs from the others' state: from now on it is received as a whole.
  void NoteNotByParts() { parts_.reset(); }
  // The same for a checkpoint: the tensors are restored, and these are its numbers.
  Status EndRestoring(const Metadata& numbers, int64_t inexact_since);
  // Weights were loaded here, so what other members' programs built is no longer the state.
  void EndLoadingWeights();
  // Whether it can be saved: it is the state after a whole number of steps.
  bool whole() const { return held_ == Held::kWhole; }
  // The first step made on other numerics than the steps before it; -1: none.
  int64_t inexact_since() const { return inexact_since_; }
  void SetInexactSince(int64_t step) { inexact_since_ = step; }
  void NoteInexact();   // from this step on
  const ModelFace& model() const { return model_; }
  // Nobody was further than us, so what the program built becomes the state.
  Status TakeOwn();
  Status CheckOwn() const;   // kInvalid: that is gone
  // The tensors were filled from a checkpoint before it was known that the job takes it. Others
  // still count this worker as fresh, since it may take a checkpoint, but it cannot begin with what
  // is there.
  void NoteFilledAhead() { held_ = Held::kFilledAhead; }
  bool filled_ahead() const { return held_ == Held::kFilledAhead; }

 private:
  enum class Held { kFresh, kFilledAhead, kWhole, kSpoiled };

  TrainState(const TrainConfig& config, TrainProgram program, SampleOrder order);
  Status CheckDevices() const;
  Status CheckApart() const;
  Status Register();
  Status CheckSeed(const std::string& whose) const;
  void BeginReplaced();
  uint64_t BytesWithoutBuffers() const;
  std::vector<at::Tensor> FlatWithoutBuffers() const;
  Status TakeNumbers(const MemberReport& source);

  const TrainConfig config_;
  TrainProgram program_;
  const SampleOrder order_;
  const ModelFace model_;
  std::vector<at::Tensor> parameters_;
  std::shared_ptr<GradientBuckets> gradients_;
  std::unique_ptr<LaneBuffers> buffers_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<Updater> updater_;
  StateRegistry registry_;
  std::optional<StateParts> parts_;
  std::vector<bool> received_;   // by parameter, while catching up

  uint64_t step_ = 0;
  uint64_t cursor_ = 0;
  uint64_t seed_ = 0;
  Trail trail_;
  std::vector<float> last_losses_;
  int64_t inexact_since_ = -1;
  Held held_ = Held::kFresh;
  bool compared_ = false;
  Speed speed_;
  struct Doubt {
    uint64_t step = 0;
    int64_t times = 0;
    std::optional<SumClaims> claims = {};
  };
  Doubt doubt_;
  bool unproven_ = false;
  bool is_unfit_ = false;
  std::optional<at::Tensor> pending_;
};

}  // namespace keel
