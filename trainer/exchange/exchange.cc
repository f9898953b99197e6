// The Reducer with our communication hook; each gradient is taken to its place as soon as it is
// made.
#include "trainer/exchange/exchange.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/memory_warmer.h"
#include "elastic/protocol/position.h"
#include "store/catch_torch.h"
#include "trainer/exchange/bucket.h"
#include "trainer/exchange/flat_reduction.h"
#include "trainer/exchange/gpu_reducer.h"
#include "trainer/exchange/gradient_watch.h"
#include "trainer/exchange/pinned_reducer.h"
#include "trainer/group/serial_queue.h"
#include "trainer/group/whereabouts.h"

namespace keel {
namespace {

using Future = c10::ivalue::Future;

}  // namespace

class Exchange::Impl {
 public:
  Impl(std::vector<at::Tensor> parameters, EpochGroup& group, const Options& options);
  ~Impl();

  LaneRange lanes() const { return lanes_; }
  Whereabouts& whereabouts() { return group_.whereabouts(); }
  void WarmUp();
  Duration waited() const { return waited_; }
  Status Backward(const at::Tensor& loss);
  Status BeginLane();
  Status EndLane(const Status& backward);
  Status Finish();
  Status Mean(const std::vector<std::vector<at::Tensor>>& of_lanes,
              const std::vector<at::Tensor>& into);

  // The hook: called by the Reducer as soon as a bucket is full, in the order of buckets.
  c10::intrusive_ptr<Future> RunHook(c10d::GradBucket& bucket);

 private:
  // A parameter's place: its bucket, and its index in that bucket.
  struct BucketPlace {
    size_t bucket = 0;
    size_t index = 0;
  };

  bool plain() const { return options_.reduce == Reduce::kAllReduce; }
  void OpenReducer();
  void OpenBuckets(const std::vector<std::vector<size_t>>& members);
  void OnGradient(size_t parameter, const at::Tensor& made);
  bool IsLastLane() const { return lanes_done_ + 1 == lanes_.count(); }
  std::string LaneText() const;
  void CompleteLane();
  void CompleteLastLane();
  c10::intrusive_ptr<Future> ReduceBucket(c10d::GradBucket& bucket);
  c10::intrusive_ptr<Future> ReduceOnGpu(ExchangeBucket& bucket, const at::Tensor& buffer);
  c10::intrusive_ptr<Future> Broken(c10::intrusive_ptr<Future> future, const Error& error);
  Status ReduceHere(ExchangeBucket& bucket, const at::Tensor& into);
  Status ReduceWithoutLanes();
  // Ends a reduction that was started; runs once.
  using Ending = std::function<Status()>;
  Result<Ending> StartReducing(ExchangeBucket& bucket, const at::Tensor& into);
  Result<Ending> StartAllReduce(const at::Tensor& into);
  Status MeanOfType(at::ScalarType type, const std::vector<std::vector<at::Tensor>>& of_lanes,
                    const std::vector<at::Tensor>& into);
  Status ReduceNow(const at::Tensor& into, std::vector<TreeSum::Entry> own);
  Error Failed(const Error& error);

  const std::vector<at::Tensor> parameters_;
  EpochGroup& group_;
  const Options options_;
  const LaneRange lanes_;
  const LaneShares shares_;
  std::vector<std::unique_ptr<ExchangeBucket>> buckets_;
  std::vector<BucketPlace> seats_;              // by parameter
  bool is_collecting_ = false;           // in a lane
  int lanes_done_ = 0;
  size_t hooks_run_ = 0;                 // in the step's last backward
  // Set from the moment all gradients are there until the last backward has returned.
  std::optional<Whereabouts::HandedOver> handed_over_;
  TimePoint hook_begun_;   // when the gradients of the step's latest bucket were there
  Duration waited_{0};
  // Made before the Reducer, which therefore finds each gradient in its bucket already.
  const GradientWatch watch_;
  std::unique_ptr<GpuReducer> gpu_;  // null where the parameters are on the CPU
  std::unique_ptr<PinnedReducer> reducer_;
  std::unique_ptr<MemoryWarmer> warmer_;  // null: WarmUp() was not called
  SerialQueue finisher_;  // declared last, so destroyed first: its jobs use all the others
};

Exchange::Impl::Impl(std::vector<at::Tensor> parameters, EpochGroup& group,
                     const Options& options)
    : parameters_(std::move(parameters)), group_(group), options_(options),
      lanes_(LanesOf(group.rank(), group.size(), options.lanes)),
      shares_(group.size(), options.lanes),
      watch_(parameters_, [this](size_t parameter, const at::Tensor& made) {
        OnGradient(parameter, made);
      }) {
  KEEL_CHECK(parameters_.front().is_cpu() || group_.has_nccl(), "a GPU in a group without NCCL");
  if (group_.has_nccl()) {
    gpu_ = std::make_unique<GpuReducer>(group_, shares_, parameters_.front().device());
  }
  OpenReducer();
}

void Exchange::Impl::OpenReducer() {
  const auto members =
      BucketsOf(parameters_, options_.first_bucket_bytes_max, options_.bucket_bytes_max);
  reducer_ = keel::OpenReducer(
      {.parameters = parameters_,
       .buckets = members,
       .rank = group_.rank(),
       .size = group_.size(),
       .bucket_bytes_max = options_.bucket_bytes_max,
       .first_bucket_bytes_max = options_.first_bucket_bytes_max,
       .hook = [this](c10d::GradBucket& bucket) { return RunHook(bucket); }});
  OpenBuckets(members);
}

void Exchange::Impl::OpenBuckets(const std::vector<std::vector<size_t>>& members) {
  auto buffers = reducer_->get_grad_buckets(/*return_zero_tensors=*/false);
  KEEL_CHECK(buffers.size() == members.size(), buffers.size() << " of " << members.size());
  seats_.resize(parameters_.size());
  for (size_t bucket = 0; bucket < members.size(); ++bucket) {
    std::vector<at::Tensor> own;
    for (const size_t parameter : members[bucket]) {
      seats_[parameter] = {bucket, own.size()};
      own.push_back(parameters_[parameter]);
    }
    buckets_.push_back(
        std::make_unique<ExchangeBucket>(std::move(own), buffers[bucket].getBuffer()));
  }
}

void Exchange::Impl::OnGradient(size_t parameter, const at::Tensor& made) {
  const BucketPlace& seat = seats_[parameter];
  if (is_collecting_) buckets_[seat.bucket]->TakeGradient(seat.index, made);
}

void Exchange::Impl::WarmUp() {
  if (gpu_) return;
  std::vector<std::span<std::byte>> places;
  for (const auto& bucket : buckets_) {
    const at::Tensor& buffer = bucket->buffer();
    places.emplace_back(static_cast<std::byte*>(buffer.mutable_data_ptr()), buffer.nbytes());
  }
  warmer_ = std::make_unique<MemoryWarmer>(std::move(places));
}

Exchange::Impl::~Impl() {
  if (group_.IsRead()) group_.Abort("the exchange ends in the middle of a step");
  finisher_.Drain();
  // c10d's Reducer may throw from its destructor, which would end the process here and also in
  // unique_ptr's own reset(), which is noexcept.
  const Status ended = CatchTorch("ending the exchange", [&] { delete reducer_.release(); });
  if (!ended.ok()) LogWarn("reducer-teardown", {{"error", ended.error().message}});
}

Error Exchange::Impl::Failed(const Error& error) {
  group_.Abort(error);
  finisher_.Drain();  // jobs of other buckets now fail at once
  // A GPU that is lost is more than a group that is broken.
  return error.code == Code::kNoDevice ? error : group_.status().error();
}

Status Exchange::Impl::Backward(const at::Tensor& loss) {
  KEEL_TRY(BeginLane());
  return EndLane(CatchTorch(LaneText(), [&] { loss.backward(); }));
}

std::string Exchange::Impl::LaneText() const {
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
    for (const auto& bucket : buckets_) {
      if (lanes_done_ == 0) bucket->BeginStep();
      bucket->BeginLane(PlaceOf(lanes_.begin + lanes_done_, lanes_, plain()));
    }
    hooks_run_ = 0;
    // It ignores the gradients of other lanes, for which it is not prepared.
    if (IsLastLane()) {
      reducer_->prepare_for_forward();
      reducer_->prepare_for_backward({});
    }
  });
  if (!begun.ok()) return Failed(begun.error());
  is_collecting_ = true;
  return Ok();
}

Status Exchange::Impl::EndLane(const Status& backward) {
  if (!is_collecting_) return Failed({Code::kInvalid, "the end of a lane that has not begun"});
  const bool is_last = IsLastLane();
  Status done = backward;
  if (done.ok()) {
    done = CatchTorch(LaneText(), [&] { is_last ? CompleteLastLane() : CompleteLane(); });
  }
  is_collecting_ = false;
  handed_over_.reset();
  ++lanes_done_;
  if (!done.ok()) return Failed(done.error());
  // Whoever ran the backward may have kept to himself that it threw.
  if (is_last) finisher_.Drain();
  KEEL_TRY(group_.status());
  if (!is_last) return Ok();
  if (gpu_) {
    const Result<Status> awaited = CatchTorch("awaiting the GPU", [&] { return gpu_->Await(); });
    if (!awaited.ok()) return Failed(awaited.error());
    if (!awaited->ok()) return Failed(awaited->error());
  }
  waited_ = RealClock().Monotonic() - hook_begun_;
  return Ok();
}

void Exchange::Impl::CompleteLane() {
  const torch::autograd::AutoGradMode no_grad(false);
  for (const auto& bucket : buckets_) bucket->EndLane();
}

void Exchange::Impl::CompleteLastLane() {
  // The Reducer waits for every parameter. Those that the loss did not reach get zeros from a
  // second backward, which starts at the parameters themselves.
  torch::autograd::variable_list missing;
  torch::autograd::variable_list zeros;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (buckets_[seats_[i].bucket]->IsReached(seats_[i].index)) continue;
    missing.push_back(parameters_[i]);
    zeros.push_back(at::zeros_like(parameters_[i]));
  }
  if (!missing.empty()) torch::autograd::backward(missing, zeros);
  finisher_.Drain();
}

// The backward that waits for it throws; the group knows why, whatever becomes of that exception.
c10::intrusive_ptr<Future> Exchange::Impl::Broken(c10::intrusive_ptr<Future> future,
                                                  const Error& error) {
  group_.Abort(error);
  future->setError(std::make_exception_ptr(std::runtime_error(error.message)));
  return future;
}

// On a GPU everything is only enqueued; it is done once the future's stream has come that far.
c10::intrusive_ptr<Future> Exchange::Impl::ReduceOnGpu(ExchangeBucket& bucket,
                                                       const at::Tensor& buffer) {
  std::vector<c10::Device> devices;
  if (!buffer.is_cpu()) devices.push_back(buffer.device());
  auto future = c10::make_intrusive<Future>(c10::TensorType::get(), std::move(devices));
  const Status enqueued = ReduceHere(bucket, buffer);
  if (!enqueued.ok()) return Broken(std::move(future), enqueued.error());
  gpu_->queue().Now([&] { future->markCompleted(buffer); });
  return future;
}

Status Exchange::Impl::ReduceHere(ExchangeBucket& bucket, const at::Tensor& into) {
  return plain() ? gpu_->AllReduce(into) : gpu_->Reduce(into, bucket.sum().Take());
}

c10::intrusive_ptr<Future> Exchange::Impl::RunHook(c10d::GradBucket& grad_bucket) {
  auto future = ReduceBucket(grad_bucket);
  // After the last bucket, the Reducer only waits until all buckets are reduced.
  if (++hooks_run_ == buckets_.size()) handed_over_.emplace(group_.whereabouts());
  return future;
}

c10::intrusive_ptr<Future> Exchange::Impl::ReduceBucket(c10d::GradBucket& grad_bucket) {
  hook_begun_ = RealClock().Monotonic();
  const size_t index = grad_bucket.getIndex();
  ExchangeBucket& bucket = *buckets_[index];
  const at::Tensor buffer = grad_bucket.getBuffer();
  const torch::autograd::AutoGradMode no_grad(false);
  bucket.EndLastLane();
  if (gpu_) return ReduceOnGpu(bucket, buffer);
  auto future = c10::make_intrusive<Future>(c10::TensorType::get());
  Result<Ending> started = StartReducing(bucket, buffer);
  if (!started.ok()) return Broken(std::move(future), started.error());
  // A future that is never completed would block backward for ever: every path completes it.
  finisher_.Submit([this, index, future, buffer, end = std::move(*started)] {
    group_.whereabouts().SidePlace("bucket " + std::to_string(index));
    const Result<Status> ended = CatchTorch("reducing gradients", [&] { return end(); });
    if (ended.ok() && ended->ok()) {
      future->markCompleted(buffer);
    } else {
      Broken(future, ended.ok() ? ended->error() : ended.error());
    }
  });
  return future;
}

Result<Exchange::Impl::Ending> Exchange::Impl::StartReducing(ExchangeBucket& bucket,
                                                             const at::Tensor& into) {
  if (gpu_) {
    KEEL_TRY(ReduceHere(bucket, into));
    return Ending([this] { return gpu_->Await(); });
  }
  if (plain()) return StartAllReduce(into);
  auto reduction = std::make_shared<FlatReduction>(group_, shares_, into, bucket.sum().Take(),
                                                   bucket.scratch());
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
    const Result<Status> reduced =
        CatchTorch("taking part without lanes", [&] { return ReduceWithoutLanes(); });
    if (!reduced.ok()) return Failed(reduced.error());
    if (!reduced->ok()) return Failed(reduced->error());
  }
  return group_.AwaitReaders();
}

// Starts all buckets at once: those of the other workers arrive one by one.
Status Exchange::Impl::ReduceWithoutLanes() {
  if (warmer_) warmer_->Stop();
  const torch::autograd::AutoGradMode no_grad(false);
  std::vector<Ending> endings;
  const auto end_all = [&]() -> Status {
    for (const Ending& end : std::exchange(endings, {})) KEEL_TRY(end());
    return Ok();
  };
  for (const auto& bucket : buckets_) {
    bucket->BeginStep();
    if (plain()) at::Tensor(bucket->buffer()).zero_();
    if (endings.size() == FlatReduction::kStartedMax) KEEL_TRY(end_all());
    KEEL_TRY_ASSIGN(Ending ending, StartReducing(*bucket, bucket->buffer()));
    endings.push_back(std::move(ending));
  }
  KEEL_TRY(end_all());
  for (const auto& bucket : buckets_) bucket->TakeBufferAsGradients();
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
    const Result<Status> made = CatchTorch("averaging tensors over the lanes",
                                      [&] { return MeanOfType(type, of_lanes, into); });
    if (!made.ok()) return Failed(made.error());
    if (!made->ok()) return Failed(made->error());
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

Result<std::unique_ptr<Exchange>> Exchange::Open(std::vector<at::Tensor> parameters,
                                                 EpochGroup& group, const Options& options) {
  if (parameters.empty() || options.lanes < 1) {
    return Error{Code::kInvalid, "an exchange of " + std::to_string(parameters.size()) +
                                     " parameters over " + std::to_string(options.lanes) +
                                     " lanes: there must be at least one of each"};
  }
  return CatchTorch("setting up the exchange of gradients", [&] {
    return std::unique_ptr<Exchange>(
        new Exchange(std::make_unique<Impl>(std::move(parameters), group, options)));
  });
}

Exchange::Exchange(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exchange::~Exchange() = default;

LaneRange Exchange::lanes() const { return impl_->lanes(); }
Whereabouts& Exchange::whereabouts() { return impl_->whereabouts(); }
void Exchange::WarmUp() { impl_->WarmUp(); }
Status Exchange::Backward(const at::Tensor& loss) { return impl_->Backward(loss); }
Status Exchange::BeginLane() { return impl_->BeginLane(); }
Status Exchange::EndLane(const Status& backward) { return impl_->EndLane(backward); }
Duration Exchange::waited() const { return impl_->waited(); }
Status Exchange::Finish() { return impl_->Finish(); }
Status Exchange::Mean(const std::vector<std::vector<at::Tensor>>& of_lanes,
                      const std::vector<at::Tensor>& into) {
  return impl_->Mean(of_lanes, into);
}

}  // namespace keel
