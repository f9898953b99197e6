// OpenLease: the lease of a job, in the directory that its user named.
// Promises   one that is of no use is refused here, with a sentence that names it; where the
//            directory was only guessed (--lease=auto), that is told and the job has none. A
//            directory that does not answer is given up after some seconds.
// Threads    one.
// Errors     those of DirLease::Open(); kTimeout.
#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "elastic/launch/config.h"
#include "store/lease/lease.h"

namespace keel {

// Of its claims, as an absolute path, for the workers; empty: the job has none.
std::string LeaseFolderOf(const LaunchConfig& config);

// Null: the job has none.
Result<std::unique_ptr<Lease>> OpenLease(const LaunchConfig& config, Random random);

}  // namespace keel
