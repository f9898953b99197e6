// For each lane: reset buffers and generators, load samples, run forward and backward.
#include "trainer/loop/lane_work.h"

#include <string>

#include "store/catch_torch.h"
#include "trainer/group/whereabouts.h"
#include "trainer/numerics/autocast.h"
#include "trainer/numerics/numerics.h"
#include "trainer/group/nccl_links.h"
#include "trainer/numerics/profile_range.h"

namespace keel {
namespace {

std::string LaneText(const TrainState& state, int lane) {
  return "step " + std::to_string(state.step()) + ", lane " + std::to_string(lane);
}

// The loss of a lane, as a scalar float. Any failure in here is that of the user's program.
Result<at::Tensor> Forward(TrainState& state, const LaneRange& lanes, int lane,
                           StepWatch& watch) {
  const uint64_t number = static_cast<uint64_t>(lane);
  KEEL_TRY(CatchTorch(LaneText(state, lane), [&] {
    state.buffers().Restore();
    if (state.program().dataset->loading() == Loading::kInStep) {
      SeedData(state.config().seed, state.step(), number);
    }
  }));
  watch.Add(&StepTimes::forward);
  const ProfileRange range(state.config().device, "forward");
  const Result<Batch> batch = state.loader().Take({state.step(), state.cursor(), lane}, lanes);
  watch.Add(&StepTimes::data);
  if (!batch.ok()) return batch.error().Doing(LaneText(state, lane));
  KEEL_TRY_ASSIGN(at::Tensor loss, CatchTorch(LaneText(state, lane) + ", loss", [&] {
    SeedLane(state.config().seed, state.step(), number);
    const AutocastScope autocast(state.config().device.type(), state.config().precision);
    return state.program().loss(*batch).to(at::kFloat);
  }));
  watch.Add(&StepTimes::forward);
  if (loss.defined() && loss.numel() == 1) return loss;
  return Error{Code::kInvalid, LaneText(state, lane) + ": the loss is not a scalar; average it "
                                   "over the samples"};
}

// kForeign: the program failed.
Status Backward(TrainState& state, Exchange& exchange, const at::Tensor& loss) {
  const ProfileRange range(state.config().device, "backward");
  const auto& own = state.program().backward;
  if (!own) return exchange.Backward(loss);
  KEEL_TRY(exchange.BeginLane());
  const Result<Status> done = CatchTorch("backward", [&] { return own(loss); });
  if (!done.ok()) return exchange.EndLane(done.error());
  // The program's own error code could be taken for a break of the group, so it is replaced.
  if (done->ok() || done->error().code == Code::kNoDevice) return exchange.EndLane(*done);
  return exchange.EndLane(Error{Code::kForeign, done->error().message});
}

Result<at::Tensor> MeanBuffers(TrainState& state, Exchange& exchange,
                               const std::vector<at::Tensor>& of_lanes) {
  LaneBuffers& buffers = state.buffers();
  at::Tensor mean = at::empty({buffers.elements()},
                              state.parameters().front().options().dtype(buffers.type()));
  if (buffers.empty()) return mean;
  std::vector<std::vector<at::Tensor>> results;
  for (const at::Tensor& lane : of_lanes) results.push_back({lane});
  KEEL_TRY(exchange.Mean(results, {mean}));
  return mean;
}

LaneWork Compute(TrainState& state, Exchange& exchange) {
  LaneWork work;
  StepWatch watch(work.times);
  std::vector<at::Tensor> of_lanes;
  const LaneRange lanes = exchange.lanes();
  Whereabouts& whereabouts = exchange.whereabouts();
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    whereabouts.Place("lane " + std::to_string(lane) + ", forward");
    Result<at::Tensor> loss = Forward(state, lanes, lane, watch);
    if (!loss.ok()) return {.status = loss.error(), .users_fault = true};
    at::Tensor scaled;
    // A failure of forward on the device, or a buffer of changed shape, may show only here.
    const Status read = CatchTorch(LaneText(state, lane) + ", loss and buffers", [&] {
      work.losses.push_back(loss->item<float>());
      if (!state.buffers().empty()) of_lanes.push_back(state.buffers().LaneResult());
      const double scale = state.loss_scale();
      scaled = scale == 1.0 ? *loss : *loss * scale;
    });
    if (!read.ok()) return {.status = read.error(), .users_fault = true};
    whereabouts.Place("lane " + std::to_string(lane) + ", backward");
    const Status backward = Backward(state, exchange, scaled);
    if (!backward.ok()) {
      const bool threw = backward.error().code == Code::kForeign;
      return {.status = backward.error().Doing(LaneText(state, lane)), .users_fault = threw};
    }
    watch.Add(&StepTimes::backward);
  }
  if (!lanes.empty()) {
    work.times.backward -= exchange.waited();
    work.times.exchange += exchange.waited();
  }
  const ProfileRange range(state.config().device, "exchange");
  work.status = exchange.Finish();
  if (!work.status.ok()) return work;
  whereabouts.Place("buffers");
  Result<at::Tensor> mean = MeanBuffers(state, exchange, of_lanes);
  watch.Add(&StepTimes::exchange);
  if (mean.ok()) {
    state.SetPending(*std::move(mean));
  } else {
    work.status = mean.error();
  }
  return work;
}

}  // namespace

LaneWork ComputeLanes(TrainState& state, Exchange& exchange) {
  LaneWork work = Compute(state, exchange);
  if (!work.status.ok() && state.config().device.is_cuda()) LeaveIfLost(work.status.error());
  return work;
}

}  // namespace keel
