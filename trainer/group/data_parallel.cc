// One Reducer over the parameters, in buckets of at most 25 MB made in the order gradients become
// ready.
#include "trainer/data_parallel.h"

#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <string>

#include "base/log.h"
#include "store/catch_torch.h"
#include "store/torch_shim.h"

namespace keel {
namespace {

constexpr size_t kFirstBucketBytes = 1 << 20;  // small, so that the exchange begins early
constexpr size_t kBucketBytes = 25 << 20;

// Backward makes the last layers' gradients first, so the buckets begin there.
std::vector<std::vector<size_t>> BucketsOf(const std::vector<at::Tensor>& parameters) {
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, {kFirstBucketBytes, kBucketBytes});
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

void CopyFromRankZero(const std::vector<at::Tensor>& parameters, const Group& group) {
  const torch::autograd::AutoGradMode no_grad(false);
  for (const at::Tensor& parameter : parameters) {
    std::vector<at::Tensor> one{parameter.detach()};
    group->broadcast(one)->wait();
  }
}

}  // namespace

Result<std::unique_ptr<DataParallel>> DataParallel::Open(std::vector<at::Tensor> parameters,
                                                         Group group) {
  if (parameters.empty()) {
    return Error{Code::kInvalid, "data-parallel training: the model has no parameters"};
  }
  const std::string doing = "setting up data-parallel training of " +
                            std::to_string(parameters.size()) + " parameters";
  return CatchTorch(doing, [&] {
    CopyFromRankZero(parameters, group);
    return std::unique_ptr<DataParallel>(
        new DataParallel(std::move(parameters), std::move(group)));
  });
}

DataParallel::DataParallel(std::vector<at::Tensor> parameters, Group group)
    : parameters_(std::move(parameters)), group_(std::move(group)) {
  ReducerArguments arguments;
  arguments.parameters = parameters_;
  arguments.buckets = BucketsOf(parameters_);
  arguments.group = group_;
  arguments.bucket_bytes_max = kBucketBytes;
  arguments.first_bucket_bytes_max = kFirstBucketBytes;
  reducer_ = MakeReducer<c10d::Reducer>(std::move(arguments));
}

DataParallel::~DataParallel() {
  // c10d's Reducer may throw from its destructor, which would end the process here.
  const Status ended =
      CatchTorch("ending data-parallel training", [&] { delete reducer_.release(); });
  if (!ended.ok()) LogWarn("reducer-teardown", {{"error", ended.error().message}});
}

Status DataParallel::BeforeForward() {
  return CatchTorch("preparing a step", [&] { reducer_->prepare_for_forward(); });
}

Status DataParallel::Backward(const at::Tensor& loss) {
  const std::string doing =
      "averaging gradients over " + std::to_string(group_->getSize()) + " workers";
  return CatchTorch(doing, [&] {
    reducer_->prepare_for_backward({});
    loss.backward();
  });
}

}  // namespace keel
