// Rounds of batches; after each, all workers hear whether one of them was told to stop.
#include "trainer/loop/evaluation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/catch_torch.h"
#include "trainer/exchange/gather.h"
#include "trainer/group/epoch_group.h"
#include "trainer/group/whereabouts.h"
#include "trainer/numerics/autocast.h"
#include "trainer/numerics/fold.h"
#include "trainer/numerics/mix.h"
#include "trainer/numerics/numerics.h"
#include "trainer/state/train_state.h"

namespace keel {
namespace {

// How many batches of a lane are computed between two looks for a stop.
constexpr uint64_t kRoundBatches = 8;
// Keeps the seeds apart from those of any training step's lane.
constexpr uint64_t kSeedOffset = 0x65766C;

// Puts back what evaluating a model changes, apart from its buffers.
class Undisturbed {
 public:
  Undisturbed(const ModelFace& model, c10::Device device) {
    generators_.push_back(at::detail::getDefaultCPUGenerator());
    if (device.is_cuda()) generators_.push_back(at::globalContext().defaultGenerator(device));
    for (at::Generator& generator : generators_) {
      const std::lock_guard lock(generator.mutex());
      states_.push_back(generator.get_state());
    }
    if (model.evaluate) put_back_ = model.evaluate();
  }
  ~Undisturbed() {
    if (put_back_) put_back_();
    for (size_t i = 0; i < generators_.size(); ++i) {
      const std::lock_guard lock(generators_[i].mutex());
      generators_[i].set_state(states_[i]);
    }
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  std::function<void()> put_back_;   // the modes of the model
  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> states_;
};

class Pass {
 public:
  Pass(TrainState& state, EpochGroup& group, const EvaluationCallbacks& peer)
      : state_(state),
        plan_(state.program().evaluation),
        group_(group),
        peer_(peer),
        lanes_(state.config().lanes),
        own_(LanesOf(group.rank(), group.size(), static_cast<int>(lanes_))),
        samples_(plan_.dataset->size()),
        batch_(plan_.batch > 0 ? plan_.batch : state.config().lane_batch),
        sums_(static_cast<size_t>(own_.count())) {}

  bool users_fault() const { return users_fault_; }

  Result<EvaluationReport> Run() {
    const TimePoint begin = RealClock().Monotonic();
    EvaluationReport report{.step = state_.step(), .samples = samples_, .rank = group_.rank(),
                            .world = group_.size()};
    for (uint64_t round = 0; round < Rounds() && !report.abandoned; ++round) {
      peer_.at(round);
      KEEL_TRY(Round(round));
      group_.whereabouts().Place("between batches");
      KEEL_TRY_ASSIGN(report.abandoned, SomebodyStops());
    }
    if (!report.abandoned) {
      KEEL_TRY_ASSIGN(report.value, Mean());
    }
    report.took = RealClock().Monotonic() - begin;
    return report;
  }

 private:
  // The same number for every worker, whatever lanes it has.
  uint64_t Rounds() const {
    uint64_t most = 0;
    for (uint64_t lane = 0; lane < lanes_; ++lane) {
      const BatchRange range = BatchesOf(lane, lanes_, samples_, batch_);
      most = std::max(most, range.end - range.begin);
    }
    return (most + kRoundBatches - 1) / kRoundBatches;
  }

  Status Round(uint64_t round) {
    for (int lane = own_.begin; lane < own_.end; ++lane) {
      const BatchRange all =
          BatchesOf(static_cast<uint64_t>(lane), lanes_, samples_, batch_);
      const uint64_t begin = std::min(all.end, all.begin + round * kRoundBatches);
      const uint64_t end = std::min(all.end, begin + kRoundBatches);
      for (uint64_t number = begin; number < end; ++number) {
        KEEL_TRY(group_.status());
        peer_.at(round);
        group_.whereabouts().Place(PlaceOf(number));
        Result<double> sum = BatchSum(number);
        users_fault_ = !sum.ok();
        if (!sum.ok()) return sum.error().Doing("evaluation at step " + std::to_string(
                                                    state_.step()));
        sums_[static_cast<size_t>(lane - own_.begin)] += *sum;
      }
    }
    return Ok();
  }

  uint64_t SamplesIn(uint64_t number) const {
    return std::min(batch_, samples_ - number * batch_);
  }
  std::string PlaceOf(uint64_t number) const {
    const uint64_t first = number * batch_;
    return "samples " + std::to_string(first) + " to " +
           std::to_string(first + SamplesIn(number) - 1);
  }

  Result<double> BatchSum(uint64_t number) {
    std::vector<uint64_t> indices(SamplesIn(number));
    std::iota(indices.begin(), indices.end(), number * batch_);
    const std::string doing = map_style::IndicesText(indices);
    KEEL_TRY_ASSIGN(const Result<Batch> batch, CatchTorch(doing, [&] {
      state_.buffers().Restore();   // an observer, for one, goes on counting in eval mode
      SeedLane(state_.config().seed + kSeedOffset, state_.step(), number);
      return plan_.dataset->LoadSeeded(indices, LaneSeed(state_.config().seed + kSeedOffset,
                                                         state_.step(), number));
    }));
    if (!batch.ok()) return batch.error();
    const c10::Device device = state_.config().device;
    KEEL_TRY_ASSIGN(const at::Tensor mean, CatchTorch(doing, [&] {
      const torch::NoGradGuard no_grad;
      const AutocastScope autocast(device.type(), state_.config().precision);
      return plan_.metric(Changed(*batch, [&](const at::Tensor& one) { return one.to(device); }))
          .to(at::kDouble);
    }));
    if (!mean.defined() || mean.numel() != 1) {
      return Error{Code::kInvalid, doing + ": the metric is not a scalar; average it over the "
                                           "samples"};
    }
    return CatchTorch(doing, [&] {
      return mean.item<double>() * static_cast<double>(indices.size());
    });
  }

  Result<bool> SomebodyStops() {
    const RecordBytes mine = {std::byte{peer_.stop()}};
    const std::vector<size_t> sizes(static_cast<size_t>(group_.size()), 1);
    KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, Gather(group_, mine, sizes));
    return std::any_of(all.begin(), all.end(),
                       [](const RecordBytes& one) { return one.front() != std::byte{0}; });
  }

  // Adds the lanes in their order, which is also the order of ranks.
  Result<double> Mean() {
    RecordBytes mine(sums_.size() * sizeof(double));
    if (!sums_.empty()) std::memcpy(mine.data(), sums_.data(), mine.size());
    std::vector<size_t> sizes;
    for (int rank = 0; rank < group_.size(); ++rank) {
      const LaneRange lanes = LanesOf(rank, group_.size(), static_cast<int>(lanes_));
      sizes.push_back(static_cast<size_t>(lanes.count()) * sizeof(double));
    }
    KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, Gather(group_, mine, sizes));
    const auto add = [](double left, double right) { return left + right; };
    FoldStack<double> fold;
    int lane = 0;
    for (const RecordBytes& record : all) {
      for (size_t at = 0; at < record.size(); at += sizeof(double)) {
        double sum = 0;
        std::memcpy(&sum, record.data() + at, sizeof sum);
        fold.Push({lane++, 1}, sum, add);
      }
    }
    return fold.Finish(add) / static_cast<double>(samples_);
  }

  TrainState& state_;
  const EvaluationPlan& plan_;
  EpochGroup& group_;
  const EvaluationCallbacks& peer_;
  const uint64_t lanes_;
  const LaneRange own_;
  const uint64_t samples_;
  const uint64_t batch_;
  std::vector<double> sums_;   // of our own lanes
  bool users_fault_ = false;
};

}  // namespace

BatchRange BatchesOf(uint64_t lane, uint64_t lanes, uint64_t samples, uint64_t batch) {
  const uint64_t batches = (samples + batch - 1) / batch;
  // Batches are shared among lanes as lanes are among workers: in order, and as evenly as possible.
  const auto begin = [&](uint64_t number) {
    return batches / lanes * number + batches % lanes * number / lanes;
  };
  return {begin(lane), begin(lane + 1)};
}

EvaluationOutcome Evaluate(TrainState& state, EpochGroup& group, const EvaluationCallbacks& peer) {
  Pass pass(state, group, peer);
  std::optional<Result<EvaluationReport>> report;
  const Status guarded = CatchTorch("evaluating", [&] {
    const Undisturbed undisturbed(state.model(), state.config().device);
    report = pass.Run();
    state.buffers().Restore();
  });
  if (!guarded.ok()) return {guarded.error(), true};
  return {*std::move(report), pass.users_fault()};
}

}  // namespace keel
