// Finds and loads the NCCL module through the program's run path, and LibTorch's part for CUDA
// where the rest of LibTorch is.
#include "trainer/nccl_module.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/log.h"

namespace keel {
namespace {

constexpr const char* kDriverDevice = "/dev/nvidiactl";
// With it come the libraries of CUDA and NCCL that this LibTorch was built with.
constexpr std::string_view kTorchCudaFile = "libtorch_cuda.so";
constexpr std::string_view kTorchFile = "libtorch_cpu.so";

std::optional<NcclStandIn>& StandIn() {
  static std::optional<NcclStandIn> stand_in;
  return stand_in;
}

Error NotLoaded() {
  return {Code::kNoDevice, std::string("the NCCL module cannot be loaded: ") + dlerror() +
                               "; build it with -DKEEL_NCCL=enabled and a LibTorch that has CUDA"};
}

// "/.../torch/lib/", or nothing.
std::string TorchFolder() {
  std::string folder;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        const std::string_view name = info->dlpi_name;
        if (!name.ends_with(kTorchFile)) return 0;
        *static_cast<std::string*>(found) = name.substr(0, name.size() - kTorchFile.size());
        return 1;
      },
      &folder);
  return folder;
}

Result<NcclModule*> Load() {
  if (TheStandIn() != nullptr) return TheStandIn()->module;
  // Global, so that LibTorch's CUDA parts register themselves with the parts loaded already, and
  // the module finds NCCL.
  const std::string cuda = TorchFolder() + std::string(kTorchCudaFile);
  if (dlopen(cuda.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) return NotLoaded();
  return LoadNcclModule();
}

}  // namespace

Result<NcclModule*> LoadNcclModule() {
  void* const module = dlopen(kNcclModuleFile, RTLD_NOW);
  if (module == nullptr) return NotLoaded();
  const auto entry = reinterpret_cast<NcclModuleEntry>(dlsym(module, kNcclModuleEntry));
  NcclModule* const loaded = entry == nullptr ? nullptr : entry(kNcclModuleVersion);
  if (loaded == nullptr) {
    std::string why = kNcclModuleFile;   // not with +: a false alarm of GCC 12 under TSan
    why += " belongs to another version of Evenkeel; reinstall both";
    return Error{Code::kNoDevice, why};
  }
  return loaded;
}

Result<NcclModule*> OpenNcclModule() {
  static const Result<NcclModule*> module = Load();
  return module;
}

void UseStandIn(NcclStandIn stand_in) { StandIn() = std::move(stand_in); }

const NcclStandIn* TheStandIn() { return StandIn() ? &*StandIn() : nullptr; }

void OpenCudaWhereThereIsADriver() {
  if (access(kDriverDevice, F_OK) != 0) return;
  const Result<NcclModule*> module = OpenNcclModule();
  if (!module.ok()) LogWarn("cuda-not-loaded", {{"reason", module.error().message}});
}

}  // namespace keel
