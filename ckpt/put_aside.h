// PutAside: takes a damaged checkpoint out of the way of the next save of its step.
// Promises   what is left of it stays, for `keel repair`: on a disk the directory gets another
//            name; in a bucket, where moving it would copy all of it, the step only loses its
//            manifest, which keeps its bytes under another name.
// Threads    any. Errors: those of base/files.h and base/objects.h.
#pragma once

#include <string>

#include "base/files.h"
#include "base/random.h"
#include "base/result.h"
#include "ckpt/catalog.h"

namespace keel {

// Returns where it is now.
Result<std::string> PutAside(Files& files, Random& random, const std::string& root,
                             const StepEntry& entry);

}  // namespace keel
