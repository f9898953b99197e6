// What /proc tells of processes: the whole of a small file, and their threads.
// Does not   take a snapshot of more than one file: processes come, change and go meanwhile.
// Threads    any.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace keel {

// Empty if the process is gone, or we may not look.
std::optional<std::string> ReadProcFile(const std::string& path);

// In order; empty if the process is gone.
std::vector<pid_t> ThreadsOf(pid_t pid);

}  // namespace keel
