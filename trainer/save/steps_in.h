// StepsIn: the steps of a place that need not be there yet.
// Promises   a place counts as empty only where its disk or its store has shown that nothing is
//            there: whoever took silence for that would begin a job anew beside its checkpoints.
// Threads    any. Errors: those of ListSteps(), and kTimeout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "ckpt/catalog.h"

namespace keel {

// An empty `root` is no place, and has none.
Result<std::vector<StepEntry>> StepsIn(Files& files, const std::string& root);

// Asks beside, for a store that may say nothing: `files` must then live as long as the process.
// `tick` is called each second.
Result<std::vector<StepEntry>> StepsWithin(Files& files, const std::string& root, Duration limit,
                                           const std::function<void()>& tick);

}  // namespace keel
