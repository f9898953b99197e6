// Whether a directory can hold a job's lease, by trying it.
// Promises   returns within a limit; what it writes there is removed.
// Does not   find out whether other hosts see the same directory: --doctor-dir does.
// Threads    any.
// Lifetime   `files` must outlive a call that hangs.
#pragma once

#include <string>

#include "base/files.h"
#include "base/random.h"
#include "base/result.h"

namespace keel {

// kNotFound: it is not there; kInvalid: it is no directory, or two claims of one name both succeed;
// else what writing there gives; kTimeout.
Status TryLeaseDirectory(Files& files, const std::string& directory, Random random);

}  // namespace keel
