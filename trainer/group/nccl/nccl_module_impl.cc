// The inside of the NCCL module. It is linked with neither NCCL nor CUDA: their functions are those
// that LibTorch has loaded.
#include <cuda_runtime_api.h>

#include "trainer/group/nccl/communicator.h"
#include "trainer/nccl_module.h"

namespace keel {
namespace {

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

  Result<std::string> NewId() override { return NewNcclId(); }

  std::shared_ptr<NcclLink> MakeLink(const NcclLinkSpec& spec) override {
    return std::make_shared<Communicator>(spec);
  }

 private:
  static std::string Libraries() {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return "CUDA " + std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10) +
           ", " + NcclVersionText();
  }
};

}  // namespace
}  // namespace keel

extern "C" __attribute__((visibility("default"))) keel::NcclModule* keel_nccl_module(int version) {
  static keel::Module module;
  return version == keel::kNcclModuleVersion ? &module : nullptr;
}
