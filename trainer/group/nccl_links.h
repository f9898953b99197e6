// The links over NCCL of this process: the threads that own them, and those that see them end.
// Promises   a link that does not end within 10 s ends the process, with an exit code of its own,
//            and the launcher starts another: an abort that hangs would hold up each later group.
// Threads    any.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/nccl_module.h"

namespace keel {

std::shared_ptr<NcclLink> BeginNccl(NcclModule& module, const NcclLinkSpec& spec);

// Returns at once. Once for each link.
void EndNccl(const std::shared_ptr<NcclLink>& link, bool in_order);

// How many are neither gone nor in use.
int NcclLinksEnding();

// For the end of a program: where NCCL is still ending a group, the process ends at once, with this
// code, since NCCL and CUDA would meet what the end of a program has destroyed.
void EndBesideNccl(int code);

// What is wrong is the device's fault, or NCCL's, and no other program would fare better in this
// process: says so, and ends it with kExitDeviceLost.
[[noreturn]] void LeaveLostGpu(const std::string& why);
// That, if the error is of such a kind: Code::kNoDevice of a GPU that was there.
void LeaveIfLost(const Error& error);

}  // namespace keel
