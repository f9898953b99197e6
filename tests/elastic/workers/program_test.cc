// Command lines and environments of workers, by torchrun's contract. "#n" is the row of that
// contract's list.
#include "elastic/workers/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_template.h"
#include "elastic/workers/foreign_environment.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Pair;

TEST(TextTemplate, FollowsPythonsRules) {
  const std::map<std::string, std::string> values = {{"local_rank", "3"}, {"x", "$x"}};
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},                            {"plain", "plain"},
      {"--r=${local_rank}", "--r=3"},      {"$local_rank", "3"},
      {"$local_rank.log", "3.log"},        {"$local_ranks", "$local_ranks"},
      {"$LOCAL_RANK", "$LOCAL_RANK"},      {"${local_rank", "${local_rank"},
      {"$$local_rank", "$local_rank"},     {"100$", "100$"},
      {"$5", "$5"},                        {"${}", "${}"},
      {"${other} $x", "${other} $x"},      {"$$$local_rank", "$3"}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(SubstituteText(text, values), expected);
}

Result<WorkerProgram> Choose(ProgramOptions options, std::vector<std::string> words) {
  options.python = "py";
  return ChooseProgram(options, words);
}

TEST(Program, APythonScriptRunsUnbuffered) {  // #3
  EXPECT_THAT(Choose({}, {"train.py", "a", "-b"})->CommandLine(0),
              ElementsAre("py", "-u", "train.py", "a", "-b"));
  EXPECT_THAT(Choose({}, {"train"})->CommandLine(0), ElementsAre("py", "-u", "train"));
}

TEST(Program, AModuleRunsByName) {
  EXPECT_THAT(Choose({.module = true}, {"pkg.train", "a"})->CommandLine(0),
              ElementsAre("py", "-u", "-m", "pkg.train", "a"));
}

TEST(Program, WithoutPythonAProgramRunsAsItIs) {
  EXPECT_THAT(Choose({.no_python = true}, {"./train", "a"})->CommandLine(0),
              ElementsAre("./train", "a"));
  EXPECT_THAT(Choose({.is_compiled = true}, {"./train", "a"})->CommandLine(0),
              ElementsAre("./train", "a"));
}

TEST(Program, RunPathWinsOverTheOthersAndKeepsArgv) {  // #7
  const auto line =
      Choose({.module = true, .no_python = true, .run_path = true}, {"/s.py", "a"})->CommandLine(0);
  ASSERT_EQ(line.size(), 6u);
  EXPECT_THAT(line[3], HasSubstr("runpy.run_path"));
  EXPECT_EQ(line[4], "/s.py");
  EXPECT_EQ(line[5], "a");
}

TEST(Program, AModuleWithoutPythonIsAContradiction) {  // #5
  EXPECT_FALSE(Choose({.module = true, .no_python = true}, {"m"}).ok());
}

TEST(Program, WithoutAnInterpreterAScriptIsRefusedWithTheCure) {
  const auto program = ChooseProgram({}, {"train.py"});
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().message, HasSubstr("PYTHON_EXEC"));
  EXPECT_OK(ChooseProgram({.no_python = true}, {"train"}));
}

TEST(Program, LocalRankIsPutIntoArgumentsButNotIntoTheProgramsName) {
  EXPECT_THAT(Choose({.no_python = true}, {"./$local_rank", "--r=${local_rank}"})->CommandLine(2),
              ElementsAre("./$local_rank", "--r=2"));
  EXPECT_THAT(Choose({}, {"a.py", "$$local_rank"})->CommandLine(2),
              ElementsAre("py", "-u", "a.py", "$local_rank"));
}

ForeignWorker SomeWorker() {
  ForeignWorker worker;
  worker.place = {5, 8, 1, 4, "10.0.0.1", 4567};
  worker.group_rank = 1;
  worker.group_world_size = 2;
  worker.role_rank = 5;
  worker.role_world_size = 8;
  worker.role = "trainer";
  worker.restart_count = 2;
  worker.restarts_max = 3;
  worker.run_id = "jobX";
  worker.error_file = "/logs/1/error.json";
  worker.signals_to_handle = "SIGTERM,SIGINT";
  return worker;
}

TEST(ForeignEnvironment, HasAllOfTheContract) {  // #35, #43, #45, #83
  ASSERT_OK_AND_ASSIGN(const Environment made, ForeignEnvironment(SomeWorker(), {{"HOME", "/h"}}));
  const Environment expected = {{"HOME", "/h"},
                                {"RANK", "5"},
                                {"WORLD_SIZE", "8"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "10.0.0.1"},
                                {"MASTER_PORT", "4567"},
                                {"GROUP_RANK", "1"},
                                {"GROUP_WORLD_SIZE", "2"},
                                {"ROLE_RANK", "5"},
                                {"ROLE_WORLD_SIZE", "8"},
                                {"ROLE_NAME", "trainer"},
                                {"TORCHELASTIC_RESTART_COUNT", "2"},
                                {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                {"TORCHELASTIC_RUN_ID", "jobX"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                {"TORCHELASTIC_ERROR_FILE", "/logs/1/error.json"},
                                {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT"},
                                {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                {"OMP_NUM_THREADS", "1"}};
  EXPECT_EQ(made, expected);
}

TEST(ForeignEnvironment, WhatTheUserChoseStays) {  // #41
  const auto made = ForeignEnvironment(
      SomeWorker(), {{"OMP_NUM_THREADS", "6"}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}});
  EXPECT_THAT(*made, IsSupersetOf({Pair("OMP_NUM_THREADS", "6"),
                                   Pair("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")}));
}

TEST(ForeignEnvironment, ALoneWorkerKeepsItsThreads) {  // #39
  ForeignWorker worker = SomeWorker();
  worker.place = {0, 1, 0, 1, "a", 1};
  EXPECT_EQ(ForeignEnvironment(worker, {})->count("OMP_NUM_THREADS"), 0u);
}

TEST(ForeignEnvironment, TheLinkIsOursAndNeverThatOfTheLaunchersOwnSupervisor) {
  ForeignWorker worker = SomeWorker();
  EXPECT_EQ(ForeignEnvironment(worker, {{"KEEL_CONTROL_FD", "9"}})->count("KEEL_CONTROL_FD"), 0u);
  worker.control_fd = 3;
  EXPECT_EQ(ForeignEnvironment(worker, {{"KEEL_CONTROL_FD", "9"}})->at("KEEL_CONTROL_FD"), "3");
}

TEST(ForeignEnvironment, NumericNamesArePreloadedBehindWhatIsThere) {
  ForeignWorker worker = SomeWorker();
  EXPECT_EQ(ForeignEnvironment(worker, {})->count("LD_PRELOAD"), 0u);
  worker.preload = "/lib/n.so";
  const std::pair<const char*, const char*> cases[] = {{"", "/lib/n.so"},
                                                       {"/a.so", "/a.so:/lib/n.so"},
                                                       {"/lib/n.so", "/lib/n.so"},
                                                       {"/a.so /lib/n.so", "/a.so /lib/n.so"},
                                                       {"/a.so:/b.so", "/a.so:/b.so:/lib/n.so"}};
  for (const auto& [before, after] : cases) {
    EXPECT_EQ(ForeignEnvironment(worker, {{"LD_PRELOAD", before}})->at("LD_PRELOAD"), after);
  }
}

TEST(ForeignEnvironment, AVirtualLocalRankShowsOneDevice) {
  ForeignWorker worker = SomeWorker();
  worker.virtual_local_rank = true;
  EXPECT_THAT(*ForeignEnvironment(worker, {}),
              IsSupersetOf({Pair("LOCAL_RANK", "0"), Pair("CUDA_VISIBLE_DEVICES", "1")}));
  EXPECT_THAT(*ForeignEnvironment(worker, {{"CUDA_VISIBLE_DEVICES", "4, 6"}}),
              IsSupersetOf({Pair("LOCAL_RANK", "0"), Pair("CUDA_VISIBLE_DEVICES", "6")}));
  EXPECT_FALSE(ForeignEnvironment(worker, {{"CUDA_VISIBLE_DEVICES", "4"}}).ok());
  EXPECT_THAT(*ForeignEnvironment(worker, {{"CUDA_VISIBLE_DEVICES", "0"},
                                           {"HIP_VISIBLE_DEVICES", "4, 6"}}),
              IsSupersetOf({Pair("HIP_VISIBLE_DEVICES", "6"), Pair("CUDA_VISIBLE_DEVICES", "6")}));
  EXPECT_THAT(*ForeignEnvironment(worker, {{"HIP_VISIBLE_DEVICES", ""}}),
              IsSupersetOf({Pair("HIP_VISIBLE_DEVICES", ""), Pair("CUDA_VISIBLE_DEVICES", "1")}));
  EXPECT_THAT(ForeignEnvironment(worker, {{"HIP_VISIBLE_DEVICES", "4"}}).error().message,
              HasSubstr("HIP_VISIBLE_DEVICES='4' names only 1"));
}

}  // namespace
}  // namespace keel
