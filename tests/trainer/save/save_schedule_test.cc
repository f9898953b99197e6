// When saves begin, are committed and given up, for all that members can say of theirs.
#include "trainer/save/save_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace keel {
namespace {

using testing::HasSubstr;
using enum SaveState;

std::vector<SaveVote> Votes(std::vector<SaveState> states, bool wanted = false) {
  std::vector<SaveVote> votes;
  for (const SaveState state : states) votes.push_back({state, false});
  votes.back().wanted = wanted;
  return votes;
}

TEST(SaveSchedule, BeginsEverySoManySteps) {
  for (uint64_t step = 1; step <= 12; ++step) {
    const SaveDecision decision = DecideSave(Votes({kIdle, kIdle}), step, 5);
    EXPECT_EQ(decision.action == SaveAction::kBegin, step % 5 == 0) << step;
    EXPECT_EQ(DecideSave(Votes({kIdle, kIdle}), step, 0).action, SaveAction::kNothing) << step;
  }
}

TEST(SaveSchedule, BeginsWhenOneMemberWantsIt) {
  const SaveDecision decision = DecideSave(Votes({kIdle, kIdle, kIdle}, true), 7, 0);
  EXPECT_EQ(decision.action, SaveAction::kBegin);
  EXPECT_THAT(decision.reason, HasSubstr("rank 2"));
}

TEST(SaveSchedule, WhatFallsDueMeanwhileIsOwed) {
  const SaveDecision decision = DecideSave(Votes({kDurable, kWriting}, true), 10, 5);
  EXPECT_EQ(decision.action, SaveAction::kNothing);
  EXPECT_TRUE(decision.owed);
  EXPECT_THAT(decision.reason, HasSubstr("waiting for rank 1"));
  EXPECT_FALSE(DecideSave(Votes({kDurable, kWriting}), 11, 5).owed);
}

TEST(SaveSchedule, CommitsOnlyWhatIsDurableEverywhere) {
  EXPECT_EQ(DecideSave(Votes({kDurable, kDurable, kDurable}), 6, 5).action, SaveAction::kCommit);
  EXPECT_EQ(DecideSave(Votes({kDurable, kDurable, kWriting}), 6, 5).action, SaveAction::kNothing);
}

TEST(SaveSchedule, OneFailureIsEverybodys) {
  const SaveDecision decision = DecideSave(Votes({kDurable, kFailed, kWriting, kFailed}), 6, 5);
  EXPECT_EQ(decision.action, SaveAction::kGiveUp);
  EXPECT_EQ(decision.reason, "ranks 1, 3 failed");
}

TEST(SaveSchedule, NothingBeginsWhileTheManifestIsWritten) {
  const SaveDecision decision = DecideSave(Votes({kCommitting, kIdle, kIdle}, true), 5, 5);
  EXPECT_EQ(decision.action, SaveAction::kNothing);
  EXPECT_TRUE(decision.owed);
}

// All states of three members: no rule contradicts another.
TEST(SaveSchedule, EveryCombinationHasOneAnswer) {
  for (int code = 0; code < kSaveStates * kSaveStates * kSaveStates; ++code) {
    const std::vector<SaveState> states = {
        static_cast<SaveState>(code % kSaveStates),
        static_cast<SaveState>(code / kSaveStates % kSaveStates),
        static_cast<SaveState>(code / kSaveStates / kSaveStates)};
    const std::set<SaveState> kinds(states.begin(), states.end());
    const SaveAction action = DecideSave(Votes(states, true), 10, 5).action;
    const bool all_idle = kinds == std::set{kIdle};
    const bool all_durable = kinds == std::set{kDurable};
    EXPECT_EQ(action == SaveAction::kBegin, all_idle) << code;
    EXPECT_EQ(action == SaveAction::kCommit, all_durable) << code;
    EXPECT_EQ(action == SaveAction::kGiveUp, kinds.count(kFailed) == 1) << code;
  }
}

}  // namespace
}  // namespace keel
