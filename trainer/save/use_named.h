// UseNamed: uses the checkpoint that a text names, while the job that made it may run on.
// Promises   if that job removes the checkpoint meanwhile, and the text names another one by then,
//            that one is used instead, at most ten times.
// Does not   undo what a use that failed has done.
// Threads    one. Errors: those of ResolveCheckpoint() and of the last use.
#pragma once

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/catalog.h"

namespace keel {

// `use` gets the directory and returns a Status; the directory that it could use is returned.
// `ask` calls what it is given, and returns its answer: a place may be slow to give one.
template <class Ask, class Use>
Result<std::string> UseNamed(Files& files, const std::string& text, const Ask& ask,
                             const Use& use) {
  constexpr int kTries = 10;
  const auto resolve = [&] { return ResolveCheckpoint(files, text); };
  for (int tries = 1;; ++tries) {
    KEEL_TRY_ASSIGN(const std::string dir, ask(resolve));
    const Status used = use(dir);
    if (used.ok()) return dir;
    if (!ask([&] { return IsRemoved(files, dir); })) return used.error();
    KEEL_TRY_ASSIGN(const std::string next, ask(resolve));
    if (next == dir || tries == kTries) return used.error();
  }
}

}  // namespace keel
