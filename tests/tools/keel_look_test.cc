// keel ls, inspect, verify, diff and what all commands share.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "tests/tools/keel_program.h"

namespace keel {
namespace {

bool Has(const Ran& ran, const std::string& text) {
  return ran.out.find(text) != std::string::npos;
}

class KeelLook : public KeelProgram {};

TEST_F(KeelLook, WithoutACommandTheOverviewIsAUsageError) {
  EXPECT_EQ(RunKeel("").exit_code, 2);
  EXPECT_EQ(RunKeel("--help").exit_code, 0);
  const Ran ran = RunKeel("verfy x");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(Has(ran, "verify")) << ran.out;
}

TEST_F(KeelLook, EveryCommandHasHelpWithExamplesAndExitCodes) {
  const Ran overview = RunKeel("--help");
  size_t commands = 0;
  size_t at = overview.out.find("Commands\n");
  ASSERT_NE(at, std::string::npos);
  for (at += 9; overview.out.compare(at, 2, "  ") == 0; at = overview.out.find('\n', at) + 1) {
    const std::string name = overview.out.substr(at + 2, overview.out.find(' ', at + 2) - at - 2);
    const Ran help = RunKeel(name + " --help");
    EXPECT_EQ(help.exit_code, 0) << name;
    for (const char* part : {"Examples", "Exit codes", "--[no-]json"}) {
      EXPECT_TRUE(Has(help, part)) << name << ": " << help.out;
    }
    EXPECT_EQ(RunKeel(name + " --no-such-option").exit_code, 2) << name;
    ++commands;
  }
  EXPECT_GE(commands, 4u);
}

TEST_F(KeelLook, ListsCompleteAndPartialSteps) {
  SaveStep(state_, 100);
  ASSERT_OK(files_.MakeDir(root() + "/step-000000200"));
  const Ran ran = RunKeel("ls " + root());
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(Has(ran, "100  complete  2026-11-18 ")) << ran.out;
  EXPECT_TRUE(Has(ran, "no manifest")) << ran.out;
  EXPECT_FALSE(Has(ran, "\x1b")) << "colour without a terminal";
  const Json json = KeelJson("ls " + root());
  ASSERT_EQ(json["checkpoints"].size(), 2u);
  EXPECT_EQ(json["checkpoints"][0]["state"], "complete");
  EXPECT_EQ(json["checkpoints"][1]["state"], "partial");
}

TEST_F(KeelLook, AMissingDirectoryIsAFailureInWordsAndInJson) {
  EXPECT_EQ(RunKeel("ls " + root()).exit_code, 3);
  EXPECT_TRUE(Has(RunKeel("ls --json " + root()), "\"code\": \"not-found\""));
  EXPECT_EQ(RunKeel("ls").exit_code, 2);
}

TEST_F(KeelLook, InspectShowsTensorsAndMetadata) {
  SaveStep(state_, 100);
  const Json json = KeelJson("inspect " + root() + "@100");
  EXPECT_EQ(json["tensors"].size(), state_.specs.size());
  EXPECT_EQ(json["metadata"]["cursor"], 12345);
  EXPECT_EQ(json["user"]["note"], "a \"quoted\" line");
  const Json some = KeelJson("inspect " + root() + " --tensors 'model.*'");
  EXPECT_EQ(some["tensors"].size(), 4u);
  EXPECT_EQ(RunKeel("inspect " + root() + " --tensors nothing").exit_code, 3);
  const Ran text = RunKeel("inspect " + root());
  EXPECT_TRUE(Has(text, "model.weight  f32")) << text.out;
  EXPECT_TRUE(Has(text, "\n  cursor = 12345\n")) << text.out;
}

TEST_F(KeelLook, StatsCountWhatIsThere) {
  TestState state;
  Random random(1);
  state.Add("x", Dtype::kF32, {5}, random);
  const float numbers[] = {-1, 3, 1, std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity()};
  std::memcpy(state.bytes[0].data(), numbers, sizeof numbers);
  SaveStep(state, 1);
  const Json stats = KeelJson("inspect " + root() + " --stats")["tensors"][0]["stats"];
  EXPECT_EQ(stats["min"], -1);
  EXPECT_EQ(stats["max"], 3);
  EXPECT_EQ(stats["mean"], 1);
  EXPECT_EQ(stats["nan_count"], 1);
  EXPECT_EQ(stats["inf_count"], 1);
  EXPECT_EQ(stats["histogram"], Json({1, 0, 0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST_F(KeelLook, VerifyNamesTheDamagedFrameTensorAndElements) {
  const std::string whole = SaveStep(state_, 100);
  const std::string damaged = SaveStep(state_, 200);
  EXPECT_EQ(RunKeel("verify " + root()).exit_code, 0);
  FlipByte(ShardOf(damaged), 200);
  EXPECT_EQ(RunKeel("verify " + whole).exit_code, 0);
  const Ran ran = RunKeel("verify " + root() + "@200");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(Has(ran, "frame 0 at byte 64 ('double' elements 0 to 127)")) << ran.out;
  const Json json = KeelJson("verify " + root(), 1);
  EXPECT_EQ(json["whole"], false);
  EXPECT_EQ(json["checkpoints"][0]["whole"], true);
  EXPECT_EQ(json["checkpoints"][1]["damages"][0]["hits"][0]["tensor"], "double");
}

TEST_F(KeelLook, WhatIsNotUnderstoodIsJsonTooWhereThatWasAskedFor) {
  for (const std::string arguments : {"ls --json", "ls --json --nothing x", "lss x --json",
                                      "ls --json a b", "completion fish --json", "man foo --json",
                                      "gc x --keep=none --json"}) {
    const Ran ran = RunKeel(arguments + " 2>/dev/null");
    EXPECT_EQ(ran.exit_code, 2) << arguments;
    const auto json = ParseJson(ran.out);
    ASSERT_TRUE(json.ok()) << arguments << ": " << ran.out;
    EXPECT_EQ((*json)["error"]["code"], "invalid");
    EXPECT_NE((*json)["error"]["message"], "");
  }
  EXPECT_EQ(RunKeel("ls 2>/dev/null").out, "");
}

TEST_F(KeelLook, NoCommandOffersAConfigFileThatNoneCanRead) {
  EXPECT_EQ(RunKeel("ls --print-config x").exit_code, 2);
  EXPECT_FALSE(Has(RunKeel("ls --help"), "config"));
}

TEST_F(KeelLook, LsShowsTheOneCheckpointThatIsNamed) {
  const std::string step = SaveStep(state_, 100);
  SaveStep(state_, 200);
  for (const std::string& text : {step, step + "/", root() + "@100"}) {
    const Json json = KeelJson("ls " + text);
    ASSERT_EQ(json["checkpoints"].size(), 1u) << text;
    EXPECT_EQ(json["checkpoints"][0]["step"], 100);
  }
  EXPECT_EQ(KeelJson("ls " + root() + "@latest")["checkpoints"][0]["step"], 200);
  EXPECT_EQ(RunKeel("ls " + root() + "@300").exit_code, 3);
}

TEST_F(KeelLook, VerifyDoesNotCallDamagedWhatIsNotThere) {
  SaveStep(state_, 100);
  const Ran ran = RunKeel("verify " + root() + "/step-000000200");
  EXPECT_EQ(ran.exit_code, 3) << ran.out;
  EXPECT_FALSE(Has(ran, "damaged")) << ran.out;
}

TEST_F(KeelLook, VerifyCallsAManifestDamagedWhoseShardIsGone) {
  const std::string step = SaveStep(state_, 100);
  ASSERT_OK(files_.Remove(ShardOf(step)));
  EXPECT_EQ(RunKeel("verify " + root()).exit_code, 1);
}

TEST_F(KeelLook, DiffFindsEverythingThatDiffers) {
  const std::string a = SaveStep(state_, 100);
  const std::string same = SaveStep(state_, 100, dir_.path() + "/other", 4096);
  EXPECT_EQ(RunKeel("diff " + a + " " + same).exit_code, 0) << "frames are no content";

  TestState changed = state_;
  float number;
  std::memcpy(&number, changed.bytes[0].data() + 8 * 4 * 3 + 4, 4);
  number += 0.5f;
  std::memcpy(changed.bytes[0].data() + 8 * 4 * 3 + 4, &number, 4);
  changed.specs[1].name = "renamed";
  changed.specs[4].shape = {7, 1};
  const std::string b = SaveStep(changed, 101);
  const Json json = KeelJson("diff " + a + " " + b, 1);
  EXPECT_EQ(json["added"], Json({"renamed"}));
  EXPECT_EQ(json["removed"], Json({"step"}));
  EXPECT_EQ(json["retyped"][0]["name"], "model.bias");
  EXPECT_EQ(json["changed"][0]["name"], "model.weight");
  EXPECT_EQ(json["changed"][0]["first"], Json({3, 1}));
  EXPECT_EQ(json["changed"][0]["differing"], 1);
  EXPECT_NEAR(json["changed"][0]["max"].get<double>(), 0.5, 1e-6);
  EXPECT_EQ(json["metadata"][0]["name"], "step");
}

TEST_F(KeelLook, DiffTakesTolerances) {
  TestState near = state_;
  for (size_t at = 0; at < near.bytes[0].size(); at += 4) {
    float number;
    std::memcpy(&number, near.bytes[0].data() + at, 4);
    number += 1e-4f;
    std::memcpy(near.bytes[0].data() + at, &number, 4);
  }
  const std::string both = SaveStep(state_, 1) + " " + SaveStep(near, 1, dir_.path() + "/other");
  EXPECT_EQ(RunKeel("diff " + both).exit_code, 1);
  EXPECT_EQ(RunKeel("diff --atol 1e-3 " + both).exit_code, 0);
  EXPECT_EQ(RunKeel("diff --atol 1e-5 " + both).exit_code, 1);
  EXPECT_EQ(RunKeel("diff --atol -1 " + both).exit_code, 2);
}

TEST_F(KeelLook, DiffTakesNoNumberForAnInfinity) {
  TestState grown = state_;
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(grown.bytes[0].data(), &infinity, sizeof infinity);
  const std::string a = SaveStep(state_, 1), b = SaveStep(grown, 1, dir_.path() + "/other");
  EXPECT_EQ(RunKeel("diff --rtol 1e-3 " + a + " " + b).exit_code, 1);
  EXPECT_EQ(RunKeel("diff --rtol 1e-3 " + b + " " + a).exit_code, 1);
  const Json changed = KeelJson("diff " + a + " " + b, 1)["changed"][0];
  EXPECT_EQ(changed["max"], "inf") << "a null would be less than any number";
  EXPECT_EQ(changed["mean"], "inf");
}

TEST_F(KeelLook, TheMeanOfTheLargestNumbersIsOneOfThem) {
  TestState state;
  Random random(1);
  state.Add("x", Dtype::kF64, {2}, random);
  const double numbers[] = {1.7e308, 1.7e308};
  std::memcpy(state.bytes[0].data(), numbers, sizeof numbers);
  SaveStep(state, 1);
  EXPECT_EQ(KeelJson("inspect " + root() + " --stats")["tensors"][0]["stats"]["mean"], 1.7e308);
}

TEST_F(KeelLook, VerifySaysNothingIsWholeWhereThereIsNoCheckpoint) {
  const std::string step = SaveStep(state_, 100);
  ASSERT_OK(files_.Remove(step + "/manifest.json"));
  const Ran ran = RunKeel("verify " + root());
  EXPECT_EQ(ran.exit_code, 3) << ran.out;
  EXPECT_TRUE(Has(ran, "no complete checkpoint in " + root())) << ran.out;
}

// The oldest one is the first to be copied.
TEST_F(KeelLook, CopyingAllGoesOnBehindOneThatIsDamaged) {
  FlipByte(ShardOf(SaveStep(state_, 100)), 200);
  SaveStep(state_, 200);
  const std::string to = dir_.path() + "/other";
  const Ran ran = RunKeel("cp --all " + root() + " " + to);
  EXPECT_EQ(ran.exit_code, 3) << ran.out;
  EXPECT_TRUE(Has(ran, "step-000000100 is not copied: ")) << ran.out;
  EXPECT_EQ(RunKeel("verify " + to + "@200").exit_code, 0);
}

TEST_F(KeelLook, AStepThatCannotBeListedHidesNoOther) {
  if (geteuid() == 0) GTEST_SKIP() << "root may list all";
  const std::string closed = SaveStep(state_, 100);
  SaveStep(state_, 200);
  ASSERT_EQ(chmod(closed.c_str(), 0), 0);
  const Ran ran = RunKeel("ls " + root());
  ASSERT_EQ(chmod(closed.c_str(), 0700), 0);
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  EXPECT_TRUE(Has(ran, "200")) << ran.out;
}

TEST_F(KeelLook, TheMeanOfTheLargestDifferencesIsOneOfThem) {
  TestState state;
  Random random(1);
  state.Add("x", Dtype::kF64, {2}, random);
  double numbers[] = {1.7e308, 1.7e308};
  std::memcpy(state.bytes[0].data(), numbers, sizeof numbers);
  const std::string a = SaveStep(state, 1);
  numbers[0] = numbers[1] = 0;
  std::memcpy(state.bytes[0].data(), numbers, sizeof numbers);
  const std::string b = SaveStep(state, 1, dir_.path() + "/other");
  const Json changed = KeelJson("diff " + a + " " + b, 1)["changed"][0];
  EXPECT_EQ(changed["max"], 1.7e308);
  EXPECT_EQ(changed["mean"], 1.7e308);
}

TEST_F(KeelLook, CopyingAllNamesWhatItLeavesOut) {
  ASSERT_OK(files_.Remove(ShardOf(SaveStep(state_, 100))));
  ASSERT_OK(files_.Rename(SaveStep(state_, 200), root() + "/step-000000250"));
  const std::string whole = SaveStep(state_, 300);
  ASSERT_OK(files_.Remove(SaveStep(state_, 400) + "/manifest.json"));
  const std::string to = dir_.path() + "/other";
  const Json told = KeelJson("cp --all " + root() + " " + to, 3)["checkpoints"];
  ASSERT_EQ(told.size(), 3u) << "a save that goes on, or died, is none: " << told;
  EXPECT_EQ(told[0]["step"], 100);
  EXPECT_EQ(told[0]["copied"], false);
  EXPECT_EQ(told[1]["error"], "its manifest is of step 200");
  EXPECT_EQ(told[2]["from"], whole);
  EXPECT_EQ(told[2]["copied"], true);
  const Ran again = RunKeel("cp --all " + root() + " " + to);
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_TRUE(Has(again, "step-000000250 is not copied: its manifest is of step 200"))
      << again.out;
}

TEST_F(KeelLook, AStepUnderTheNumberOfAnotherIsDamagedToAll) {
  const std::string other = root() + "/step-000000040";
  ASSERT_OK(files_.Rename(SaveStep(state_, 30), other));
  SaveStep(state_, 50);
  const std::string words = "its manifest is of step 30";
  for (const std::string& text : {root(), root() + "@40", other, other + "/"}) {
    const Ran ran = RunKeel("verify " + text);
    EXPECT_EQ(ran.exit_code, 1) << text;
    EXPECT_TRUE(Has(ran, "damaged " + other) && Has(ran, words)) << ran.out;
  }
  const std::string to = " " + dir_.path() + "/other";
  for (const std::string& command : {"inspect " + root() + "@40", "cp " + root() + "@40" + to}) {
    const Ran ran = RunKeel(command);
    EXPECT_EQ(ran.exit_code, 3) << command;
    EXPECT_TRUE(Has(ran, words)) << ran.out;
  }
  EXPECT_EQ(RunKeel("inspect " + other).exit_code, 0) << "its own directory asks for no step";
}

TEST_F(KeelLook, VerifyTellsOfAllOthersWhereOneCannotBeRead) {
  FlipByte(ShardOf(SaveStep(state_, 100)), 200);
  const std::string unread = SaveStep(state_, 200);
  const std::string shard = ShardOf(unread);
  ASSERT_OK(files_.Remove(shard));
  ASSERT_OK(files_.MakeDir(shard));   // not even root can read it
  SaveStep(state_, 300);
  const Json json = KeelJson("verify " + root(), 3);
  EXPECT_EQ(json["whole"], false);
  ASSERT_EQ(json["checkpoints"].size(), 2u) << json;
  EXPECT_EQ(json["checkpoints"][0]["whole"], false);
  EXPECT_EQ(json["checkpoints"][1]["whole"], true);
  ASSERT_EQ(json["unread"].size(), 1u);
  EXPECT_EQ(json["unread"][0]["dir"], unread);
  EXPECT_NE(json["unread"][0]["reason"].get<std::string>().find("Is a directory"),
            std::string::npos);
  const Ran ran = RunKeel("verify " + root());
  EXPECT_TRUE(Has(ran, "unread " + unread) && Has(ran, "frame 0 at byte 64")) << ran.out;
  const Ran one = RunKeel("verify --json " + unread);
  EXPECT_EQ(one.exit_code, 3);
  EXPECT_TRUE(Has(one, "\"error\"")) << "nothing else was asked for: " << one.out;
}

TEST_F(KeelLook, DiffTakesAUsersKeyForNoMetadata) {
  const auto save = [&](uint64_t step, bool has_key) {
    SavePlan plan = PlanOf(state_, root(), step, step, 1024);
    plan.description.step = 1;
    plan.root += std::to_string(step);
    plan.description.metadata["user note"] = std::string("x");
    plan.description.user.clear();
    if (has_key) plan.description.user["note"] = "x";
    MemorySource source(state_.Spans());
    const auto report = SaveCheckpoint(files_, plan, source, {}, 0);
    EXPECT_OK(report);
    return report.ok() ? report->step_dir : "";
  };
  const Json json = KeelJson("diff " + save(1, true) + " " + save(2, false), 1);
  EXPECT_EQ(json["metadata"], Json::array({{{"name", "user note"}, {"a", "x"}, {"b", nullptr}}}));
}

// A search through the others for each would take hundreds of times as long.
TEST_F(KeelLook, InspectTakesManyKeysInLinearTime) {
  SavePlan plan = PlanOf(state_, root(), 1, 1);
  for (int i = 0; i < 40'000; ++i) {
    plan.description.metadata["number-" + std::to_string(i)] = int64_t{i};
    plan.description.user["key-" + std::to_string(i)] = "text";
  }
  MemorySource source(state_.Spans());
  ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));
  const Json json = KeelJson("inspect " + root());
  EXPECT_EQ(json["user"].size(), plan.description.user.size());
  EXPECT_EQ(json["metadata"].size(), plan.description.metadata.size());
}

}  // namespace
}  // namespace keel
