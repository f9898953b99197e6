// Tensors stay where they are: what a GPU would compute is computed on the thread of a stream.
#include "tests/standin/host_queue.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/catch_torch.h"
#include "trainer/exchange/gpu_queue.h"
#include "trainer/nccl_module.h"

namespace keel {
namespace {

// What a GPU computes, the stream's thread computes.
class HostQueue final : public GpuQueue {
 public:
  HostQueue() {
    KEEL_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess, "");
  }
  // What is still in the stream uses tensors that this keeps.
  ~HostQueue() override {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }

  void FollowCurrentStream() override {
    if (cudaStreamQuery(stream_) == cudaSuccess) kept_.clear();
  }
  void Keep(const at::Tensor& tensor) override { kept_.push_back(tensor); }
  void Now(const std::function<void()>& work) override { work(); }
  void Then(std::function<void()> work) override {
    auto* const owned = new std::function<void()>(std::move(work));
    const auto run = [](void* argument) {
      const std::unique_ptr<std::function<void()>> mine(
          static_cast<std::function<void()>*>(argument));
      const Status done = CatchTorch("computing in a stream", [&] { (*mine)(); });
      KEEL_CHECK(done.ok(), done.error().message);
    };
    KEEL_CHECK(cudaLaunchHostFunc(stream_, run, owned) == cudaSuccess, "");
  }
  void* stream() override { return stream_; }
  std::function<bool()> Mark() override {
    return [this] { return cudaStreamQuery(stream_) == cudaSuccess; };
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<at::Tensor> kept_;
};

}  // namespace

void ExchangeOverTheStandIn() {
  const Result<NcclModule*> module = LoadNcclModule();
  KEEL_CHECK(module.ok(), module.error().message);
  UseStandIn({*module, [] { return std::make_unique<HostQueue>(); }});
}

}  // namespace keel
