// The launcher's options: all of torchrun 2.11's, with its names, letters, abbreviations, defaults
// and PET_ variables, and our own.
// Promises   whatever torchrun takes is taken, and what does nothing here is said in the config's
//            notes. An abbreviation that means one of torchrun's options means that one here too,
//            also where an option of ours begins alike.
// Threads    any. Errors: kInvalid: a value makes no sense (exit code 1, as torchrun's; what
//            ParseOptions() refuses is 2).
#pragma once

#include <string>

#include "base/environment.h"
#include "base/options.h"
#include "base/result.h"
#include "elastic/launch/config.h"
#include "elastic/launch/host_facts.h"

namespace keel {

OptionTable LaunchTable();

// `options` come from LaunchTable() and have a program among their positionals.
Result<LaunchConfig> ConfigFrom(const Options& options, const Environment& environment,
                                const HostFacts& facts);

}  // namespace keel
