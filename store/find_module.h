// FindModule: where a shared object lies that a program of ours loads when it needs it.
// Threads    any.
// Errors     kNotFound, which names where it looked; kForeign: the module cannot be loaded, or has
//            no such entry.
#pragma once

#include <string>

#include "base/result.h"

namespace keel {

// "/opt/keel" of "/opt/keel/bin/keelrun", this process's program.
Result<std::string> OwnPrefix();

// In the folders of libraries below that prefix, in the build as when installed.
Result<std::string> FindModule(const std::string& prefix, const std::string& file);

// Loads it for good, and returns its function of that name.
Result<void*> LoadModule(const std::string& path, const char* entry);

}  // namespace keel
