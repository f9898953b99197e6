// Finds and loads the NCCL module through the program's run path.
#include "trainer/nccl_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include "base/log.h"

namespace keel {
namespace {

constexpr const char* kDriverDevice = "/dev/nvidiactl";

Result<NcclModule*> Load() {
  // Global: LibTorch's CUDA parts register themselves with the ones loaded already.
  void* const module = dlopen(kNcclModuleFile, RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return Error{Code::kNoDevice,
                 std::string("the NCCL module cannot be loaded: ") + dlerror() +
                     "; build it with -DKEEL_NCCL=enabled and a LibTorch that has CUDA"};
  }
  const auto entry = reinterpret_cast<NcclModuleEntry>(dlsym(module, kNcclModuleEntry));
  NcclModule* const loaded = entry == nullptr ? nullptr : entry(kNcclModuleVersion);
  if (loaded == nullptr) {
    return Error{Code::kNoDevice, std::string(kNcclModuleFile) +
                                      " belongs to another version of Evenkeel; install both anew"};
  }
  return loaded;
}

}  // namespace

Result<NcclModule*> OpenNcclModule() {
  static const Result<NcclModule*> module = Load();
  return module;
}

void OpenCudaWhereThereIsADriver() {
  if (access(kDriverDevice, F_OK) != 0) return;
  const Result<NcclModule*> module = OpenNcclModule();
  if (!module.ok()) LogWarn("cuda-not-loaded", {{"reason", module.error().message}});
}

}  // namespace keel
