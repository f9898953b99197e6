// The NCCL module: all that calls NCCL lives in a shared object of its own, loaded when the device
// is CUDA, so that programs on the CPU neither link nor map CUDA's libraries.
// Promises   OpenNcclModule() loads it once, and LibTorch's part for CUDA before it, or says what
//            is missing. It loads even without a GPU; DeviceCount() is then 0, and Description()
//            quotes the driver.
// Does not   use c10d's ProcessGroupNCCL, whose watch ends processes, or whose aborts hang; it
//            needs no variables in the environment either. Unload: LibTorch looks for CUDA only
//            once, so load the module before any use of CUDA.
// Threads    OpenNcclModule() from any; an NcclLink as it says.
// Errors     kNoDevice: the module or a library that it needs is not there, or the GPU is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

class GpuQueue;

// The version of what the module offers. Raise it whenever these classes change: a module of
// another version is refused.
inline constexpr int kNcclModuleVersion = 5;

// Bytes on the GPU that go to a member, or come from it.
struct NcclPiece {
  void* bytes = nullptr;
  size_t count = 0;
  int peer = 0;
};

// What NCCL can add, in the order of kSummandTypes (trainer/group/nccl/communicator.cc).
enum class NcclType { kFloat32, kFloat64, kFloat16, kBfloat16 };

// A member's connections over NCCL in one epoch.
// Promises   NCCL's calls are made by the thread that runs Own(), one after the other, so no abort
//            ever comes beside another call. Abort() and Leave() return at once; the other calls
//            end soon after either, whatever NCCL and the other members do, but for an NCCL that
//            does not come back from a call: see AwaitGone().
// Threads    Own() has a thread of its own; Exchange() and Sum() from one at a time; the rest from
//            any. What is exchanged was enqueued, not done, when the call returns.
// Errors     kPeerLost; kCancelled: Abort() or Leave(); kNoDevice: CUDA's context is of no more
//            use in this process; kForeign: NCCL says that we, or it, are wrong.
class NcclLink {
 public:
  virtual ~NcclLink() = default;

  // Connects, serves the other calls, and returns when the link has ended.
  virtual void Own() = 0;
  // Until all members are connected, each pair of them; `give_up` is asked often.
  virtual Status AwaitReady(const std::function<bool()>& give_up) = 0;
  // Once it is ready: exchanges something with each member, which connects each pair, so that no
  // Exchange() waits for that.
  virtual Status Meet() = 0;
  // Enqueues sends and receives on a CUDA stream; a member gets as much as it expects.
  virtual Status Exchange(const std::vector<NcclPiece>& out, const std::vector<NcclPiece>& in,
                          void* stream) = 0;
  // The sum over all members, in NCCL's order, in place.
  virtual Status Sum(void* values, size_t count, NcclType type, void* stream) = 0;
  // The first error, also of what was enqueued before.
  virtual Status status() const = 0;
  // Ends what is in flight at once; members notice that they are left alone.
  virtual void Abort() = 0;
  // Ends in order what all members have done.
  virtual void Leave() = 0;
  // Whether nothing of it is left within the limit. If not, NCCL hangs, and so will this process.
  virtual bool AwaitGone(Duration limit) = 0;
  // "aborting": where it is, in a word.
  virtual std::string StateText() const = 0;
};

struct NcclLinkSpec {
  std::string id;   // from NewId() of one member
  int rank = 0;
  int size = 1;
  int device = 0;
};

class NcclModule {
 public:
  virtual int DeviceCount() = 0;
  // "1 GPU (NVIDIA H200), CUDA 13.0, NCCL 2.28.9", or why there is none.
  virtual std::string Description() = 0;
  virtual std::string DeviceName(int device) = 0;   // "NVIDIA H200"
  // What all members of a new link need to find each other.
  virtual Result<std::string> NewId() = 0;
  virtual std::shared_ptr<NcclLink> MakeLink(const NcclLinkSpec& spec) = 0;

 protected:
  ~NcclModule() = default;
};

// The only symbol that is looked up in the module. It returns null for another version.
using NcclModuleEntry = NcclModule* (*)(int version);
inline constexpr const char* kNcclModuleEntry = "keel_nccl_module";
inline constexpr const char* kNcclModuleFile = "libkeel_nccl.so";

Result<NcclModule*> OpenNcclModule();
// The module alone, which takes NCCL's and CUDA's functions from what the process has loaded.
Result<NcclModule*> LoadNcclModule();

// For tests: the groups of this process exchange tensors of the CPU over this module, in queues
// that this function makes. Call it before anything else here.
struct NcclStandIn {
  NcclModule* module = nullptr;
  std::function<std::unique_ptr<GpuQueue>()> make_queue;
};
void UseStandIn(NcclStandIn stand_in);
// Null but in such a test.
const NcclStandIn* TheStandIn();

// Opens the module if NVIDIA's driver is loaded, so that the program may use CUDA as it likes.
// Without a driver it does not, since that takes time. A failure is logged.
void OpenCudaWhereThereIsADriver();

}  // namespace keel
