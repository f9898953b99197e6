// Whole jobs whose disk fails, waits, or whose workers die in the middle of a save: the real
// `keelrun`, and a program whose calls to the disk are rigged (tests/trainer/rigged_disk.cc).
// Whatever happens, older checkpoints stay whole, training goes on, and the bits are the same.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/file_text.h"
#include "tests/trainer/save/saving_job.h"

namespace keel {
namespace {

// Often, and all of them stay.
const Words kOften = {"--save-every=2", "--keep=1000000"};

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class RiggedJob : public SavingJob {
 protected:
  void SetUp() override { ASSERT_EQ(setenv("KEEL_RIGGED_DISK", rules_.c_str(), 1), 0); }

  // From the next call on. At once, not piece by piece.
  void Rig(const Words& rules) {
    std::string text;
    for (const std::string& rule : rules) text += rule + "\n";
    WriteFile(rules_ + ".new", text);
    EXPECT_OK(files_.Rename(rules_ + ".new", rules_));
  }
  // Calls that match wait until Release().
  void Hold(const std::string& rule) {
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
    Rig({rule + " hold:" + fifo_});
  }
  // Those that wait, and all to come. Somebody must be known to wait.
  void Release() {
    Rig({});
    const int end = open(fifo_.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(end, 0);
    close(end);
  }

  const std::string rules_ = folder_.File("rules");
  const std::string fifo_ = folder_.File("fifo");
};

// --- Errors ---

struct Fault {
  const char* name;   // of the test
  Words rules;
  const char* says;
  Words options = kOften;
  friend void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }
};

class DiskFaults : public RiggedJob, public ::testing::WithParamInterface<Fault> {};

TEST_P(DiskFaults, CostOnlyTheSavesThatMeetThem) {
  const auto job = Start(2, Saving(Endless(GetParam().options)));
  job->Await(" checkpoint step=");
  const bool all_stay = GetParam().options == kOften;
  const std::vector<uint64_t> before = all_stay ? WholeSteps() : std::vector<uint64_t>();
  Rig(GetParam().rules);
  job->Await(GetParam().says, 2);   // loud, and tried again
  AwaitSteps(*job, 3);
  Rig({});
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_THAT(WholeSteps(), IsSupersetOf(before));
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

// 5 is EIO, 28 ENOSPC.
INSTANTIATE_TEST_SUITE_P(
    All, DiskFaults,
    ::testing::Values(
        Fault{"NoRoomForOne", {"1 reserve *.keel 1 28"},
              "save-failed .*rank=1 .*reserve .*-shard-0001-.*No space left"},
        Fault{"WriteOfOne", {"1 write *.keel 1 5"},
              "save-failed .*rank=1 .*write .*-shard-0001-.*Input/output error"},
        Fault{"SyncOfOne", {"0 sync *.keel 1 5"},
              "save-failed .*rank=0 .*sync .*-shard-0000-.*Input/output error"},
        Fault{"SyncOfAll", {"* sync *.keel 1 5"}, "save-failed .*rank=1 .*Input/output error"},
        Fault{"SyncOfTheDirectory", {"* sync */step-????????? 1 5"},
              "save-failed .*sync directory .*Input/output error"},
        Fault{"ManifestsWrite", {"* write *-manifest.tmp 1 28"},
              "save-failed .*write .*-manifest.tmp: No space left"},
        Fault{"ManifestsSync", {"* sync *-manifest.tmp 1 5"},
              "save-failed .*sync .*-manifest.tmp: Input/output error"},
        Fault{"ManifestsRename", {"* rename */manifest.json 1 5"},
              "save-failed .*rename .*/manifest.json: Input/output error"},
        Fault{"RemovingOlderOnes", {"* remove *.keel 1 5"},
              "retention-failed .*remove .*.keel: Input/output error",
              {"--save-every=2", "--keep=1"}}),
    [](const auto& info) { return std::string(info.param.name); });

struct LastFault {
  const char* name;
  std::string call;   // the rule, but for whom it strikes
  char rank;
  std::string whose;  // as the end's message has it
  std::string what;
  std::string RuleFor(char who) const { return std::string(1, who) + " " + call; }
  friend void PrintTo(const LastFault& fault, std::ostream* out) { *out << fault.name; }
};

// There is no step after it that could be saved instead.
class FaultsAtTheLast : public RiggedJob, public ::testing::WithParamInterface<LastFault> {};

TEST_P(FaultsAtTheLast, TheEndIsNotCalledOne) {
  (void)LastLine(2, Saving({"--steps=4"}));
  Rig({GetParam().RuleFor(GetParam().rank)});
  const auto job = Start(2, Saving({"--steps=8"}));
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_EQ(job->Count("^final step="), 0) << job->Output();
  EXPECT_GE(job->Count("step 8 could not be saved: .*" + GetParam().whose + GetParam().what), 1)
      << job->Output();
  EXPECT_THAT(WholeSteps(), ElementsAre(4));
  ExpectNoLeftoversThatGcDoesNotName();
  Rig({});
  EXPECT_EQ(LastLine(3, Saving({"--steps=8"})), LastLine(1, {"--steps=8"}));
}

// Nobody's save may succeed, as whoever hears of the stop a step later saves once more.
TEST_P(FaultsAtTheLast, AStopIsNotCalledSaved) {
  const Words options = {"--lanes=4"};
  (void)LastLine(2, Saving(Joined(options, {"--steps=4"})));
  Rig({GetParam().RuleFor('*')});
  const auto job = Start(2, Saving(Joined(options, {"--steps=1000000", "--pause=15ms"})));
  job->Await("^step 6 rank 0 ");
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
  EXPECT_GE(job->Count("save-failed .*" + GetParam().what), 1) << job->Output();
  ExpectOneTellsThatItIsLost(*job, "4");
  EXPECT_THAT(WholeSteps(), ElementsAre(4));
  ExpectNoLeftoversThatGcDoesNotName();
  Rig({});
  ExpectSameEnd();
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultsAtTheLast,
    ::testing::Values(LastFault{"Share", "sync *.keel 1 5", '1', "rank 1 .*", "Input/output error"},
                      LastFault{"Manifest", "rename */manifest.json 1 28", '0', "",
                                "manifest.json: No space left"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(RiggedJob, AloneItSaysWithItsOwnCodesThatItIsNotSaved) {
  Rig({"0 write *.keel 1 28"});
  const auto ended = StartAlone(Saving({"--steps=4"}));
  EXPECT_EQ(ended->ExitCode(), 1) << ended->Output();
  EXPECT_THAT(ended->Output(), HasSubstr("step 4 could not be saved"));
  const auto stopped = StartAlone(Saving(Joined({"--steps=1000000"}, kSlow)));
  stopped->Await("^step 3 ");
  stopped->Signal(SIGTERM);
  EXPECT_EQ(stopped->ExitCode(), 77) << stopped->Output();
  EXPECT_EQ(stopped->Count("steps-unsaved steps=[0-9]+ checkpoint=none"), 1) << stopped->Output();
  ExpectNoLeftoversThatGcDoesNotName();
}

// --- A disk that is slower than saves fall due ---

class SlowDisk : public RiggedJob, public ::testing::WithParamInterface<const char*> {};

TEST_P(SlowDisk, HasOneSaveAtATimeAndTrainingDoesNotWait) {
  Hold(GetParam());
  const auto job = Start(2, Saving(Endless(kOften)));
  job->Await("^rigged sync ");
  AwaitSteps(*job, 10);
  EXPECT_EQ(job->Count(" save-begins "), 1) << job->Output();
  EXPECT_EQ(job->Count(" checkpoint step="), 0) << job->Output();
  ASSERT_OK_AND_ASSIGN(const auto entries, ListSteps(files_, dir_));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_TRUE(entries[0].in_progress);
  job->Await("save-late step=2 rank=[01] after=");   // a disk that hangs reports no error
  Release();
  job->Await(" checkpoint step=2 ");
  job->Await(" checkpoint step=", 2);
  EXPECT_EQ(job->Count("save-failed"), 0) << job->Output();
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

INSTANTIATE_TEST_SUITE_P(All, SlowDisk,
                         ::testing::Values("1 sync *.keel 1", "0 sync *-manifest.tmp 1"),
                         [](const auto& info) { return info.index == 0 ? "Share" : "Commit"; });

TEST_F(RiggedJob, WhatIsAskedForBesideASlowSaveIsOwed) {
  Hold("1 sync *.keel 1");
  const auto job = Start(2, Saving({"--steps=1000000", "--pause=15ms"}));
  job->Await("^step 2 rank 0 ");
  job->Signal(SIGUSR2);
  job->Await("^rigged sync ");
  const int told = job->Count(" save-wanted ");
  job->Signal(SIGUSR2);
  job->Await(" save-wanted ", told + 1);
  AwaitSteps(*job, 5);
  EXPECT_EQ(job->Count(" save-begins "), 1) << job->Output();
  Release();
  job->Await(" checkpoint step=", 2);   // no step of these would be due by itself
  EXPECT_GE(job->Count(" save-begins .*wanted by rank"), 2) << job->Output();
  job->Kill();
}

TEST_F(RiggedJob, AStopTakesThePlaceOfASlowSave) {
  Hold("1 sync *.keel 2");
  const auto job = Start(2, Saving(Endless(kOften)));
  const std::string held = job->Await("^rigged sync ");
  job->Signal(SIGTERM);
  job->Await("save-given-up .*the save of the last step takes its place");
  Release();
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ASSERT_OK_AND_ASSIGN(const auto entries, ListSteps(files_, dir_));
  EXPECT_EQ(entries.size(), WholeSteps().size());
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

TEST_F(RiggedJob, ADiskThatNeverAnswersDoesNotKeepAStoppedJob) {
  Hold("1 sync *.keel 2");
  const auto job = Start(2, Saving(Endless(kOften)), {"--shutdown-timeout=2"});
  job->Await("^rigged sync ");
  const std::vector<uint64_t> whole = WholeSteps();
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
  EXPECT_EQ(WholeSteps(), whole);
  EXPECT_EQ(whole.size(), 1u);
  Rig({});
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

TEST_F(RiggedJob, RemovingOlderOnesDoesNotCountAgainstAStop) {
  const Words options = Saving({"--lanes=4", "--keep=1"});
  (void)LastLine(2, Joined(options, {"--steps=4"}));
  Hold("0 remove *.keel 1");
  const auto job = Start(2, Joined(options, {"--steps=1000000", "--pause=15ms"}),
                         {"--shutdown-timeout=4"});
  job->Await("^step 6 rank 0 ");
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_EQ(job->Count("rigged remove "), 1) << job->Output();
  ASSERT_EQ(WholeSteps().size(), 1u);   // the older one's manifest went first
  EXPECT_GE(WholeSteps()[0], 6u);
  Rig({});
  ExpectSameEnd();
}

// Killed, it would lose all steps since the last save, and its successor would wait for that disk.
TEST_F(RiggedJob, ADiskThatAnswersLateCostsAnEndingJobNothingButTime) {
  Hold("1 sync *.keel 1");
  const auto job = Start(2, Saving({"--steps=8"}), {"--hang-limit=3"});
  job->Await("^rigged sync ");
  job->Await("save-late step=8 rank=1 after=.*the job waits for it");
  Release();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("nothing moved"), 0) << job->Output();
  EXPECT_THAT(WholeSteps(), ElementsAre(8));
}

TEST_F(RiggedJob, AWorkerLostBesideASlowSaveKeepsNobodyFromTraining) {
  Hold("1 sync *.keel 2");
  const auto job = Start(2, Saving(Endless(kOften)), {"--max-restarts=5"});
  job->Await("^rigged sync ");
  SignalPidIn(job->Await("^step [0-9]+ rank 0 "), SIGKILL);
  job->Await(" epoch-formed epoch=2 ");
  AwaitSteps(*job, 5);
  Release();
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

// --- SIGKILL at each stage of a save ---

struct Stage {
  const char* name;   // of the test
  std::string rule;   // strikes in the second save
  bool committed;     // the manifest is in its place by then
  friend void PrintTo(const Stage& stage, std::ostream* out) { *out << stage.name; }
};

class KilledAt : public RiggedJob, public ::testing::WithParamInterface<Stage> {
 protected:
  const Words saving_ = Saving(Endless({"--save-every=4", "--keep=1000000"}));
  // Of the checkpoint whose file that line names.
  static uint64_t StepIn(const std::string& line) {
    const size_t at = line.find("/step-");
    return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at + 6, nullptr, 10);
  }
};

TEST_P(KilledAt, ItsLeftoversAreNamedAndTheSameCommandGoesOn) {
  Rig({GetParam().rule});
  const auto job = Start(1, saving_);
  const uint64_t struck = StepIn(job->Await("^rigged "));
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  if (GetParam().committed) {
    EXPECT_THAT(WholeSteps(), ElementsAre(4, struck));
  } else {
    EXPECT_THAT(WholeSteps(), ElementsAre(4));
  }
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

// A save of one writer: its shard, the directory; the manifest, the lock, the directory again.
const Stage kManifestsWrite = {"ManifestsWrite", "0 write *-manifest.tmp 2 kill", false};
const Stage kManifestsRename = {"ManifestsRename", "0 rename */manifest.json 2 kill", false};
const Stage kLocksRemoval = {"LocksRemoval", "0 remove */commit.lock 2 kill", true};
const Stage kDirectorysSync = {"DirectorysSync", "0 sync */step-????????? 4 kill", true};

std::string NameOf(const ::testing::TestParamInfo<Stage>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    All, KilledAt,
    ::testing::Values(Stage{"ShardsWrite", "0 write *.keel 3 kill", false},
                      Stage{"ShardsSync", "0 sync *.keel 2 kill", false}, kManifestsWrite,
                      Stage{"ManifestsSync", "0 sync *-manifest.tmp 2 kill", false},
                      kManifestsRename, kLocksRemoval, kDirectorysSync),
    NameOf);

class StartedAgainAt : public KilledAt {};

TEST_P(StartedAgainAt, ItGoesOnFromTheNewestWholeOne) {
  Rig({GetParam().rule});
  const auto job = Start(1, saving_, {"--max-restarts=3"});
  const uint64_t struck = StepIn(job->Await("^rigged "));
  const uint64_t older = 4;   // the first one, which began when it fell due
  ASSERT_GT(struck, older) << job->Output();
  job->Await("^resumed step=" + std::to_string(GetParam().committed ? struck : older) + " ");
  AwaitCheckpoints(*job, 1);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_EQ(job->Count("^resumed step="), 1) << job->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

INSTANTIATE_TEST_SUITE_P(All, StartedAgainAt,
                         ::testing::Values(kManifestsRename, kDirectorysSync), NameOf);

class AmongOthersAt : public KilledAt {};

TEST_P(AmongOthersAt, TheOthersGoOnInPlace) {
  Rig({GetParam().rule});
  const auto job = Start(3, saving_, {"--max-restarts=3"});
  const uint64_t struck = StepIn(job->Await("^rigged "));
  job->Await(" epoch-formed epoch=2 ");
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_EQ(job->Count("^resumed step="), 0) << job->Output();
  const std::vector<uint64_t> whole = WholeSteps();
  EXPECT_THAT(whole, Contains(4));
  if (GetParam().committed) {
    EXPECT_THAT(whole, Contains(struck));
  }
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

INSTANTIATE_TEST_SUITE_P(All, AmongOthersAt,
                         ::testing::Values(kManifestsWrite, kManifestsRename, kLocksRemoval),
                         NameOf);

// --- Its directory ---

class Replaced : public RiggedJob {
 protected:
  // In one go: else a save under way could make the directory anew.
  void Swap(const std::string& other) {
    ASSERT_EQ(renameat2(AT_FDCWD, other.c_str(), AT_FDCWD, dir_.c_str(), RENAME_EXCHANGE), 0);
  }
};

TEST_F(Replaced, DirectoryByAFileIsLoudAndIsGotOver) {
  const auto job = Start(2, Saving(Endless(kOften)));
  job->Await(" checkpoint step=");
  const std::string other = folder_.File("other");
  WriteFile(other, "mine");
  Swap(other);
  job->Await("save-failed .*Not a directory", 2);
  AwaitSteps(*job, 3);
  EXPECT_EQ(ReadFile(dir_), "mine");
  Swap(other);
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

// A network file system may answer a moment later: refused, nobody would look again. 116 is ESTALE.
TEST_F(RiggedJob, ADirectoryThatDoesNotAnswerYetIsNoRefusal) {
  Rig({"* sync " + ParentDir(dir_) + " 1 116"});
  const auto job = Start(2, Saving({"--steps=8"}), {"--max-restarts=100"});
  job->Await("worker-died .*Stale file handle");
  Rig({});
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, {"--steps=8"}));
}

}  // namespace
}  // namespace keel
