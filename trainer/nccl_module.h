// The NCCL module: everything that needs CUDA libraries lives in a shared object of its own, loaded
// when the device is CUDA, so that programs on the CPU neither link nor map them.
// Promises   OpenNcclModule() loads it once, or says what is missing. It loads even without a GPU;
//            DeviceCount() is then 0, and Description() quotes the driver. After PrepareForNccl()
//            no thread of LibTorch watches NCCL and ends the process: the code that enqueues work
//            has to check it.
// Does not   unload. LibTorch looks for CUDA only once, so load the module before any use of CUDA.
// Threads    PrepareForNccl() before the first starts; OpenNcclModule() from any; the rest as the
//            caller's process group allows. Abort() frees what other calls of that backend use.
// Errors     kNoDevice: the module or a library that it needs is not there.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>

#include "base/result.h"

namespace keel {

// The version of what the module offers. Raise it whenever this class changes: a module of another
// version is refused.
inline constexpr int kNcclModuleVersion = 4;

class NcclModule {
 public:
  virtual int DeviceCount() = 0;
  // "1 GPU (NVIDIA H200), CUDA 13.0, NCCL 2.28.9", or why there is none.
  virtual std::string Description() = 0;
  virtual std::string DeviceName(int device) = 0;   // "NVIDIA H200"
  // Throws c10::Error: call it inside CatchTorch().
  virtual c10::intrusive_ptr<c10d::Backend> MakeBackend(
      const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, int device,
      std::chrono::milliseconds limit) = 0;
  // Makes the communicator now rather than in the first operation. Abort() does not end it. It
  // throws likewise.
  virtual void Connect(c10d::Backend& backend, int device) = 0;
  // An exchange of all with all, which connects each pair on the CPU: the first one waits for the
  // other side. It throws likewise.
  virtual c10::intrusive_ptr<c10d::Work> Meet(c10d::Backend& backend, int device) = 0;
  // Ends what is in flight on a backend of MakeBackend(); from any thread. It throws likewise.
  virtual void Abort(c10d::Backend& backend) = 0;

 protected:
  ~NcclModule() = default;
};

// The only symbol that is looked up in the module. It returns null for another version.
using NcclModuleEntry = NcclModule* (*)(int version);
inline constexpr const char* kNcclModuleEntry = "keel_nccl_module";
inline constexpr const char* kNcclModuleFile = "libkeel_nccl.so";

Result<NcclModule*> OpenNcclModule();

// Sets environment variables of this process: LibTorch has no function for it.
void PrepareForNccl();

// Opens the module if NVIDIA's driver is loaded, so that the program may use CUDA as it likes.
// Without a driver it does not, since that takes time. A failure is logged.
void OpenCudaWhereThereIsADriver();

}  // namespace keel
