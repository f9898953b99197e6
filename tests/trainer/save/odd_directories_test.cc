// Whole jobs that begin in a directory where something is wrong: a newest checkpoint that is
// harmed, what is no checkpoint at all, or another job. It is used as far as it is whole, or
// refused, in words; and nothing in it is lost.
#include <boost/filesystem.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>

#include "tests/support/file_text.h"
#include "tests/trainer/save/saving_job.h"

namespace keel {
namespace {

namespace fs = boost::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OddDirectory : public SavingJob {};

// --- The newest checkpoint ---

void ChangeManifest(const std::string& step_dir, const std::function<void(std::string&)>& change) {
  std::string text = ReadFile(step_dir + "/manifest.json");
  change(text);
  WriteFile(step_dir + "/manifest.json", text);
}

struct Harm {
  const char* name;   // of the test
  void (*harm)(const std::string& step_dir);
  const char* says;
  friend void PrintTo(const Harm& harm, std::ostream* out) { *out << harm.name; }
};

class Harmed : public OddDirectory, public ::testing::WithParamInterface<Harm> {};

TEST_P(Harmed, NewestIsRefusedWhereStrictAndPassedOverElsewhere) {
  (void)LastLine(2, Saving({"--steps=3"}));
  (void)LastLine(2, Saving({"--steps=5"}));
  const std::string step_dir = StepDir(5);
  GetParam().harm(step_dir);
  const auto strict = StartAlone(Saving({"--steps=7", "--strict"}));
  EXPECT_EQ(strict->ExitCode(), 78) << strict->Output();
  EXPECT_THAT(strict->Output(), AllOf(HasSubstr("--strict"), HasSubstr(step_dir),
                                      HasSubstr(GetParam().says)));
  EXPECT_EQ(strict->Count("^step "), 0) << strict->Output();
  EXPECT_TRUE(fs::exists(step_dir)) << "nothing was touched";
  const auto job = Start(2, Saving({"--steps=7"}));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("checkpoint-passed-over .*step-000000005"), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr(GetParam().says));
  EXPECT_EQ(job->Count("checkpoint-put-aside .*step-000000005.damaged-"), 1) << job->Output();
  EXPECT_EQ(job->Count("^resumed step=3 "), 1) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=7"}));
  EXPECT_THAT(WholeSteps(), ElementsAre(3, 7));
}

INSTANTIATE_TEST_SUITE_P(
    All, Harmed,
    ::testing::Values(
        Harm{"ShardCutShort",
             [](const std::string& dir) { fs::resize_file(ShardIn(dir), 1000); }, "-shard-"},
        Harm{"ShardGone", [](const std::string& dir) { fs::remove(ShardIn(dir)); }, "-shard-"},
        Harm{"ShardsFooterFlipped",
             [](const std::string& dir) {
               const std::string shard = ShardIn(dir);
               std::string bytes = ReadFile(shard);
               bytes[bytes.size() - 9] ^= 4;
               WriteFile(shard, bytes);
             },
             "-shard-"},
        Harm{"ManifestEmpty", [](const std::string& dir) { WriteFile(dir + "/manifest.json", ""); },
             "manifest.json"},
        Harm{"ManifestCutShort",
             [](const std::string& dir) {
               ChangeManifest(dir, [](std::string& text) { text.resize(text.size() / 2); });
             },
             "manifest.json"},
        Harm{"ManifestFlipped",
             [](const std::string& dir) {
               ChangeManifest(dir, [](std::string& text) { text[text.find("trail") + 12] ^= 1; });
             },
             "manifest.json"},
        Harm{"ManifestIsBytes",
             [](const std::string& dir) {
               WriteFile(dir + "/manifest.json", std::string(5000, '\xfe'));
             },
             "manifest.json"},
        Harm{"ManifestOfAnotherStep",
             [](const std::string& dir) {
               const fs::path other = fs::path(dir).parent_path() / "step-000000003/manifest.json";
               fs::copy_file(other, dir + "/manifest.json", fs::copy_options::overwrite_existing);
             },
             "step"}),
    [](const auto& info) { return std::string(info.param.name); });

// As a save that died before its commit: no harm, also where one is strict.
TEST_F(OddDirectory, WithoutAManifestANewestOneIsNone) {
  (void)LastLine(2, Saving({"--steps=3"}));
  (void)LastLine(2, Saving({"--steps=5"}));
  fs::remove(StepDir(5) + "/manifest.json");
  const auto job = Start(2, Saving({"--steps=7", "--strict"}));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("checkpoint-passed-over .*step-000000005"), 1) << job->Output();
  EXPECT_EQ(job->Count("^resumed step=3 "), 1) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=7"}));
  ExpectNoLeftoversThatGcDoesNotName();
}

// --- What is no checkpoint ---

struct Oddity {
  const char* name;   // of the test
  void (*make)(const std::string& root);
  friend void PrintTo(const Oddity& oddity, std::ostream* out) { *out << oddity.name; }
};

class Odd : public OddDirectory, public ::testing::WithParamInterface<Oddity> {};

// All below a directory, with what is in files.
std::string Contents(const std::string& root) {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const bool is_file = fs::symlink_status(entry.path()).type() == fs::regular_file;
    text += entry.path().string() + " " + (is_file ? ReadFile(entry.path().string()) : "") + "\n";
  }
  return text;
}

TEST_P(Odd, ThingsBesideCheckpointsAreLeftAlone) {
  (void)LastLine(1, Saving({"--steps=3"}));
  const std::string apart = folder_.File("apart");
  fs::create_directory(apart);
  GetParam().make(apart);
  GetParam().make(dir_);
  const auto job = Start(2, Saving({"--steps=6", "--save-every=1", "--keep=1"}));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^resumed step=3 "), 1) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=6"}));
  EXPECT_EQ(WholeSteps().back(), 6u);
  const std::string all = Contents(dir_);
  for (const auto& entry : fs::recursive_directory_iterator(apart)) {
    const std::string below = entry.path().string().substr(apart.size());
    EXPECT_THAT(all, HasSubstr(dir_ + below)) << below;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Odd,
    ::testing::Values(
        Oddity{"FileNamedAsAStep",
               [](const std::string& root) { WriteFile(root + "/step-000000900", "mine"); }},
        Oddity{"LinkToNowhere",
               [](const std::string& root) {
                 fs::create_symlink("/nowhere/at/all", root + "/step-000000900");
               }},
        Oddity{"LinkToItself",
               [](const std::string& root) {
                 fs::create_directory_symlink(".", root + "/around");
               }},
        Oddity{"StepOfNotes",
               [](const std::string& root) {
                 fs::create_directories(root + "/step-000000900/more");
                 WriteFile(root + "/step-000000900/notes.txt", "mine");
               }},
        Oddity{"NamesThatAreNoSteps",
               [](const std::string& root) {
                 for (const char* name : {"step-", "step-1", "step--00000001", "step-000000900.old",
                                          "STEP-000000900", "\xff\xfe\n*"}) {
                   fs::create_directory(root + "/" + name);
                   WriteFile(root + "/" + name + "/manifest.json", "{}");
                 }
               }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(OddDirectory, WhoseLockIsADirectoryIsRefusedBeforeTraining) {
  fs::create_directories(dir_ + "/job.lock/mine");
  for (const int workers : {1, 2}) {
    const auto job = Start(workers, Saving({"--steps=3"}));
    EXPECT_EQ(job->ExitCode(), 78) << job->Output();
    EXPECT_EQ(job->Count("^step "), 0) << job->Output();
    EXPECT_THAT(job->Output(), HasSubstr("job.lock"));
  }
}

// --- What is no directory of checkpoints ---

// What is in s3:// has tests of its own, tests/trainer/save/bucket_job_test.cc.
TEST_F(OddDirectory, OfAnotherSchemeIsRefusedAndNotMadeHere) {
  for (const char* option : {"--checkpoint-dir", "--resume-from", "--init-from"}) {
    const auto job = StartAlone({"--steps=3", std::string(option) + "=az://bucket/run"});
    EXPECT_EQ(job->ExitCode(), 2) << job->Output();
    EXPECT_THAT(job->Output(), AllOf(HasSubstr(std::string(option) + " az://bucket/run is neither"),
                                     HasSubstr("s3://BUCKET/PREFIX")));
    EXPECT_FALSE(fs::exists("gs:"));
  }
}

class NoRoot : public OddDirectory {
 protected:
  // Alone and under a launcher, before the first step, and nothing in `all` is touched.
  void ExpectRefused(const std::string& given, const std::vector<std::string>& words) {
    const std::string before = Contents(folder_.File("all"));
    for (const int workers : {0, 2}) {
      const Words options = {"--steps=7", "--checkpoint-dir", given};
      const auto job = workers == 0 ? StartAlone(options) : Start(workers, options);
      EXPECT_EQ(job->ExitCode(), 78) << job->Output();
      EXPECT_EQ(job->Count("^step "), 0) << job->Output();
      for (const std::string& word : words) EXPECT_THAT(job->Output(), HasSubstr(word));
    }
    EXPECT_EQ(Contents(folder_.File("all")), before);
  }
  void SetUp() override {
    dir_ = folder_.File("all") + "/one";
    (void)LastLine(1, Saving({"--steps=3"}));
  }
};

TEST_F(NoRoot, ACheckpointIsNoneWhetherWholeOrNot) {
  const std::string step = StepDir(3);
  for (const std::string& given : {step, step + "/"}) {
    ExpectRefused(given, {"--checkpoint-dir " + step + " is itself a checkpoint",
                          "--checkpoint-dir " + dir_ + " resumes the job",
                          "--resume-from or --init-from " + step});
  }
  const std::string aside = dir_ + "/mine";
  ASSERT_OK(files_.Rename(step, aside));
  ExpectRefused(aside, {"is itself a checkpoint", "--resume-from or --init-from " + aside});
  fs::remove(aside + "/manifest.json");
  ExpectRefused(aside, {"is the place of a single checkpoint"});
  ASSERT_OK(files_.Rename(aside, step));
  ExpectRefused(step, {"is the place of a single checkpoint",
                       "--checkpoint-dir " + dir_ + " resumes the job"});
}

TEST_F(NoRoot, AStepThatIsNotThereYetIsNone) {
  ExpectRefused(dir_ + "/step-000000009", {"is the place of a single checkpoint"});
}

TEST_F(NoRoot, AFileIsNone) {
  WriteFile(folder_.File("all") + "/file", "mine");
  ExpectRefused(folder_.File("all") + "/file", {"is a file, not a directory"});
}

TEST_F(NoRoot, ANameOfACheckpointElsewhereIsNone) {
  ExpectRefused(dir_ + "@3", {"would be a new directory beside " + dir_,
                              "--resume-from or --init-from " + dir_ + "@3"});
}

// --- Another job ---

TEST_F(OddDirectory, IsStillTheFirstJobsWhenThatHasLostItsFirstWorker) {
  const auto first = Start(2, Saving(Endless({"--save-every=2"})), {"--max-restarts=3"});
  SignalPidIn(first->Await("^step [0-9]+ rank 0 "), SIGKILL);
  first->Await(" epoch-formed epoch=2 ");
  AwaitSteps(*first, 3);
  const auto second = Start(1, Saving({"--steps=1000000"}));
  EXPECT_EQ(second->ExitCode(), 78) << second->Output();
  EXPECT_THAT(second->Output(), HasSubstr("another job saves in " + dir_));
  AwaitCheckpoints(*first, 1);
  first->Signal(SIGTERM);
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  ExpectSameEnd();
}

TEST_F(OddDirectory, HasOneJobAlsoWhenItWasRemovedAndMadeAnew) {
  const auto first = Start(2, Saving(Endless({"--save-every=2", "--keep=1000000"})));
  first->Await(" checkpoint step=");
  // In one go: else a save under way could make it anew while it is removed.
  ASSERT_OK(files_.Rename(dir_, dir_ + "-aside"));
  AwaitCheckpoints(*first, 2);
  const auto second = Start(1, Saving(Endless({})));
  EXPECT_EQ(second->ExitCode(), 78) << second->Output();
  EXPECT_THAT(second->Output(), HasSubstr("another job saves in " + dir_));
  first->Signal(SIGTERM);
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

}  // namespace
}  // namespace keel
