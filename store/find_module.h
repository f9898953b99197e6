// FindModule: where a shared object lies that a program of ours loads when it needs it.
// Threads    any.
// Errors     kNotFound, which names where it looked; kForeign: the module cannot be loaded, or has
//            no such entry.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace keel {

// "/opt/keel" of "/opt/keel/bin/keelrun", this process's program.
Result<std::string> OwnPrefix();

// In `folders` below that prefix, from the first: "/lib/".
Result<std::string> FindModule(const std::string& prefix, const std::string& file,
                               const std::vector<std::string>& folders);

// Loads it for good, and returns its function of that name.
Result<void*> LoadModule(const std::string& path, const char* entry);

}  // namespace keel
