// Each gradient is taken to its place as soon as it is made, and each bucket is exchanged once it
// is full and those before it are on their way.
#include "trainer/exchange/exchange.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/memory_warmer.h"
#include "elastic/protocol/position.h"
#include "store/catch_torch.h"
#include "trainer/exchange/bucket.h"
#include "trainer/exchange/flat_reduction.h"
#include "trainer/exchange/gpu_reducer.h"
#include "trainer/exchange/gradient_watch.h"
#include "trainer/exchange/sum_proof.h"
#include "trainer/group/serial_queue.h"
#include "trainer/group/whereabouts.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

// The status of `work`, or what it threw.
template <class Work>
Status Caught(const std::string& doing, const Work& work) {
  const Result<Status> done = CatchTorch(doing, work);
  return done.ok() ? *done : Status(done.error());
}

}  // namespace

class Exchange::Impl {
 public:
  Impl(std::shared_ptr<GradientBuckets> gradients, EpochGroup& group, const Options& options);
  ~Impl();

  Status Place(const Placement& placement);
  LaneRange lanes() const { return lanes_; }
  Whereabouts& whereabouts() { return group_.whereabouts(); }
  void WarmUp();
  void ProveSums(int turn) {
    if (!gpu_ && !plain()) proof_.BeginStep(turn);
  }
  std::optional<SumsMade> TakeSumsMade() { return proof_.Take(); }
  Duration waited() const { return waited_; }
  Status Backward(const at::Tensor& loss);
  Status BeginLane();
  Status EndLane(const Status& backward);
  void NoteNextLane(const LaneNotes& notes) { notes_ = notes; }
  Status BeginAgain(const LaneNotes& notes);
  Status Finish();
  Status Mean(const std::vector<std::vector<at::Tensor>>& of_lanes,
              const std::vector<at::Tensor>& into);

 private:
  bool plain() const { return options_.reduce == Reduce::kAllReduce; }
  const std::vector<std::unique_ptr<ExchangeBucket>>& buckets() const {
    return gradients_->buckets();
  }
  void OnGradient(size_t parameter, const at::Tensor& made);
  void Note(size_t parameter, const at::Tensor& made) const;
  bool IsLastLane() const { return lanes_done_ + 1 == lanes_.count(); }
  std::string LaneText() const;
  Status EndAgain(const Status& backward);
  void CompleteLane();
  Status CompleteLastLane();
  Status ReduceThoseFull();
  Status ReduceBucket(size_t index);
  Status ReduceOnGpu(ExchangeBucket& bucket);
  Status ReduceWithoutLanes();
  // Ends a reduction that was started; runs once.
  using Ending = std::function<Status()>;
  Result<Ending> StartReducing(ExchangeBucket& bucket);
  Result<Ending> StartAllReduce(const at::Tensor& into);
  Status MeanOfType(at::ScalarType type, const std::vector<std::vector<at::Tensor>>& of_lanes,
                    const std::vector<at::Tensor>& into);
  Status ReduceNow(const at::Tensor& into, std::vector<TreeSum::Entry> own);
  Error Failed(const Error& error);

  const std::shared_ptr<GradientBuckets> gradients_;
  EpochGroup& group_;
  const Options options_;
  LaneRange lanes_;
  LaneShares shares_;
  SumProof proof_;
  bool is_collecting_ = false;           // in a lane
  bool is_again_ = false;                // in one that counts for nothing
  std::vector<at::Tensor> kept_;         // the gradients as they were before that, meanwhile
  LaneNotes notes_;                      // of the lane under way, or the next one
  int lanes_done_ = 0;
  // In the step's last backward: how many gradients each bucket still lacks, and how many buckets
  // are on their way.
  std::vector<size_t> missing_;
  size_t reducing_ = 0;
  // Set from the moment all gradients are there until all sums are.
  std::optional<Whereabouts::HandedOver> handed_over_;
  TimePoint last_full_;   // when the gradients of the step's latest bucket were there
  Duration waited_{0};
  const GradientWatch watch_;
  std::unique_ptr<GpuReducer> gpu_;  // null where the parameters are on the CPU
  std::unique_ptr<MemoryWarmer> warmer_;  // null: WarmUp() was not called
  SerialQueue finisher_;  // declared last, so destroyed first: its jobs use all the others
};

Exchange::Impl::Impl(std::shared_ptr<GradientBuckets> gradients, EpochGroup& group,
                     const Options& options)
    : gradients_(std::move(gradients)), group_(group), options_(options),
      lanes_(LanesOf(group.rank(), group.size(), options.lanes)),
      shares_(EvenPlacement(group.size(), options.lanes), options.lanes), proof_(group),
      missing_(buckets().size()),
      watch_(gradients_->parameters(), [this](size_t parameter, const at::Tensor& made) {
        OnGradient(parameter, made);
      }) {
  const at::Tensor& first = gradients_->parameters().front();
  KEEL_CHECK(first.is_cpu() || group_.has_nccl(), "a GPU in a group without NCCL");
  if (group_.has_nccl()) gpu_ = std::make_unique<GpuReducer>(group_, shares_, first.device());
}

void Exchange::Impl::Note(size_t parameter, const at::Tensor& made) const {
  at::Tensor noted = made;
  if (notes_.copies != nullptr) {
    noted = made.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true).contiguous();
    (*notes_.copies)[parameter] = noted;
  }
  if (notes_.digests != nullptr) (*notes_.digests)[parameter] = DigestOfTensors({noted});
}

// Runs in a backward, which an exception ends.
void Exchange::Impl::OnGradient(size_t parameter, const at::Tensor& made) {
  if (!is_collecting_) return;
  const Status done = Caught(LaneText(), [&]() -> Status {
    if (made.defined()) Note(parameter, made);
    if (is_again_) {
      at::Tensor(gradients_->parameters()[parameter]).mutable_grad() = at::Tensor();
      return Ok();
    }
    const GradientBuckets::Seat& seat = gradients_->SeatOf(parameter);
    buckets()[seat.bucket]->TakeGradient(seat.index, made);
    if (!IsLastLane()) return Ok();
    --missing_[seat.bucket];
    return ReduceThoseFull();
  });
  if (done.ok()) return;
  // The group knows why, whatever becomes of this exception.
  group_.Abort(done.error());
  throw std::runtime_error(done.error().message);
}

void Exchange::Impl::WarmUp() {
  if (gpu_) return;
  std::vector<std::span<std::byte>> places;
  for (const auto& bucket : buckets()) {
    const at::Tensor& buffer = bucket->buffer();
    places.emplace_back(static_cast<std::byte*>(buffer.mutable_data_ptr()), buffer.nbytes());
  }
  warmer_ = std::make_unique<MemoryWarmer>(std::move(places));
}

Exchange::Impl::~Impl() {
  if (group_.IsRead()) group_.Abort("the exchange ends in the middle of a step");
  finisher_.Drain();
}

Error Exchange::Impl::Failed(const Error& error) {
  group_.Abort(error);
  finisher_.Drain();  // jobs of other buckets now fail at once
  // A GPU that is lost is more than a group that is broken.
  return error.code == Code::kNoDevice ? error : group_.status().error();
}

Status Exchange::Impl::Place(const Placement& placement) {
  if (is_collecting_ || lanes_done_ > 0 ||
      placement.size() != static_cast<size_t>(group_.size())) {
    return Failed({Code::kInvalid, "lanes change hands only between steps, and among all of the " +
                                       std::to_string(group_.size()) + " workers"});
  }
  lanes_ = placement[static_cast<size_t>(group_.rank())];
  shares_ = LaneShares(placement, options_.lanes);
  return Ok();
}

Status Exchange::Impl::Backward(const at::Tensor& loss) {
  KEEL_TRY(BeginLane());
  return EndLane(CatchTorch(LaneText(), [&] { loss.backward(); }));
}

std::string Exchange::Impl::LaneText() const {
  if (is_again_) return "backward of another worker's lane";
  return "backward of lane " + std::to_string(lanes_.begin + lanes_done_);
}

Status Exchange::Impl::BeginLane() {
  KEEL_TRY(group_.status());
  if (is_collecting_) return Failed({Code::kInvalid, LaneText() + " has begun already"});
  if (lanes_done_ >= lanes_.count()) {
    return Failed({Code::kInvalid, "backward of more lanes than rank " +
                                       std::to_string(group_.rank()) + " has (" +
                                       std::to_string(lanes_.count()) + "); call Finish()"});
  }
  if (warmer_) warmer_->Stop();
  const Status begun = CatchTorch(LaneText(), [&] {
    for (size_t i = 0; i < buckets().size(); ++i) {
      ExchangeBucket& bucket = *buckets()[i];
      if (lanes_done_ == 0) bucket.BeginStep();
      bucket.BeginLane(PlaceOf(lanes_.begin + lanes_done_, lanes_, plain()));
      missing_[i] = bucket.parameters();
    }
    reducing_ = 0;
  });
  if (!begun.ok()) return Failed(begun.error());
  is_collecting_ = true;
  return Ok();
}

Status Exchange::Impl::BeginAgain(const LaneNotes& notes) {
  KEEL_TRY(group_.status());
  if (is_collecting_ || lanes_done_ > 0) {
    return Failed({Code::kInvalid, "a lane is computed again in the middle of a step"});
  }
  if (warmer_) warmer_->Stop();
  for (at::Tensor parameter : gradients_->parameters()) {
    kept_.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
  }
  notes_ = notes;
  is_collecting_ = is_again_ = true;
  return Ok();
}

Status Exchange::Impl::EndAgain(const Status& backward) {
  is_collecting_ = is_again_ = false;
  notes_ = {};
  for (size_t i = 0; i < kept_.size(); ++i) {
    at::Tensor(gradients_->parameters()[i]).mutable_grad() = std::move(kept_[i]);
  }
  kept_.clear();
  if (!backward.ok()) return Failed(backward.error());
  return group_.status();
}

Status Exchange::Impl::EndLane(const Status& backward) {
  if (is_again_) return EndAgain(backward);
  if (!is_collecting_) return Failed({Code::kInvalid, "the end of a lane that has not begun"});
  const bool is_last = IsLastLane();
  Status done = backward;
  if (done.ok()) {
    done = Caught(LaneText(), [&]() -> Status {
      if (is_last) return CompleteLastLane();
      CompleteLane();
      return Ok();
    });
  }
  is_collecting_ = false;
  notes_ = {};
  handed_over_.reset();
  ++lanes_done_;
  if (!done.ok()) return Failed(done.error());
  // Whoever ran the backward may have kept to himself that it threw.
  KEEL_TRY(group_.status());
  if (!is_last) return Ok();
  if (gpu_) {
    const Status awaited = Caught("awaiting the GPU", [&] { return gpu_->Await(); });
    if (!awaited.ok()) return Failed(awaited.error());
  }
  waited_ = RealClock().Monotonic() - last_full_;
  return Ok();
}

void Exchange::Impl::CompleteLane() {
  const torch::autograd::AutoGradMode no_grad(false);
  for (const auto& bucket : buckets()) bucket->EndLane();
}

// Buckets with parameters that the loss did not reach are full only now.
Status Exchange::Impl::CompleteLastLane() {
  missing_.assign(missing_.size(), 0);
  KEEL_TRY(ReduceThoseFull());
  finisher_.Drain();
  return Ok();
}

// All workers reduce the buckets in one order.
Status Exchange::Impl::ReduceThoseFull() {
  while (reducing_ < buckets().size() && missing_[reducing_] == 0) {
    KEEL_TRY(ReduceBucket(reducing_++));
    // Whoever runs the backward only waits from now on.
    if (reducing_ == buckets().size()) handed_over_.emplace(group_.whereabouts());
  }
  return Ok();
}

Status Exchange::Impl::ReduceBucket(size_t index) {
  last_full_ = RealClock().Monotonic();
  ExchangeBucket& bucket = *buckets()[index];
  const torch::autograd::AutoGradMode no_grad(false);
  bucket.EndLastLane();
  if (gpu_) return ReduceOnGpu(bucket);
  KEEL_TRY_ASSIGN(const Ending end, StartReducing(bucket));
  finisher_.Submit([this, index, end] {
    group_.whereabouts().SidePlace("bucket " + std::to_string(index));
    const Status ended = Caught("reducing gradients", end);
    if (!ended.ok()) group_.Abort(ended.error());
  });
  return Ok();
}

// Only enqueues.
Status Exchange::Impl::ReduceOnGpu(ExchangeBucket& bucket) {
  const at::Tensor& into = bucket.buffer();
  return plain() ? gpu_->AllReduce(into) : gpu_->Reduce(into, bucket.sum().Take());
}

Result<Exchange::Impl::Ending> Exchange::Impl::StartReducing(ExchangeBucket& bucket) {
  if (gpu_) {
    KEEL_TRY(ReduceOnGpu(bucket));
    return Ending([this] { return gpu_->Await(); });
  }
  if (plain()) return StartAllReduce(bucket.buffer());
  if (proof_.is_on()) {
    return Ending([this, &bucket, own = bucket.sum().Take()] {
      return proof_.Reduce(shares_, bucket.buffer(), own, bucket.scratch());
    });
  }
  auto reduction = std::make_shared<FlatReduction>(group_, shares_, bucket.buffer(),
                                                   bucket.sum().Take(), bucket.scratch());
  KEEL_TRY(reduction->Start());
  return Ending([reduction] { return reduction->Finish(); });
}

Result<Exchange::Impl::Ending> Exchange::Impl::StartAllReduce(const at::Tensor& into) {
  KEEL_TRY(group_.status());
  std::vector<at::Tensor> one{into};
  const auto work = group_.gloo().allreduce(one);
  return Ending([this, work, into]() -> Status {
    {
      const Whereabouts::Waiting waiting(group_.whereabouts(), Activity::kAnybody);
      work->wait();
    }
    KEEL_TRY(group_.status());
    at::Tensor(into).mul_(1.0 / options_.lanes);
    return Ok();
  });
}

Status Exchange::Impl::Finish() {
  KEEL_TRY(group_.status());
  if (lanes_done_ != lanes_.count()) {
    return Failed({Code::kInvalid, "the step ends after " + std::to_string(lanes_done_) + " of " +
                                       std::to_string(lanes_.count()) + " lanes of rank " +
                                       std::to_string(group_.rank())});
  }
  lanes_done_ = 0;
  group_.whereabouts().Place("gradients");
  if (lanes_.empty()) {
    const Status reduced =
        Caught("taking part without lanes", [&] { return ReduceWithoutLanes(); });
    if (!reduced.ok()) return Failed(reduced.error());
  }
  return group_.AwaitReaders();
}

// Starts all buckets at once: those of the other workers arrive one by one.
Status Exchange::Impl::ReduceWithoutLanes() {
  if (warmer_) warmer_->Stop();
  const torch::autograd::AutoGradMode no_grad(false);
  std::vector<Ending> endings;
  const auto end_all = [&]() -> Status {
    Status all = Ok();   // after an error, too, nothing of the others may be in flight
    for (const Ending& end : std::exchange(endings, {})) {
      Status ended = end();
      if (all.ok()) all = std::move(ended);
    }
    return all;
  };
  for (const auto& bucket : buckets()) {
    bucket->BeginStep();
    if (plain()) at::Tensor(bucket->buffer()).zero_();
    if (endings.size() == FlatReduction::kStartedMax) KEEL_TRY(end_all());
    KEEL_TRY_ASSIGN(Ending ending, StartReducing(*bucket));
    endings.push_back(std::move(ending));
  }
  KEEL_TRY(end_all());
  for (const auto& bucket : buckets()) bucket->TakeBufferAsGradients();
  return Ok();
}

Status Exchange::Impl::Mean(const std::vector<std::vector<at::Tensor>>& of_lanes,
                            const std::vector<at::Tensor>& into) {
  KEEL_TRY(group_.status());
  bool fits = of_lanes.size() == static_cast<size_t>(lanes_.count());
  for (const auto& list : of_lanes) fits = fits && list.size() == into.size();
  for (const at::Tensor& tensor : into) fits = fits && tensor.is_floating_point();
  if (!fits) {
    return Failed({Code::kInvalid, "a mean over " + std::to_string(of_lanes.size()) +
                                       " lanes' tensors on a worker with " +
                                       std::to_string(lanes_.count()) +
                                       "; all must be floating and of one shape"});
  }
  std::vector<at::ScalarType> types;
  for (const at::Tensor& tensor : into) {
    const at::ScalarType type = tensor.scalar_type();
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  for (const at::ScalarType type : types) {
    const Status made = Caught("averaging tensors over the lanes",
                               [&] { return MeanOfType(type, of_lanes, into); });
    if (!made.ok()) return Failed(made.error());
  }
  return Ok();
}

namespace {

at::Tensor Flattened(const std::vector<at::Tensor>& tensors, at::ScalarType type) {
  std::vector<at::Tensor> pieces;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() == type) pieces.push_back(tensor.detach().reshape({-1}));
  }
  return at::cat(pieces);
}

}  // namespace

Status Exchange::Impl::ReduceNow(const at::Tensor& into, std::vector<TreeSum::Entry> own) {
  if (gpu_) {
    KEEL_TRY(gpu_->Reduce(into, std::move(own)));
    return gpu_->Await();
  }
  ReductionScratch scratch;
  if (proof_.is_on()) return proof_.Reduce(shares_, into, std::move(own), scratch);
  FlatReduction reduction(group_, shares_, into, std::move(own), scratch);
  KEEL_TRY(reduction.Start());
  KEEL_TRY(reduction.Finish());
  return group_.AwaitReaders();
}

Status Exchange::Impl::MeanOfType(at::ScalarType type,
                                  const std::vector<std::vector<at::Tensor>>& of_lanes,
                                  const std::vector<at::Tensor>& into) {
  const torch::autograd::AutoGradMode no_grad(false);
  TreeSum sum;
  for (int i = 0; i < lanes_.count(); ++i) {
    sum.Push({lanes_.begin + i, 1}, Flattened(of_lanes[static_cast<size_t>(i)], type));
  }
  const at::Tensor mean = Flattened(into, type);
  KEEL_TRY(ReduceNow(mean, sum.Take()));
  int64_t offset = 0;
  for (const at::Tensor& tensor : into) {
    if (tensor.scalar_type() != type) continue;
    tensor.detach().copy_(mean.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
  return Ok();
}

// ----------------------------------------------------------------------------------- the interface

Result<std::unique_ptr<Exchange>> Exchange::Open(std::shared_ptr<GradientBuckets> gradients,
                                                 EpochGroup& group, const Options& options) {
  const size_t count = gradients->parameters().size();
  if (count == 0 || options.lanes < 1) {
    return Error{Code::kInvalid, "an exchange of " + std::to_string(count) +
                                     " parameters over " + std::to_string(options.lanes) +
                                     " lanes: there must be at least one of each"};
  }
  return CatchTorch("setting up the exchange of gradients", [&] {
    return std::unique_ptr<Exchange>(
        new Exchange(std::make_unique<Impl>(std::move(gradients), group, options)));
  });
}

Exchange::Exchange(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exchange::~Exchange() = default;

Status Exchange::Place(const Placement& placement) { return impl_->Place(placement); }
LaneRange Exchange::lanes() const { return impl_->lanes(); }
Whereabouts& Exchange::whereabouts() { return impl_->whereabouts(); }
void Exchange::WarmUp() { impl_->WarmUp(); }
Status Exchange::Backward(const at::Tensor& loss) { return impl_->Backward(loss); }
Status Exchange::BeginLane() { return impl_->BeginLane(); }
Status Exchange::EndLane(const Status& backward) { return impl_->EndLane(backward); }
void Exchange::NoteNextLane(const LaneNotes& notes) { impl_->NoteNextLane(notes); }
Status Exchange::BeginAgain(const LaneNotes& notes) { return impl_->BeginAgain(notes); }
void Exchange::ProveSums(int turn) { impl_->ProveSums(turn); }
std::optional<SumsMade> Exchange::TakeSumsMade() { return impl_->TakeSumsMade(); }
Duration Exchange::waited() const { return impl_->waited(); }
Status Exchange::Finish() { return impl_->Finish(); }
Status Exchange::Mean(const std::vector<std::vector<at::Tensor>>& of_lanes,
                      const std::vector<at::Tensor>& into) {
  return impl_->Mean(of_lanes, into);
}

}  // namespace keel
