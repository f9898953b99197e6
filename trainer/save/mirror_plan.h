// MirrorPlan: which checkpoint of a directory is to be copied to its mirror next.
// Promises   pure. The newest comes first, and older ones only where they are kept for ever: a
//            mirror that is slower than the saves is always about one checkpoint behind.
// Threads    pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ckpt/catalog.h"
#include "ckpt/retention.h"

namespace keel {

struct MirrorChoice {
  std::optional<StepEntry> next;   // nothing: all that the mirror is to hold is there
  std::string why;
};

// Both lists as from ListSteps(); `retention` is that of both places.
MirrorChoice NextToMirror(const std::vector<StepEntry>& here, const std::vector<StepEntry>& there,
                          const RetentionPolicy& retention);

// Without what is beyond `step`, which a job passed over when it resumed. Nothing: all of them.
std::vector<StepEntry> UpTo(std::vector<StepEntry> entries, std::optional<uint64_t> step);

// The newest complete one of a list, which must outlive it; null: there is none.
const StepEntry* NewestIn(const std::vector<StepEntry>& entries);
std::optional<uint64_t> NewestStep(const std::vector<StepEntry>& entries);

}  // namespace keel
