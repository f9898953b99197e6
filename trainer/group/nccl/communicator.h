// Communicator: an NcclLink over one non-blocking communicator of NCCL's (2.14 and later).
// Promises   as NcclLink. Its states are those of link_state.h. Where NCCL can (2.28.7 on), what is
//            in flight is revoked, which frees nothing, before the communicator is aborted.
// Does not   ask LibTorch for anything: it is tested with stand-ins for NCCL and CUDA.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/group/nccl/link_state.h"
#include "trainer/nccl_module.h"

namespace keel {

// "NCCL 2.28.9"
std::string NcclVersionText();
Result<std::string> NewNcclId();

class Communicator final : public NcclLink {
 public:
  explicit Communicator(const NcclLinkSpec& spec) : spec_(spec) {}

  void Own() override;
  Status AwaitReady(const std::function<bool()>& give_up) override;
  Status Meet() override;
  Status Exchange(const std::vector<NcclPiece>& out, const std::vector<NcclPiece>& in,
                  void* stream) override;
  Status Sum(void* values, size_t count, NcclType type, void* stream) override;
  Status status() const override;
  void Abort() override { Wish(LinkEvent::kAbort); }
  void Leave() override { Wish(LinkEvent::kLeave); }
  bool AwaitGone(Duration limit) override;
  std::string StateText() const override;

 private:
  // Calls of NCCL's between ncclGroupStart() and ncclGroupEnd().
  using Calls = std::function<ncclResult_t(ncclComm_t comm)>;
  struct Job {
    const Calls& calls;
    bool await_probe = false;   // and not only until it is enqueued
    Status status;
    bool done = false;
  };

  // --- By others ---
  Status Do(const Calls& calls, bool await_probe = false);
  void Wish(LinkEvent wish);

  // --- By the owner ---
  Status Initialise();
  void Serve();
  Status Enqueue(const Calls& calls);
  Status AwaitProbe();
  void LookForErrors();
  void End();
  void Finalise();
  void Revoke();
  void EndByAbort();
  void Free();
  Status AwaitNccl(ncclResult_t result, const std::function<bool()>& give_up);
  Error ErrorOf(ncclResult_t result);
  bool IsContextLost(std::string* why);

  bool wished() const;
  LinkState state() const;
  void Note(LinkEvent event);
  void Fail(const Error& error);

  const NcclLinkSpec spec_;
  ncclComm_t comm_ = nullptr;        // the owner's, as all of NCCL's
  cudaStream_t probe_ = nullptr;     // for meeting, and asking whether CUDA still answers
  char* meeting_ = nullptr;          // two bytes a member, on the GPU

  mutable std::mutex mutex_;
  std::condition_variable told_;     // of everything that follows
  LinkState state_ = LinkState::kInitialising;
  bool is_wished_ = false, may_finalise_ = false;
  Status status_;
  Job* job_ = nullptr;
};

}  // namespace keel
