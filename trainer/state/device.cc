// Takes the number of a GPU from LOCAL_RANK, and its name from the NCCL module.
#include "trainer/state/device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <limits>
#include <vector>

#include "base/text.h"
#include "store/catch_torch.h"
#include "trainer/nccl_module.h"

namespace keel {
namespace {

constexpr std::string_view kCuda = "cuda";

Result<c10::Device> Gpu(std::string_view number) {
  const Result<int64_t> index = ParseInteger(number);
  if (!index.ok() || *index < 0 || *index > std::numeric_limits<c10::DeviceIndex>::max()) {
    return Error{Code::kInvalid, Shown(number) + " is not the number of a GPU"};
  }
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(*index));
}

}  // namespace

Result<c10::Device> ParseDevice(std::string_view text, const Environment& environment) {
  if (text == "cpu") return c10::Device(c10::kCPU);
  if (text == kCuda) {
    const auto local_rank = environment.find("LOCAL_RANK");
    const Result<c10::Device> gpu =
        Gpu(local_rank == environment.end() ? std::string_view("0") : local_rank->second);
    return gpu.ok() ? gpu : gpu.error().Doing("LOCAL_RANK");
  }
  if (text.starts_with("cuda:")) return Gpu(text.substr(kCuda.size() + 1));
  return Error{Code::kInvalid, Shown(text) + " is neither cpu, cuda nor cuda:NUMBER"};
}

Status OpenDevice(c10::Device device) {
  if (device.is_cpu()) return Ok();
  KEEL_TRY_ASSIGN(NcclModule* const module, OpenNcclModule());
  const int count = module->DeviceCount();
  if (device.index() >= count) {
    return Error{Code::kNoDevice, device.str() + " is not there: " + module->Description()};
  }
  return CatchTorch("taking " + device.str(), [&] {
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  });
}

Result<std::string> DeviceName(c10::Device device) {
  if (device.is_cpu()) return std::string("cpu");
  KEEL_TRY_ASSIGN(NcclModule* const module, OpenNcclModule());
  return module->DeviceName(device.index());
}

Status CheckDevice(const NamedTensors& tensors, c10::Device device) {
  std::vector<std::string> elsewhere;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.device() == device) continue;
    elsewhere.push_back(named.name + " (" + named.tensor.device().str() + ")");
  }
  if (elsewhere.empty()) return Ok();
  return Error{Code::kInvalid, "the job computes on " + device.str() +
                                   ", but these tensors of its model are elsewhere: " +
                                   JoinList(elsewhere, ", ") +
                                   "; move the model there before the optimizer is made: "
                                   "model->to(config.device)"};
}

}  // namespace keel
