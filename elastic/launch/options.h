// The launcher's options: all of torchrun 2.15's, with its names, letters, abbreviations, defaults
// and PET_ variables, and our own. Those of older ones down to 2.11 are among them.
// Promises   it accepts whatever torchrun accepts, and the config's notes say what has no effect
//            here. An abbreviation of one of torchrun's options means the same here, even if one
//            of our options begins alike.
// Threads    any. Errors: kInvalid: a value makes no sense (exit code 1, like torchrun's; what
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

// `options` come from LaunchTable(), and their positionals begin with a program.
Result<LaunchConfig> ConfigFrom(const Options& options, const Environment& environment,
                                const HostFacts& facts);

}  // namespace keel
