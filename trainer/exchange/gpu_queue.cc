// Uses generic streams and events, so that no CUDA header is needed here.
#include "trainer/exchange/gpu_queue.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "store/torch_shim.h"
#include "trainer/nccl_module.h"

namespace keel {
namespace {

class TorchQueue final : public GpuQueue {
 public:
  explicit TorchQueue(c10::Device device)
      : stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

  void FollowCurrentStream() override {
    const c10::impl::VirtualGuardImpl device(stream_.device_type());
    c10::Event done(stream_.device_type());
    done.record(device.getStream(stream_.device()));
    done.block(stream_);
  }
  void Keep(const at::Tensor& tensor) override { tensor.record_stream(stream_); }
  void Now(const std::function<void()>& work) override {
    const c10::StreamGuard here(stream_);
    work();
  }
  void Then(std::function<void()> work) override { Now(work); }
  void* stream() override { return NativeHandleOf(stream_); }
  std::function<bool()> Mark() override {
    auto done = std::make_shared<c10::Event>(stream_.device_type());
    done->record(stream_);
    return [done] { return done->query(); };
  }

 private:
  const c10::Stream stream_;
};

}  // namespace

std::unique_ptr<GpuQueue> OpenGpuQueue(c10::Device device) {
  if (TheStandIn() != nullptr) return TheStandIn()->make_queue();
  return std::make_unique<TorchQueue>(device);
}

}  // namespace keel
