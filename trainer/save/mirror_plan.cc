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

// Of both places: what is kept for ever is so in both. Rising.
std::vector<uint64_t> CompleteIn(const std::vector<StepEntry>& here,
                                 const std::vector<StepEntry>& there) {
  std::vector<uint64_t> steps;
  for (const auto* place : {&here, &there}) {
    for (const StepEntry& entry : *place) {
      if (entry.state == StepState::kComplete) steps.push_back(entry.step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
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
  const std::vector<uint64_t> complete = CompleteIn(here, there);
  for (auto entry = here.rbegin(); entry != here.rend(); ++entry) {
    if (entry->state != StepState::kComplete || Holds(there, entry->step)) continue;
    if (entry->step == *newest_here && (!newest_there || *newest_there < entry->step)) {
      return {*entry, "the newest"};
    }
    const auto multiple = KeptFor(entry->step, complete, retention.keep_every);
    if (multiple) return {*entry, "the first from step " + std::to_string(*multiple) + " on"};
  }
  return {std::nullopt, "all is there"};
}

}  // namespace keel
