// SetOwnEnvironment: variables of this process that libraries read for their options (MKL, oneDNN,
// ATen, Gloo), where they offer no function.
// Promises   children inherit them; a value that is there is replaced.
// Does not   reach a library that has looked already.
// Threads    call before the first thread starts: others may be reading the environment.
// Errors     kInvalid: a name that cannot be one.
#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/result.h"

namespace keel {

Status SetOwnEnvironment(const Environment& changes);

// Neither this process nor what it starts has these any more. Call it while there is one thread.
void ForgetOwnEnvironment(const std::vector<std::string>& names);

}  // namespace keel
