// From the newest step down.
#include "trainer/save/mirror_plan.h"

#include <algorithm>

namespace keel {
namespace {

// Whether the mirror has that step, or what is left of it: nothing takes its place.
bool Holds(const std::vector<StepEntry>& there, uint64_t step) {
  return std::any_of(there.begin(), there.end(), [step](const StepEntry& entry) {
    return entry.step == step && entry.state != StepState::kPartial;
  });
}

}  // namespace

std::vector<StepEntry> UpTo(std::vector<StepEntry> entries, std::optional<uint64_t> step) {
  std::erase_if(entries, [&](const StepEntry& entry) { return step && entry.step > *step; });
  return entries;
}

const StepEntry* NewestIn(const std::vector<StepEntry>& entries) {
  const auto newest = std::find_if(entries.rbegin(), entries.rend(), [](const StepEntry& entry) {
    return entry.state == StepState::kComplete;
  });
  return newest == entries.rend() ? nullptr : &*newest;
}

std::optional<uint64_t> NewestStep(const std::vector<StepEntry>& entries) {
  const StepEntry* const newest = NewestIn(entries);
  return newest == nullptr ? std::nullopt : std::optional(newest->step);
}

MirrorChoice NextToMirror(const std::vector<StepEntry>& here, const std::vector<StepEntry>& there,
                          const RetentionPolicy& retention) {
  const std::optional<uint64_t> newest_here = NewestStep(here), newest_there = NewestStep(there);
  if (!newest_here) return {std::nullopt, "nothing is saved yet"};
  for (auto entry = here.rbegin(); entry != here.rend(); ++entry) {
    if (entry->state != StepState::kComplete || Holds(there, entry->step)) continue;
    if (entry->step == *newest_here && (!newest_there || *newest_there < entry->step)) {
      return {*entry, "the newest"};
    }
    const uint64_t every = retention.keep_every;
    if (every > 0 && entry->step % every == 0) {
      return {*entry, "step is a multiple of " + std::to_string(every)};
    }
  }
  return {std::nullopt, "all is there"};
}

}  // namespace keel
