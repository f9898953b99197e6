// RunOnThreads: runs the same loop on several threads, including the caller's.
// Promises   returns when all have returned. It runs on fewer threads if the system gives no more,
//            so `work` must take its tasks from a common list until there are none.
// Does not   let exceptions of `work` pass: it must throw none.
#pragma once

#include <functional>

namespace keel {

void RunOnThreads(int threads, const std::function<void()>& work);

}  // namespace keel
