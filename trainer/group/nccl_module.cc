// Finds and loads the NCCL module through the program's run path.
#include "trainer/nccl_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/options_env.h"
#include "base/process_setup.h"

namespace keel {
namespace {

constexpr const char* kDriverDevice = "/dev/nvidiactl";

Result<NcclModule*> Load() {
  // Global, so that LibTorch's CUDA parts register themselves with the parts loaded already.
  void* const module = dlopen(kNcclModuleFile, RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return Error{Code::kNoDevice,
                 std::string("the NCCL module cannot be loaded: ") + dlerror() +
                     "; build it with -DKEEL_NCCL=enabled and a LibTorch that has CUDA"};
  }
  const auto entry = reinterpret_cast<NcclModuleEntry>(dlsym(module, kNcclModuleEntry));
  NcclModule* const loaded = entry == nullptr ? nullptr : entry(kNcclModuleVersion);
  if (loaded == nullptr) {
    std::string why = kNcclModuleFile;   // not with +: a false alarm of GCC 12 under TSan
    why += " belongs to another version of Evenkeel; reinstall both";
    return Error{Code::kNoDevice, why};
  }
  return loaded;
}

}  // namespace

Result<NcclModule*> OpenNcclModule() {
  static const Result<NcclModule*> module = Load();
  return module;
}

// When NCCL reports a lost peer, LibTorch's watchdog (a thread per group) blocks any thread that
// enqueues for a minute, and then ends the process, whether the group was aborted meanwhile or not.
// Blocking waits turn the watchdog off. Its record of operations is turned off as well: it points
// to events that the watchdog would have kept alive.
void PrepareForNccl() {
  const Status set = SetOwnEnvironment({{"TORCH_NCCL_BLOCKING_WAIT", "1"},
                                        {"TORCH_FR_BUFFER_SIZE", "0"}});
  KEEL_CHECK(set.ok(), set.error().message);
  // LibTorch sets it for deterministic algorithms, but only when other threads exist already.
  SetOwnVariableUnlessSet("NCCL_ALGO", "^NVLS");
}

void OpenCudaWhereThereIsADriver() {
  if (access(kDriverDevice, F_OK) != 0) return;
  const Result<NcclModule*> module = OpenNcclModule();
  if (!module.ok()) LogWarn("cuda-not-loaded", {{"reason", module.error().message}});
}

}  // namespace keel
