// Each link has a thread of its own, and from its end on one that watches it.
#include "trainer/group/nccl_links.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "base/log.h"
#include "elastic/process/quiet_thread.h"
#include "elastic/protocol/exit_codes.h"
#include "store/catch_torch.h"

namespace keel {
namespace {

// An abort waits for kernels of this process to end, which takes milliseconds, and for NCCL's own
// threads.
constexpr Duration kEndLimit = std::chrono::seconds(10);

std::atomic<int> ending{0};

void See(const std::shared_ptr<NcclLink>& link) {
  if (link->AwaitGone(kEndLimit)) {
    ending.fetch_sub(1);
    return;
  }
  LeaveLostGpu("NCCL has not ended a group within " + DurationText(kEndLimit) + ", and hangs: " +
               link->StateText());
}

}  // namespace

std::shared_ptr<NcclLink> BeginNccl(NcclModule& module, const NcclLinkSpec& spec) {
  auto link = module.MakeLink(spec);
  StartQuietThread("keel-nccl", [link] { link->Own(); }).detach();
  return link;
}

void EndNccl(const std::shared_ptr<NcclLink>& link, bool in_order) {
  ending.fetch_add(1);
  in_order ? link->Leave() : link->Abort();
  const Status seen = CatchTorch("watching the end of a group", [&] {
    StartQuietThread("keel-nccl-end", [link] { See(link); }).detach();
  });
  if (!seen.ok()) See(link);
}

void EndBesideNccl(int code) {
  if (NcclLinksEnding() == 0) return;
  std::fflush(nullptr);
  _exit(code);
}

int NcclLinksEnding() { return ending.load(); }

void LeaveLostGpu(const std::string& why) {
  LogError("device-lost", {{"reason", why},
                           {"note", "this is the GPU's or NCCL's fault, not the program's; "
                                    "another process takes this one's place"}});
  _exit(kExitDeviceLost);   // nothing of CUDA's would end in order any more
}

void LeaveIfLost(const Error& error) {
  if (error.code == Code::kNoDevice) LeaveLostGpu(error.message);
}

}  // namespace keel
