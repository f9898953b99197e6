// EndingOf(): how a process ends that the kernel is ending, of which nobody else hears before its
// memory is free: a tenth of a second for each GB, and more where there is a GPU's.
// Promises   nothing of a process of which only the first thread has left: its others live.
// Threads    any. It reads a file of /proc for each thread of an ending process, else one.
#pragma once

#include <sys/types.h>

#include <optional>

#include "elastic/process/exit_status.h"

namespace keel {

std::optional<ExitStatus> EndingOf(pid_t pid);

}  // namespace keel
