// Which checkpoint goes to the mirror next, for all that two lists can hold.
#include "trainer/save/mirror_plan.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

using enum StepState;

std::vector<StepEntry> Steps(std::vector<std::pair<uint64_t, StepState>> steps) {
  std::vector<StepEntry> entries;
  for (const auto& [step, state] : steps) {
    StepEntry entry;
    entry.step = step;
    entry.state = state;
    entries.push_back(entry);
  }
  return entries;
}

std::optional<uint64_t> Next(const std::vector<StepEntry>& here,
                             const std::vector<StepEntry>& there, uint64_t keep_every = 0) {
  const MirrorChoice choice = NextToMirror(here, there, {.keep_every = keep_every});
  EXPECT_FALSE(choice.why.empty());
  return choice.next ? std::optional(choice.next->step) : std::nullopt;
}

TEST(NextToMirror, TheNewestCompleteOneAndNoneOfThoseBeforeIt) {
  const auto here = Steps({{10, kComplete}, {20, kComplete}, {30, kPartial}, {40, kDamaged}});
  EXPECT_EQ(Next(here, {}), 20u);
  EXPECT_EQ(Next(here, Steps({{10, kComplete}})), 20u);
  EXPECT_EQ(Next(here, Steps({{20, kComplete}})), std::nullopt);
}

TEST(NextToMirror, NothingWhereNothingIsCompleteOrTheMirrorIsAhead) {
  EXPECT_EQ(Next({}, {}), std::nullopt);
  EXPECT_EQ(Next(Steps({{10, kPartial}}), {}), std::nullopt);
  EXPECT_EQ(Next(Steps({{10, kComplete}}), Steps({{30, kComplete}})), std::nullopt);
}

TEST(NextToMirror, WhatIsKeptForEverFollowsFromTheNewestDown) {
  const auto here = Steps({{50, kComplete}, {100, kComplete}, {120, kComplete}});
  EXPECT_EQ(Next(here, {}, 50), 120u);
  EXPECT_EQ(Next(here, Steps({{120, kComplete}}), 50), 100u);
  EXPECT_EQ(Next(here, Steps({{100, kComplete}, {120, kComplete}}), 50), 50u);
  EXPECT_EQ(Next(here, Steps({{50, kComplete}, {100, kComplete}, {120, kComplete}}), 50),
            std::nullopt);
}

TEST(NextToMirror, TheFirstAfterAMultipleFollowsUnlessTheMirrorHasAnEarlierOne) {
  const auto here = Steps({{117, kComplete}, {163, kComplete}, {200, kComplete}});
  EXPECT_EQ(Next(here, Steps({{200, kComplete}}), 100), 117u);
  EXPECT_EQ(Next(here, Steps({{163, kComplete}, {200, kComplete}}), 100), 117u);
  EXPECT_EQ(Next(here, Steps({{105, kComplete}, {200, kComplete}}), 100), std::nullopt);
}

// Nothing takes the place of a manifest. What a copy that died has left is another matter.
TEST(NextToMirror, AStepThatIsDamagedThereIsNotTriedAgain) {
  const auto here = Steps({{10, kComplete}, {20, kComplete}});
  EXPECT_EQ(Next(here, Steps({{20, kDamaged}})), std::nullopt);
  EXPECT_EQ(Next(here, Steps({{20, kPartial}})), 20u);
}

}  // namespace
}  // namespace keel
