// The inside of the NCCL module: the one file that includes CUDA's and NCCL's headers.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "trainer/nccl_module.h"

namespace keel {
namespace {

std::string Version(int packed, int major_unit, int minor_unit) {
  return std::to_string(packed / major_unit) + "." +
         std::to_string(packed % major_unit / minor_unit);
}

std::string NcclVersion() {
  int packed = 0;
  if (ncclGetVersion(&packed) != ncclSuccess) return "NCCL of unknown version";
  return "NCCL " + Version(packed, 10000, 100) + "." + std::to_string(packed % 100);
}

class Module final : public NcclModule {
 public:
  int DeviceCount() override {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
  }

  std::string Description() override {
    int count = 0;
    const cudaError_t found = cudaGetDeviceCount(&count);
    if (found != cudaSuccess || count == 0) {
      const char* why = found == cudaSuccess ? "the driver lists none" : cudaGetErrorString(found);
      return std::string("no GPU: ") + why + "; " + Libraries();
    }
    return std::to_string(count) + (count == 1 ? " GPU (" : " GPUs (the first: ") + DeviceName(0) +
           "), " + Libraries();
  }

  std::string DeviceName(int device) override {
    cudaDeviceProp properties{};
    const cudaError_t found = cudaGetDeviceProperties(&properties, device);
    return found == cudaSuccess ? properties.name : "unnamed";
  }

  c10::intrusive_ptr<c10d::Backend> MakeBackend(const c10::intrusive_ptr<c10d::Store>& store,
                                                int rank, int size, int device,
                                                std::chrono::milliseconds limit) override {
    const c10::cuda::CUDAGuard on(static_cast<c10::DeviceIndex>(device));
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = limit;
    options->config.blocking = 1;   // overrides the environment: Connect() returns once connected
    auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
    backend->setBoundDeviceId(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)));
    return backend;
  }

  void Connect(c10d::Backend& backend, int device) override {
    const c10::Device gpu(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
    backend.eagerConnectSingleDevice(gpu);
  }

  c10::intrusive_ptr<c10d::Work> Meet(c10d::Backend& backend, int device) override {
    const c10::cuda::CUDAGuard on(static_cast<c10::DeviceIndex>(device));
    const c10::Device gpu(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
    std::vector<at::Tensor> out;
    std::vector<at::Tensor> in;
    for (int rank = 0; rank < backend.getSize(); ++rank) {
      out.push_back(at::empty({1}, at::TensorOptions(gpu)));
      in.push_back(at::empty({1}, at::TensorOptions(gpu)));
    }
    const c10::intrusive_ptr<c10d::Work> met = backend.alltoall(in, out);
    met->synchronize();   // later work on the stream comes after it; nothing blocks here
    return met;
  }

  void Abort(c10d::Backend& backend) override {
    dynamic_cast<c10d::ProcessGroupNCCL&>(backend).abort();
  }

 private:
  static std::string Libraries() {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return "CUDA " + Version(runtime, 1000, 10) + ", " + NcclVersion();
  }
};

}  // namespace
}  // namespace keel

extern "C" __attribute__((visibility("default"))) keel::NcclModule* keel_nccl_module(int version) {
  static keel::Module module;
  return version == keel::kNcclModuleVersion ? &module : nullptr;
}
