// For each lane: reset buffers and generators, load samples, run forward and backward.
#include "trainer/loop/lane_work.h"

#include <string>
#include <utility>

#include "store/catch_torch.h"
#include "trainer/group/whereabouts.h"
#include "trainer/numerics/autocast.h"
#include "trainer/numerics/numerics.h"
#include "trainer/group/nccl_links.h"
#include "trainer/numerics/profile_range.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

std::string LaneText(const TrainState& state, int lane) {
  return "step " + std::to_string(state.step()) + ", lane " + std::to_string(lane);
}

// Brings the buffers, and where the dataset needs them the generators, to where a lane begins.
Status PrepareLane(TrainState& state, int lane) {
  return CatchTorch(LaneText(state, lane), [&] {
    state.buffers().Restore();
    if (state.program().dataset->loading() == Loading::kInStep) {
      SeedData(state.config().seed, state.step(), static_cast<uint64_t>(lane));
    }
  });
}

struct Forwarded {
  at::Tensor scaled;    // the loss that backward begins with
  float loss = 0;
  at::Tensor buffers;   // LaneBuffers::LaneResult()
};
// Any failure in here is that of the user's program.
Result<Forwarded> Forward(TrainState& state, const Batch& batch, int lane) {
  KEEL_TRY_ASSIGN(const at::Tensor loss, CatchTorch(LaneText(state, lane) + ", loss", [&] {
    SeedLane(state.config().seed, state.step(), static_cast<uint64_t>(lane));
    const AutocastScope autocast(state.config().device.type(), state.config().precision);
    return state.program().loss(batch).to(at::kFloat);
  }));
  if (!loss.defined() || loss.numel() != 1) {
    return Error{Code::kInvalid, LaneText(state, lane) + ": the loss is not a scalar; average it "
                                     "over the samples"};
  }
  // A failure of forward on the device, or a buffer of changed shape, may show only here.
  return CatchTorch(LaneText(state, lane) + ", loss and buffers", [&] {
    const double scale = state.loss_scale();
    return Forwarded{scale == 1.0 ? loss : loss * scale, loss.item<float>(),
                     state.buffers().LaneResult()};
  });
}

// Those of two lanes are kept for a while in each step that is rechecked.
constexpr size_t kKeptBytesMax = size_t{256} << 20;

bool MayKeep(const TrainState& state) {
  size_t bytes = 0;
  for (const at::Tensor& parameter : state.parameters()) bytes += parameter.nbytes();
  return bytes <= kKeptBytesMax;
}

// Both are to be filled in by the lane's backward.
LaneResult ResultOf(const TrainState& state, const Forwarded& forwarded, LaneTensors* tensors) {
  LaneResult result{.loss = forwarded.loss};
  result.buffers = DigestOfTensors({forwarded.buffers});
  result.gradients.resize(state.parameters().size());
  if (tensors != nullptr && MayKeep(state)) {
    tensors->buffers = forwarded.buffers.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
    tensors->gradients.resize(state.parameters().size());
  }
  return result;
}

LaneNotes NotesFor(LaneResult& result, LaneTensors* tensors) {
  const bool keeps = tensors != nullptr && tensors->kept();
  return {&result.gradients, keeps ? &tensors->gradients : nullptr};
}

// Of a lane that has begun. kForeign: the program failed.
Status OwnBackward(TrainState& state, Exchange& exchange, const at::Tensor& loss) {
  const auto& own = state.program().backward;
  const Result<Status> done = CatchTorch("backward", [&] { return own(loss); });
  if (!done.ok()) return exchange.EndLane(done.error());
  // The program's own error code could be taken for a break of the group, so it is replaced.
  if (done->ok() || done->error().code == Code::kNoDevice) return exchange.EndLane(*done);
  return exchange.EndLane(Error{Code::kForeign, done->error().message});
}

Status Backward(TrainState& state, Exchange& exchange, const at::Tensor& loss) {
  const ProfileRange range(state.config().device, "backward");
  if (!state.program().backward) return exchange.Backward(loss);
  KEEL_TRY(exchange.BeginLane());
  return OwnBackward(state, exchange, loss);
}

Status BackwardAgain(TrainState& state, Exchange& exchange, const at::Tensor& loss,
                     const LaneNotes& notes) {
  const ProfileRange range(state.config().device, "recheck");
  KEEL_TRY(exchange.BeginAgain(notes));
  if (state.program().backward) return OwnBackward(state, exchange, loss);
  return exchange.EndLane(CatchTorch("backward", [&] { loss.backward(); }));
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

LaneWork Ended(LaneWork work, const Error& error, bool users_fault) {
  work.status = error;
  work.users_fault = users_fault;
  return work;
}

// Own lanes, up to their part in the exchange.
LaneWork ComputeOwn(TrainState& state, Exchange& exchange, const RecheckTask& recheck,
                    LaneWork work, std::vector<at::Tensor>& of_lanes) {
  StepWatch watch(work.times);
  const LaneRange lanes = exchange.lanes();
  Whereabouts& whereabouts = exchange.whereabouts();
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    whereabouts.Place("lane " + std::to_string(lane) + ", forward");
    const Status prepared = PrepareLane(state, lane);
    if (!prepared.ok()) return Ended(std::move(work), prepared.error(), true);
    watch.Add(&StepTimes::forward);
    const Result<Batch> batch = state.loader().Take({state.step(), state.cursor(), lane}, lanes);
    watch.Add(&StepTimes::data);
    if (!batch.ok()) {
      return Ended(std::move(work), batch.error().Doing(LaneText(state, lane)), true);
    }
    const ProfileRange range(state.config().device, "forward");
    const Result<Forwarded> forwarded = Forward(state, *batch, lane);
    if (!forwarded.ok()) return Ended(std::move(work), forwarded.error(), true);
    work.losses.push_back(forwarded->loss);
    if (!state.buffers().empty()) of_lanes.push_back(forwarded->buffers);
    watch.Add(&StepTimes::forward);
    if (lane == recheck.own) {
      work.own = ResultOf(state, *forwarded, &work.own_tensors);
      exchange.NoteNextLane(NotesFor(*work.own, &work.own_tensors));
    }
    whereabouts.Place("lane " + std::to_string(lane) + ", backward");
    const Status backward = Backward(state, exchange, forwarded->scaled);
    if (!backward.ok()) {
      const bool threw = backward.error().code == Code::kForeign;
      return Ended(std::move(work), backward.error().Doing(LaneText(state, lane)), threw);
    }
    watch.Add(&StepTimes::backward);
  }
  return work;
}

LaneWork Compute(TrainState& state, Exchange& exchange, const RecheckTask& recheck) {
  LaneWork work;
  if (recheck.sums_turn) exchange.ProveSums(*recheck.sums_turn);
  if (recheck.other) {
    StepWatch watch(work.times);
    exchange.whereabouts().Place("recheck of lane " + std::to_string(*recheck.other));
    Result<LaneResult> again =
        ComputeAgain(state, exchange, {*recheck.other, &work.other_tensors});
    if (!again.ok()) {
      return Ended(std::move(work), again.error(), again.error().code == Code::kForeign);
    }
    work.other = *std::move(again);
    watch.Add(&StepTimes::recheck);
  }
  std::vector<at::Tensor> of_lanes;
  work = ComputeOwn(state, exchange, recheck, std::move(work), of_lanes);
  if (!work.status.ok()) return work;
  StepWatch watch(work.times);
  if (!exchange.lanes().empty()) {
    work.times.backward -= exchange.waited();
    work.times.exchange += exchange.waited();
  }
  const ProfileRange range(state.config().device, "exchange");
  work.status = exchange.Finish();
  if (!work.status.ok()) return work;
  exchange.whereabouts().Place("buffers");
  Result<at::Tensor> mean = MeanBuffers(state, exchange, of_lanes);
  work.sums = exchange.TakeSumsMade();
  watch.Add(&StepTimes::exchange);
  if (mean.ok()) {
    state.SetPending(*std::move(mean));
  } else {
    work.status = mean.error();
  }
  return work;
}

}  // namespace

LaneWork ComputeLanes(TrainState& state, Exchange& exchange, const RecheckTask& recheck) {
  LaneWork work = Compute(state, exchange, recheck);
  if (!work.status.ok() && state.config().device.is_cuda()) LeaveIfLost(work.status.error());
  return work;
}

Result<Batch> BatchOf(TrainState& state, int lane) {
  KEEL_TRY(PrepareLane(state, lane));
  const Result<Batch> batch =
      state.loader().TakeAnother({state.step(), state.cursor(), lane});
  if (!batch.ok()) return batch.error().Doing(LaneText(state, lane));
  return batch;
}

Result<LaneResult> ComputeAgain(TrainState& state, Exchange& exchange, const Again& again) {
  const int lane = again.lane;
  // The program's own error code could be taken for a break of the group, so it is replaced.
  const auto failed = [&](const Error& error) {
    if (error.code == Code::kNoDevice) return error;
    return Error{Code::kForeign, error.Doing("computed again").message};
  };
  if (again.batch != nullptr) KEEL_TRY(PrepareLane(state, lane));
  const Result<Batch> batch =
      again.batch != nullptr ? Result<Batch>(*again.batch) : BatchOf(state, lane);
  if (!batch.ok()) return failed(batch.error());
  const Result<Forwarded> forwarded = Forward(state, *batch, lane);
  if (!forwarded.ok()) return failed(forwarded.error());
  LaneResult result = ResultOf(state, *forwarded, again.tensors);
  const Status backward = BackwardAgain(state, exchange, forwarded->scaled,
                                        NotesFor(result, again.tensors));
  if (!backward.ok()) return backward.error().Doing(LaneText(state, lane) + ", computed again");
  return result;
}

}  // namespace keel
