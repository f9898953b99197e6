// ReadProcFile: the whole of a small file of /proc.
// Does not   take a snapshot of more than one file: processes come, change and go meanwhile.
// Threads    any.
#pragma once

#include <optional>
#include <string>

namespace keel {

// Empty if the process is gone, or we may not look.
std::optional<std::string> ReadProcFile(const std::string& path);

}  // namespace keel
