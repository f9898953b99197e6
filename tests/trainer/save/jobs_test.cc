// Whole jobs that are stopped, saved and gone on with: the real `keelrun` with
// tests/trainer/model_train.cc. Whatever stops a job, the same command ends with the last line of a
// run that nobody disturbed.
#include <boost/filesystem.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "base/random.h"
#include "base/text.h"
#include "ckpt/restore.h"
#include "ckpt/save.h"
#include "ckpt/tensor_source.h"
#include "tests/support/file_text.h"
#include "tests/trainer/save/saving_job.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SaveJob : public SavingJob {
 protected:
  // One byte in the middle of one of its shards.
  void Damage(uint64_t step) {
    const std::string shard = ShardIn(StepDir(step));
    std::string bytes = ReadFile(shard);
    bytes[bytes.size() / 4] ^= 1;
    WriteFile(shard, bytes);
  }
  // As an older program would have saved it: the fingerprint without options, no "config.".
  void ForgetOptions(uint64_t step) {
    const std::string dir = StepDir(step);
    const auto checkpoint = Checkpoint::Open(files_, dir);
    ASSERT_OK(checkpoint);
    SavePlan plan{folder_.File("older"), "0123456789abcdef", 0, 1,
                  (*checkpoint)->manifest().description};
    Metadata& metadata = plan.description.metadata;
    std::erase_if(metadata, [](const auto& one) { return one.first.starts_with("config."); });
    std::string words;
    for (const std::string& word : SplitList(std::get<std::string>(metadata["fingerprint"]), ' ')) {
      if (!word.starts_with("--")) words += (words.empty() ? "" : " ") + word;
    }
    metadata["fingerprint"] = words;
    std::vector<std::vector<std::byte>> bytes;
    std::vector<RestoreTarget> targets;
    for (const PlacedTensor& tensor : (*checkpoint)->layout().tensors()) {
      bytes.emplace_back(tensor.bytes);
      targets.push_back({tensor.spec, bytes.back()});
    }
    ASSERT_OK(Restore(**checkpoint, targets, {}));
    MemorySource source({bytes.begin(), bytes.end()});
    ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));
    boost::filesystem::remove_all(dir_);
    ASSERT_OK(files_.Rename(plan.root, dir_));
  }
  // Of an Endless() job that saves; it goes on from a checkpoint, once, until it is stopped.
  static void LoseItsOnlyWorker(Launched& job) {
    job.Await(" checkpoint step=");
    SignalPidIn(job.Await("^step [0-9]+ rank 0 ", 12), SIGKILL);
    job.Await("^resumed step=");
    AwaitSteps(job, 3);
    job.Signal(SIGTERM);
    EXPECT_EQ(job.ExitCode(), 75) << job.Output();
    EXPECT_EQ(job.Count("^resumed step="), 1) << job.Output();
  }
};

// --- Stop and go on ---

class Model : public SaveJob, public ::testing::WithParamInterface<const char*> {};

TEST_P(Model, StoppedEveryFewStepsAndResumedOnOtherWorkersItEndsWithTheSameLine) {
  const Words options = {"--lanes=4", "--lr=0.01", "--model", GetParam()};
  const Words endless = Saving(Joined(options, Joined(kSlow, {"--steps=1000000"})));
  const int workers[] = {2, 5, 1, 4, 3};
  const int signals[] = {SIGTERM, SIGUSR1, SIGINT};
  int64_t step = 0;
  int stops = 0;
  for (; step < 20; ++stops) {
    const auto job = Start(workers[stops % 5], endless);
    if (step > 0) job->Await("^resumed step=" + std::to_string(step) + " ");
    job->Await("^step " + std::to_string(step + 4) + " rank 0 ");
    job->Signal(signals[stops % 3]);
    ASSERT_EQ(job->ExitCode(), 75) << job->Output();
    const std::vector<uint64_t> whole = WholeSteps();
    ASSERT_FALSE(whole.empty()) << job->Output();
    ASSERT_GE(static_cast<int64_t>(whole.back()), step + 4);
    step = static_cast<int64_t>(whole.back());
  }
  EXPECT_GE(stops, 2);
  const Words to_its_end = Joined(options, {"--steps=" + std::to_string(step + 4)});
  EXPECT_EQ(LastLine(workers[stops % 5], Saving(to_its_end)), LastLine(1, to_its_end));
}

INSTANTIATE_TEST_SUITE_P(All, Model, ::testing::Values("mlp", "resnet", "gpt"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(SaveJob, AloneItExitsWith75AndGoesOn) {
  const auto job = StartAlone(Saving(Joined({"--steps=1000000"}, kSlow)));
  job->Await("^step 3 ");
  job->Signal(SIGINT);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  const std::vector<uint64_t> whole = WholeSteps();
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_GE(whole[0], 3u);
  const Words options = {"--steps=" + std::to_string(whole[0] + 4)};
  const auto again = StartAlone(Saving(options));
  EXPECT_EQ(again->ExitCode(), 0) << again->Output();
  EXPECT_EQ(again->Count("^resumed step=" + std::to_string(whole[0]) + " "), 1)
      << again->Output();
  EXPECT_EQ(LastLineOf(*again), LastLine(1, options));
}

TEST_F(SaveJob, AFinishedJobSaysItsLastLineAgain) {
  const Words options = Saving({"--steps=5"});
  const std::string line = LastLine(2, options);
  EXPECT_THAT(WholeSteps(), ElementsAre(5));
  const auto again = Start(3, options);
  EXPECT_EQ(again->ExitCode(), 0) << again->Output();
  EXPECT_EQ(again->Count("^step "), 0);
  EXPECT_EQ(LastLineOf(*again), line);
}

TEST_F(SaveJob, MoreStepsMayBeAskedForLater) {
  (void)LastLine(2, Saving({"--steps=5"}));
  EXPECT_EQ(LastLine(3, Saving({"--steps=9"})), LastLine(1, {"--steps=9"}));
}

TEST_F(SaveJob, WithoutADirectoryNothingIsWrittenAndAStopIsUnsaved) {
  const auto job = Start(2, Joined({"--steps=1000000"}, kSlow));
  job->Await("^step 3 rank 0 ");
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
  EXPECT_FALSE(boost::filesystem::exists(dir_));
}

TEST_F(SaveJob, AWorkerThatIsToldToStopLeavesAndTheOthersGoOn) {
  const auto job = Start(3, Saving(Endless({})));
  SignalPidIn(job->Await("^step 4 rank 1 "), SIGTERM);
  job->Await("^step [0-9]+ rank 0 of 2 ", 3);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_GE(WholeSteps().size(), 2u) << "of the worker's stop and of the job's";
  ExpectSameEnd();
}

TEST_F(SaveJob, WhenAllWorkersAreToldToStopOneByOneTheJobHasStopped) {
  const auto job = Start(2, Saving(Joined({"--steps=1000000"}, kSlow)));
  SignalPidIn(job->Await("^step 3 rank 1 of 2 "), SIGTERM);
  SignalPidIn(job->Await("^step [0-9]+ rank 0 of 1 "), SIGUSR1);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
}

TEST_F(SaveJob, OneHostThatIsStoppedHasSavedAndTheOtherGoesOn) {
  const Words slow = Saving(Endless({"--pause=50ms", "--keep=1000"}));
  const auto first = StartHost(2, slow);
  first->Await("^step 2 rank 0 ");
  // What shapes no result may be different there; the checkpoint still says one thing.
  const auto second = StartHost(2, Joined(slow, {"--log-every=7"}));
  second->Await("^step [0-9]+ rank [23] of 4 ", 4);
  second->Signal(SIGTERM);
  EXPECT_EQ(second->ExitCode(), 75) << second->Output();
  EXPECT_FALSE(WholeSteps().empty());
  const int told = first->Count("^step [0-9]+ rank 0 of 2 ");
  first->Await("^step [0-9]+ rank 0 of 2 ", told + 2);
  first->Signal(SIGTERM);
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  EXPECT_GE(WholeSteps().size(), 2u);
  ExpectSameEnd();
}

TEST_F(SaveJob, AStopBesideAKilledWorkerIsSavedAllTheSame) {
  const uint64_t seed = EntropySeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 4; ++round) {
    const auto job = Start(3, Saving(Endless({"--pause=10ms"})), {"--max-restarts=5"});
    const std::string rank = std::to_string(random.Uniform(3));
    const std::string victim = job->Await("^step [0-9]+ rank " + rank + " of 3 ", 5);
    if (random.Chance(0.5)) {
      SignalPidIn(victim, SIGKILL);
      job->Signal(SIGTERM);
    } else {
      job->Signal(SIGTERM);
      SignalPidIn(victim, SIGKILL);
    }
    ASSERT_EQ(job->ExitCode(), 75) << job->Output();
  }
  ExpectSameEnd();
}

// --- Saves beside training ---

TEST_F(SaveJob, SavesBesideTrainingLeaveTheBitsAndOnlyTheNewestStay) {
  const Words options = {"--steps=30", "--model=resnet", "--lanes=3"};
  const auto job =
      Start(3, Saving(Joined(options, {"--save-every=5", "--keep=2", "--pause=60ms"})));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, options));
  // The last one, and the newest of those made on the way. That one need not be of a fifth step:
  // where a disk is slower than five steps, a save falls due beside another one and begins late.
  const std::vector<uint64_t> whole = WholeSteps();
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[1], 30u);
  const int made = job->Count(" checkpoint step=");
  ASSERT_GE(made, 3) << job->Output();
  EXPECT_THAT(job->Await(" checkpoint step=", made - 1),
              HasSubstr(" step=" + std::to_string(whole[0]) + " "));
}

TEST_F(SaveJob, TheLauncherCanBeAskedForACheckpoint) {
  const auto job = Start(2, Saving(Joined({"--steps=1000000"}, kSlow)));
  job->Await("^step 3 rank 0 ");
  job->Signal(SIGUSR2);
  job->Await(" checkpoint step=");
  EXPECT_EQ(WholeSteps().size(), 1u);
  const int told = job->Count("^step [0-9]+ rank 0 ");
  job->Await("^step [0-9]+ rank 0 ", told + 2);
  job->Kill();
}

TEST_F(SaveJob, TheClockAsksForCheckpoints) {
  const auto job = Start(2, Saving(Endless({"--save-minutes=0.002", "--keep=1000000"})));
  job->Await(" checkpoint step=", 2);
  EXPECT_GE(WholeSteps().size(), 2u);
  job->Kill();
}

TEST_F(SaveJob, WorkersKilledWhileTheySaveLeaveWholeCheckpointsAndTheSameBits) {
  const Words options = {"--lanes=3", "--model=resnet"};
  const auto job = Start(3, Saving(Joined(options, {"--steps=1000000", "--pause=30ms",
                                                    "--save-every=1", "--keep=1000000"})),
                         {"--max-restarts=20"});
  for (const int rank : {1, 0, 2}) {
    const std::string says = "^step [0-9]+ rank " + std::to_string(rank) + " of 3 ";
    SignalPidIn(job->Await(says, job->Count(says) + 3), SIGKILL);
  }
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  const auto entries = ListSteps(files_, dir_);
  ASSERT_OK(entries);
  size_t complete = 0;
  for (const StepEntry& entry : *entries) {
    EXPECT_NE(entry.state, StepState::kDamaged) << entry.dir << ": " << entry.reason;
    complete += entry.state == StepState::kComplete ? 1 : 0;
  }
  EXPECT_GE(complete, 2u);
  EXPECT_EQ(WholeSteps().size(), complete);
  ExpectSameEnd(options);
}

TEST_F(SaveJob, AJobWhoseWorkersAllDiedGoesOnFromItsLastCheckpoint) {
  const auto job = Start(1, Saving(Endless({"--save-every=4"})), {"--max-restarts=3"});
  LoseItsOnlyWorker(*job);
  ExpectSameEnd();
}

// What the command forbids is to go on with another job's checkpoints, not with its own.
TEST_F(SaveJob, ThatHoldsWhereItWasToldToBeginAnew) {
  const Words anew = Saving(Endless({"--save-every=4", "--no-resume"}));
  const auto job = Start(1, anew, {"--max-restarts=3"});
  LoseItsOnlyWorker(*job);
  ExpectSameEnd();
  EXPECT_EQ(Start(1, anew)->ExitCode(), 78) << "of another job";
}

TEST_F(SaveJob, ASaveThatFailsIsLoudAndTrainingGoesOn) {
  boost::filesystem::create_directory(dir_);
  WriteFile(dir_ + "/step-000000004", "in the way");
  const auto job = Start(2, Saving(Endless({"--save-every=4", "--keep=1000000"})));
  job->Await("save-failed .*step=4 .*step-000000004");
  AwaitCheckpoints(*job, 1);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_THAT(WholeSteps(), AllOf(Not(Contains(4)), Not(IsEmpty())));
  ExpectSameEnd();
}

TEST_F(SaveJob, ADirectoryThatGoesAwayCostsOnlyItsCheckpoints) {
  const auto job = Start(2, Saving(Endless({"--save-every=4"})));
  job->Await(" checkpoint step=4 ");
  // In one go: else a save under way could put something into what is being emptied.
  const std::string gone = dir_ + "-gone";
  ASSERT_OK(files_.Rename(dir_, gone));
  boost::filesystem::remove_all(gone);
  AwaitSteps(*job, 3);
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectSameEnd();
}

// --- What a job begins with ---

TEST_F(SaveJob, ADamagedNewestCheckpointIsPassedOverLoudlyAndPutAside) {
  (void)LastLine(2, Saving({"--steps=6"}));
  (void)LastLine(2, Saving({"--steps=9"}));
  Damage(9);
  const auto strict = Start(1, Saving({"--steps=12", "--strict"}));
  EXPECT_EQ(strict->ExitCode(), 78) << strict->Output();
  EXPECT_THAT(strict->Output(), AllOf(HasSubstr("--strict"), HasSubstr("step-000000009")));
  const auto job = Start(3, Saving({"--steps=9"}));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("checkpoint-passed-over .*step-000000009"), 1) << job->Output();
  EXPECT_EQ(job->Count("checkpoint-put-aside .*step-000000009.damaged-"), 1) << job->Output();
  EXPECT_EQ(job->Count("^resumed step=6 "), 1) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=9"}));
  EXPECT_THAT(WholeSteps(), ElementsAre(6, 9)) << "saved once more";
}

TEST_F(SaveJob, WhereAllAreDamagedItIsRefused) {
  (void)LastLine(1, Saving({"--steps=3"}));
  Damage(3);
  const auto job = Start(2, Saving({"--steps=6"}));
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("keel repair"));
}

TEST_F(SaveJob, GarbageInTheDirectoryIsNobodysCheckpoint) {
  boost::filesystem::create_directories(dir_ + "/step-000000077");
  WriteFile(dir_ + "/step-000000077/notes.txt", "mine");
  WriteFile(dir_ + "/step-x", "mine");
  EXPECT_EQ(LastLine(2, Saving({"--steps=4"})), LastLine(1, {"--steps=4"}));
  EXPECT_EQ(ReadFile(dir_ + "/step-000000077/notes.txt"), "mine");
}

struct Other {
  const char* name;   // of the test
  Words options;
  std::vector<const char*> says;
  friend void PrintTo(const Other& other, std::ostream* out) { *out << other.name; }
};

class OtherJobs : public SaveJob, public ::testing::WithParamInterface<Other> {};

TEST_P(OtherJobs, CheckpointIsRefusedWithAListAndLeftAlone) {
  (void)LastLine(1, Saving({"--steps=3"}));
  const auto job = Start(2, Saving(Joined({"--steps=6"}, GetParam().options)));
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  for (const char* text : GetParam().says) EXPECT_THAT(job->Output(), HasSubstr(text));
  EXPECT_THAT(WholeSteps(), ElementsAre(3));
  const auto alone = StartAlone(Saving(Joined({"--steps=6"}, GetParam().options)));
  EXPECT_EQ(alone->ExitCode(), 78) << alone->Output();
}

INSTANTIATE_TEST_SUITE_P(
    All, OtherJobs,
    ::testing::Values(
        Other{"Lanes", {"--lanes=9"}, {"lanes is 9 in this job and 8 in the checkpoint"}},
        Other{"Batch", {"--lane-batch=5"}, {"lane_batch is 5 in this job and 4"}},
        Other{"Seed", {"--seed=1"}, {"seed is 1 in this job and 0"}},
        Other{"Dataset", {"--samples=101"}, {"samples is 101 in this job and 100"}},
        Other{"Model", {"--model=gpt"}, {"is not in the checkpoint", "is not of this job"}},
        Other{"Optimizer", {"--optimizer=sgd"}, {"tensor optimizer."}},
        Other{"OwnOption", {"--heads=4"}, {"--heads is 4 in this job and 2 in the checkpoint",
                                           "--allow-inexact"}},
        Other{"Rate", {"--lr=0.0010001"}, {"rate is 0.0010001 in this job and 0.001000"}},
        Other{"Several", {"--lanes=9", "--seed=1"}, {"lanes is 9", "seed is 1"}},
        Other{"Numerics", {"--threads=2"}, {"threads is 2 in this job and 1", "--allow-inexact"}},
        Other{"FewerSteps", {"--steps=2"}, {"at step 3, beyond the last one"}},
        Other{"NoResume", {"--no-resume"}, {"holds checkpoints up to step 3"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(SaveJob, OtherNumericsMayBeAllowedAndAreNoted) {
  (void)LastLine(1, Saving({"--steps=3"}));
  const auto job = Start(2, Saving({"--steps=6", "--threads=2", "--allow-inexact"}));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files_, StepDir(6)));
  const Metadata& metadata = checkpoint->manifest().description.metadata;
  ASSERT_EQ(metadata.count("inexact_since"), 1u);
  EXPECT_EQ(metadata.at("inexact_since"), MetadataValue(int64_t{3}));
}

// --- Its options ---

TEST_F(SaveJob, AnotherModelOfTheSameTensorsIsRefused) {
  const Words gpt = {"--model=gpt", "--steps=3"};
  (void)LastLine(2, Saving(gpt));
  const auto job = StartAlone(Saving(Joined(gpt, {"--heads=4"})));
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("--heads is 4 in this job and 2 in the checkpoint"));
  const auto allowed = StartAlone(Saving(Joined(gpt, {"--heads=4", "--allow-inexact"})));
  EXPECT_EQ(allowed->ExitCode(), 0) << allowed->Output();
  EXPECT_EQ(allowed->Count("config-changed option=heads was=2 now=4 by=\"command line\""), 1)
      << allowed->Output();
  // Weights alone may be wanted for another model, but hardly by chance.
  const auto begun = StartAlone(Joined(gpt, {"--heads=8", "--init-from", dir_ + "@3"}));
  EXPECT_EQ(begun->ExitCode(), 0) << begun->Output();
  EXPECT_EQ(begun->Count("weights-of-another-option option=heads was=2 now=8 "), 1)
      << begun->Output();
}

TEST_F(SaveJob, ACheckpointHoldsTheOptionsAndWhoGoesOnTellsWhichHaveChanged) {
  const std::string file = folder_.File("run.toml");
  WriteFile(file, "lr = 0.01\nlanes = 4   # a comment\nsave_every = 2\n");
  // Any bytes may be in the name of a file; a checkpoint holds text.
  const std::string log = folder_.File("a b\xff.jsonl");
  const Words options = {"--config", file, "--pause=1ms", "--log-jsonl", log};
  const std::string expected = LastLine(1, {"--lr=0.01", "--lanes=4", "--steps=9"});
  (void)LastLine(2, Saving(Joined(options, {"--steps=5"})));
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files_, StepDir(5)));
  const Metadata& metadata = checkpoint->manifest().description.metadata;
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"config.lr", "0.01"}, {"config.lanes", "4"}, {"config.steps", "5"},
           {"config.model", "mlp"}, {"config.pause", "1ms"}, {"config.save-every", "2"},
           {"config.log-jsonl", folder_.File("a b\\xff.jsonl")}}) {
    ASSERT_EQ(metadata.count(name), 1u) << name;
    EXPECT_EQ(metadata.at(name), MetadataValue(value)) << name;
  }
  EXPECT_EQ(metadata.count("config.help") + metadata.count("config.config"), 0u);

  WriteFile(file, "lr = 0.01\nlanes = 4\n\nsave_every = 3\n");
  const auto job = Start(3, Saving(Joined(options, {"--steps=9"})));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(LastLineOf(*job), expected);
  EXPECT_EQ(job->Count(" config-changed "), 2) << job->Output();
  EXPECT_EQ(job->Count(" config-changed option=steps was=5 now=9 by=\"command line\""), 1);
  EXPECT_EQ(job->Count(" config-changed option=save-every was=2 now=3 by=" + file + ":4"), 1)
      << job->Output();
}

TEST_F(SaveJob, ACheckpointWithoutOptionsIsGoneOnWithAndThisIsSaid) {
  const Words options = {"--steps=3"};
  (void)LastLine(1, Saving(options));
  ForgetOptions(3);
  const auto job = Start(2, Saving({"--steps=6"}));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^resumed step=3 "), 1) << job->Output();
  EXPECT_EQ(job->Count(" config-unknown .*options=model,optimizer,samples,heads "), 1)
      << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=6"}));
}

TEST_F(SaveJob, AConfigFilesMistakesAreNamedWithTheirLine) {
  const std::string file = folder_.File("run.toml");
  WriteFile(file, "steps = 3\nlanse = 4\n");
  const auto job = StartAlone({"--config", file});
  EXPECT_EQ(job->ExitCode(), 2);
  EXPECT_THAT(job->Output(),
              HasSubstr(file + ":2: unknown key 'lanse'; did you mean 'lanes'?"));
}

TEST_F(SaveJob, ItBeginsFromTheCheckpointThatItIsGiven) {
  (void)LastLine(2, Saving({"--steps=3"}));
  (void)LastLine(2, Saving({"--steps=6"}));
  const std::string other = folder_.File("other");
  const Words options = {"--steps=9", "--checkpoint-dir", other, "--resume-from", dir_ + "@3"};
  const auto job = Start(2, options);
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^resumed step=3 .*from=" + dir_), 1) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=9"}));
  // The same command again goes on with what it has made itself.
  const auto again = Start(1, options);
  EXPECT_EQ(again->ExitCode(), 0) << again->Output();
  EXPECT_EQ(again->Count("^resumed step=9 .*from=" + other), 1) << again->Output();
}

TEST_F(SaveJob, WeightsAloneMayComeFromACheckpoint) {
  const std::string line = LastLine(1, Saving({"--steps=3"}));
  const auto job = Start(2, {"--steps=3", "--init-from", dir_});
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("weights-loaded "), 1) << job->Output();
  EXPECT_EQ(job->Count("^step 1 rank 0 "), 1) << "it begins with step 0";
  const std::string other = LastLineOf(*job);
  EXPECT_NE(other, line);
  EXPECT_EQ(LastLine(1, {"--steps=3", "--init-from", dir_}), other);
}

TEST_F(SaveJob, WhatItWasToBeginFromIsToldWhereItGoesOnInstead) {
  (void)LastLine(1, Saving({"--steps=3"}));
  for (const std::string& named : {folder_.File("nothing"), dir_ + "@3"}) {
    const bool there = named == dir_ + "@3";
    const std::string other = folder_.File(there ? "there" : "missing");
    ASSERT_EQ(StartAlone({"--steps=3", "--checkpoint-dir", other})->ExitCode(), 0);
    const auto job = Start(2, {"--steps=5", "--checkpoint-dir", other, "--init-from", named});
    EXPECT_EQ(job->ExitCode(), 0) << job->Output();
    EXPECT_EQ(job->Count("^resumed step=3 "), 1) << job->Output();
    EXPECT_EQ(job->Count(" warn not-begun-from option=--init-from path=" + named + " there=" +
                         (there ? "true" : "false") + " used=" + other + "/step-000000003 "),
              1)
        << job->Output();
  }
}

TEST_F(SaveJob, ASecondJobInTheDirectoryIsRefusedWhileTheFirstLives) {
  const auto first = Start(2, Saving(Joined({"--steps=1000000"}, kSlow)));
  first->Await("^step 2 rank 0 ");
  const auto second = Start(1, Saving({"--steps=1000000"}));
  EXPECT_EQ(second->ExitCode(), 78) << second->Output();
  EXPECT_THAT(second->Output(), HasSubstr("another job saves in " + dir_));
  const int told = first->Count("^step [0-9]+ rank 0 ");
  first->Await("^step [0-9]+ rank 0 ", told + 2);
  first->Signal(SIGTERM);
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  EXPECT_EQ(Start(1, Saving({"--steps=1"}))->ExitCode(), 78) << "beyond its steps";
}

TEST_F(SaveJob, ADirectoryThatCannotBeWrittenIsRefusedBeforeTraining) {
  WriteFile(folder_.File("file"), "");
  for (const int workers : {1, 3}) {
    const auto job =
        Start(workers, {"--steps=5", "--checkpoint-dir", folder_.File("file") + "/ckpts"});
    EXPECT_EQ(job->ExitCode(), 78) << job->Output();
    EXPECT_EQ(job->Count("^step "), 0) << job->Output();
    EXPECT_THAT(job->Output(), HasSubstr(folder_.File("file")));
  }
}

// --- Two places ---

TEST_F(SaveJob, AMirrorIsAllThatALostMachineLeaves) {
  mirror_ = folder_.File("mirror");
  LoseTheDirectoryOfAMirroredJob();
}

TEST_F(SaveJob, AnotherJobMayNotMirrorToTheSamePlace) {
  mirror_ = folder_.File("mirror");
  const auto job = Start(1, Saving(Endless({"--save-every=5"})));
  job->Await(" checkpoint-mirrored step=");
  dir_ = folder_.File("others");
  const auto other = StartAlone(Saving({"--steps=5"}));
  EXPECT_EQ(other->ExitCode(), 78) << other->Output();
  EXPECT_THAT(other->Output(), HasSubstr("--checkpoint-mirror: another job saves in " + mirror_));
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
}

// --- What it began from is gone ---

// As when the job that it is of has gone on, and keeps only its newest.
TEST_F(SaveJob, ItGoesOnWhenWhatItBeganFromIsGone) {
  (void)LastLine(1, Saving({"--steps=3"}));
  const std::string from = dir_ + "@3", other = folder_.File("other");
  const auto with = [&](const char* steps) {
    return Words{steps, "--checkpoint-dir", other, "--resume-from", from};
  };
  ASSERT_EQ(StartAlone(with("--steps=5"))->ExitCode(), 0);
  boost::filesystem::remove_all(StepDir(3));
  const auto job = Start(2, with("--steps=7"));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^resumed step=5 .*from=" + other), 1) << job->Output();
  EXPECT_EQ(job->Count(" warn not-begun-from option=--resume-from path=" + from +
                       " there=false used=" + other + "/step-000000005 "),
            1)
      << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=7"}));
}

}  // namespace
}  // namespace keel
