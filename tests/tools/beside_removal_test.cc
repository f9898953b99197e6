// keel ls, verify, gc, cp and pin while retention removes checkpoints: at whichever call it comes,
// what has vanished as a whole is no damage and no failure. And cp beside another cp.
#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "ckpt/retention.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tools/keel/commands.h"

namespace keel {
namespace {

class BesideRemoval : public testing::Test {
 protected:
  void Save(Files& files, uint64_t step) const {
    MemorySource source(state_.Spans());
    ASSERT_OK(SaveCheckpoint(files, PlanOf(state_, "/c", step, step, 1024), source, {}, 0));
  }

  // What `command` says of /c where a job saves step 40, and removes all that are older, at its
  // n-th call to the disk, for each n.
  void AtEveryCall(const Command& command, std::vector<std::string> arguments,
                   const std::function<void(const Outcome&)>& judge) const {
    OptionInputs inputs;
    inputs.arguments = std::move(arguments);
    const auto options = ParseOptions(command.table(), inputs);
    ASSERT_OK(options);
    for (int call = 1, strikes = 1; strikes > 0 && !HasFailure(); call += kPointStride) {
      MemoryFiles memory;
      for (const uint64_t step : {10, 20, 30}) Save(memory, step);
      FaultyFiles files(memory);
      disk_ = &memory;
      files.Plan({.kind = Fault::Kind::kAct, .at_call = call, .act = [&] {
                    Save(memory, 40);
                    ASSERT_OK(ApplyRetention(memory, "/c", {.keep_last = 1}));
                  }});
      const World world{files, RealClock(), Paint(false), false, nullptr};
      const auto outcome = command.run(world, *options);
      ASSERT_TRUE(outcome.ok()) << "call " << call << ": " << outcome.error().message;
      EXPECT_EQ(outcome->exit_code, 0) << "call " << call << ": " << outcome->text;
      judge(*outcome);
      strikes = files.strikes();
    }
  }

  mutable MemoryFiles* disk_ = nullptr;   // that of the command that ran last
  const TestState state_ = TestState::Make(1, 400);
};

TEST_F(BesideRemoval, VerifySkipsWhatWasRemovedMeanwhile) {
  int skipped = 0;
  AtEveryCall({"verify", "", 1, 1, VerifyTable, RunVerify}, {"/c"}, [&](const Outcome& outcome) {
    EXPECT_EQ(outcome.json["whole"], true);
    EXPECT_EQ(outcome.text.find("damaged"), std::string::npos) << outcome.text;
    if (!outcome.json["skipped"].empty()) ++skipped;
  });
  EXPECT_GT(skipped, 0);
}

TEST_F(BesideRemoval, LsCallsNothingDamagedAndFindsSomething) {
  AtEveryCall({"ls", "", 1, 1, LsTable, RunLs}, {"/c"}, [&](const Outcome& outcome) {
    EXPECT_FALSE(outcome.json["checkpoints"].empty());
    EXPECT_EQ(outcome.text.find("damaged"), std::string::npos) << outcome.text;
  });
}

TEST_F(BesideRemoval, GcSaysWhatSomebodyElseRemoved) {
  int gone = 0;
  AtEveryCall({"gc", "", 1, 1, GcTable, RunGc}, {"/c", "--keep", "1"}, [&](const Outcome& outcome) {
    if (outcome.text.find("gone") != std::string::npos) ++gone;
  });
  EXPECT_GT(gone, 0);
}

TEST_F(BesideRemoval, CpCopiesTheNewestThatIsThereThen) {
  int newer = 0;
  AtEveryCall({"cp", "", 2, 2, CpTable, RunCp}, {"/c", "/d"}, [&](const Outcome& outcome) {
    const uint64_t step = outcome.json["checkpoints"][0]["step"];
    EXPECT_EQ(ListSteps(*disk_, "/d")->back().step, step);
    if (step == 40) ++newer;
  });
  EXPECT_GT(newer, 0);
}

TEST_F(BesideRemoval, CpOfAllPassesOverWhatWasRemovedMeanwhile) {
  int removed = 0;
  AtEveryCall({"cp", "", 2, 2, CpTable, RunCp}, {"/c", "/d", "--all"}, [&](const Outcome& outcome) {
    size_t copied = 0;
    for (const Json& one : outcome.json["checkpoints"]) {
      if (one["copied"] == true) ++copied;
      if (one.contains("removed")) ++removed;
    }
    EXPECT_EQ(ListSteps(*disk_, "/d")->size(), copied);
    EXPECT_GT(copied, 0u);
  });
  EXPECT_GT(removed, 0);
}

TEST_F(BesideRemoval, PinPinsWhatIsThereOrSaysThatItIsNot) {
  int gone = 0;
  for (int call = 1, strikes = 1; strikes > 0 && !HasFailure(); call += kPointStride) {
    MemoryFiles memory;
    for (const uint64_t step : {10, 20}) Save(memory, step);
    FaultyFiles files(memory);
    files.Plan({.kind = Fault::Kind::kAct, .at_call = call, .act = [&] {
                  (void)ApplyRetention(memory, "/c", {.keep_last = 1});   // a pin may be half made
                }});
    OptionInputs inputs;
    inputs.arguments = {"/c@10"};
    const World world{files, RealClock(), Paint(false), false, nullptr};
    const auto outcome = RunPin(world, *ParseOptions(PinTable(), inputs));
    const auto steps = ListSteps(memory, "/c");
    ASSERT_OK(steps);
    const StepEntry& oldest = steps->front();
    const bool is_kept = oldest.step == 10 && oldest.state == StepState::kComplete;
    EXPECT_EQ(is_kept && oldest.pinned, outcome.ok()) << "call " << call;
    EXPECT_EQ(oldest.pinned, outcome.ok()) << "call " << call;
    if (!outcome.ok()) ++gone;
    strikes = files.strikes();
  }
  EXPECT_GT(gone, 0);
}

// Whichever is first, the checkpoint is there at the end, and neither has failed because of that.
TEST_F(BesideRemoval, ACopyThatAnotherCpFinishesMeanwhileIsThereAlready) {
  int already = 0;
  OptionInputs inputs;
  inputs.arguments = {"/c", "/d"};
  const auto options = ParseOptions(CpTable(), inputs);
  ASSERT_OK(options);
  for (int call = 1, strikes = 1; strikes > 0 && !HasFailure(); call += kPointStride) {
    MemoryFiles memory;
    Save(memory, 10);
    FaultyFiles files(memory);
    files.Plan({.kind = Fault::Kind::kAct, .at_call = call, .act = [&] {
                  (void)RunCp({memory, RealClock(), Paint(false), false, nullptr}, *options);
                }});
    const World world{files, RealClock(), Paint(false), false, nullptr};
    const auto outcome = RunCp(world, *options);
    ASSERT_TRUE(outcome.ok()) << "call " << call << ": " << outcome.error().message;
    EXPECT_EQ(LookAtStep(memory, "/d/step-000000010")->state, StepState::kComplete);
    if (outcome->text.find("is in /d already") != std::string::npos) ++already;
    strikes = files.strikes();
  }
  EXPECT_GT(already, 0);
}

}  // namespace
}  // namespace keel
