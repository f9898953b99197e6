// OutputOfProgram(): what a command of the user prints.
// Promises   an error when it fails or prints too much; its group is killed when the limit passes.
//            Its stderr is ours, so that it can ask and complain.
// Does not   show what it printed in an error: that may be secret.
// Threads    any. Errors: kInvalid, kTimeout, kForeign.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

Result<std::string> OutputOfProgram(const std::string& command, Duration limit);

}  // namespace keel
