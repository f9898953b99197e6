// Whole jobs that save in a bucket of a real server: the real `keelrun` with
// tests/trainer/model_train.cc. No two hosts of them share a directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/random.h"
#include "tests/store/s3/weed.h"
#include "tests/trainer/save/saving_job.h"

namespace keel {
namespace {

using testing::HasSubstr;

class BucketJob : public SavingJob {
 protected:
  void SetUp() override {
    const std::string why = WhyNoWeed();
    if (!why.empty()) GTEST_SKIP() << "there is no SeaweedFS: " << why;
    server_ = std::make_unique<WeedServer>();
    // For the programs as for this one.
    for (const auto& [name, value] : server_->environment()) setenv(name.c_str(), value.c_str(), 1);
    bucket_ = server_->Open("checkpoints");
    dir_ = "s3://checkpoints/run";
  }
  std::unique_ptr<WeedServer> server_;
  std::unique_ptr<S3Objects> bucket_;
};

TEST_F(BucketJob, AStopIsSavedAndAnotherNumberOfWorkersGoesOn) {
  const auto job = Start(2, Saving(Endless({"--save-every=5", "--keep=2"})));
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  EXPECT_LE(WholeSteps().size(), 2u);
  ExpectSameEnd();
  EXPECT_TRUE(bucket_->Unfinished("")->empty());
}

// Launcher and workers die together; the same command takes their place at once on their machine.
TEST_F(BucketJob, KilledAtAnyMomentItGoesOnWithTheSameBits) {
  Random random(EntropySeed());
  const Words options = Endless({"--save-every=2", "--model=resnet"});
  for (int round = 0; round < 4; ++round) {
    const auto job = Start(2, Saving(options));
    AwaitSteps(*job, 2 + static_cast<int>(random.Uniform(6)));
    SignalPidIn(job->Await("^step [0-9]+ rank 0 "), SIGKILL);
    RealClock().SleepFor(std::chrono::milliseconds(random.Uniform(80)));
    job->Kill();
  }
  ExpectSameEnd({"--lanes=4", "--model=resnet"});
}

TEST_F(BucketJob, HostsThatShareNoDirectoryLoseOneAndGoOn) {
  const Words slow = Saving(Endless({"--save-every=4", "--pause=40ms"}));
  const auto first = StartHost(1, slow);
  first->Await("^step 2 rank 0 ");
  const auto second = StartHost(1, slow);
  second->Await("^step [0-9]+ rank 1 of 2 ", 3);
  AwaitCheckpoints(*first, 1);
  SignalPidIn(second->Await("^step [0-9]+ rank 1 of 2 "), SIGKILL);
  second->Kill();
  first->Await("^step [0-9]+ rank 0 of 1 ", first->Count("^step [0-9]+ rank 0 of 1 ") + 3);
  AwaitCheckpoints(*first, 1);
  first->Signal(SIGTERM);
  EXPECT_EQ(first->ExitCode(), 75) << first->Output();
  EXPECT_EQ(first->Count("save-failed|cannot-save"), 0) << first->Output();
  ExpectSameEnd();
}

// Nothing is shared but the bucket, and neither host is special: the one that coordinates dies.
TEST_F(BucketJob, HostsMeetThereAndOneOfTwoGoesOnByItsLease) {
  const auto start = [&](const Words& options) {
    return Launch(Joined({"--rdzv-backend=s3", "--rdzv-endpoint=s3://checkpoints/leases",
                          "--rdzv-id=job", "--nnodes=1:2", "--nproc-per-node=1",
                          "--rdzv-conf=last_call_timeout=0.2", kProgram}, options));
  };
  const Words slow = Saving(Endless({"--save-every=10", "--pause=40ms"}));
  const auto first = start(slow);
  first->Await("^step 2 rank 0 ");
  const auto second = start(slow);
  first->Await(" caught-up ");   // before, only the first one has the state
  const std::string both = second->Await("^step [0-9]+ rank 1 of 2 ", 3);
  SignalPidIn(first->Await("^step [0-9]+ rank 0 of 2 "), SIGKILL);
  first->Kill();
  second->Await("^step [0-9]+ rank 0 of 1 ", 3);
  AwaitCheckpoints(*second, 1);
  second->Signal(SIGTERM);
  EXPECT_EQ(second->ExitCode(), 75) << second->Output();
  EXPECT_GT(NumberAfter(second->Await("^step [0-9]+ rank 0 of 1 "), "step"),
            NumberAfter(both, "step"));
  ExpectSameEnd();
}

TEST_F(BucketJob, AnotherJobIsRefusedWhileOneSavesThere) {
  const auto job = Start(1, Saving(Endless({})));
  AwaitSteps(*job, 2);
  const auto other = StartAlone(Saving({"--steps=5"}));
  EXPECT_EQ(other->ExitCode(), 78) << other->Output();
  EXPECT_THAT(other->Output(), HasSubstr("another job saves in s3://checkpoints/run"));
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
}

// A store that is gone costs saves, not steps.
TEST_F(BucketJob, TrainingGoesOnWithoutTheServerAndSavesOnceItIsBack) {
  const auto job = Start(2, Saving(Endless({"--save-every=3"})));
  AwaitCheckpoints(*job, 1);
  server_->Kill();
  AwaitSteps(*job, 60);
  EXPECT_FALSE(job->Output().empty());
  server_->Restart();
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectSameEnd();
}

// Nothing was refused, so its workers are started again until the store is there.
TEST_F(BucketJob, BeginsOnceTheServerIsThere) {
  server_->Kill();
  const auto job = Launch(Joined({"--standalone", "--nproc-per-node=2", "--max-restarts=100",
                                  kProgram}, Saving({"--steps=3"})));
  job->Await("worker-died .*exited with 1: .*s3://checkpoints/run: .* cannot be reached");
  server_->Restart();
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(NewestComplete(files_, dir_)->step, 3u);
}

// What it puts there to try it is removed.
TEST_F(BucketJob, TheDoctorLooksAtThePlace) {
  const Words command = Joined({"--doctor", "--standalone", "--nproc-per-node=1", kProgram},
                               Saving({}));
  const auto well = Launch(command);
  (void)well->ExitCode();   // of other checks, such as whether this machine has a network
  EXPECT_GE(well->Count("^(OK|WARN) +bucket "), 1) << well->Output();
  EXPECT_EQ(well->Count("^FAIL bucket "), 0) << well->Output();
  EXPECT_TRUE(bucket_->List("run/", Objects::Depth::kAll)->objects.empty());
  server_->Kill();
  const auto gone = Launch(command);
  EXPECT_EQ(gone->ExitCode(), 1) << gone->Output();
  EXPECT_EQ(gone->Count("^FAIL bucket +s3://checkpoints/run cannot be used: "), 1)
      << gone->Output();
}

// tests/s3.sh, by which users try buckets of their own.
TEST_F(BucketJob, TheScriptForRealBucketsFindsAllWell) {
  if (access(KEEL_BIN_DIR "/minimal_train", X_OK) != 0) GTEST_SKIP() << "no examples were built";
  // An empty AWS_CA_BUNDLE, which is none for others, is an error for boto3.
  Launched script(folder_, "s3.sh",
                  Launched::Command{{"env", "-u", "AWS_CA_BUNDLE", KEEL_SOURCE_DIR "/tests/s3.sh",
                                     "--build", KEEL_BIN_DIR "/..", "s3://checkpoints/try"}});
  EXPECT_EQ(script.ExitCode(), 0) << script.Output();
  EXPECT_EQ(script.Count("^s3.sh: all is well"), 1) << script.Output();
  EXPECT_EQ(script.Count("^s3.sh: .*: the same bits$"), 2) << script.Output();
}

// --- As a mirror of a directory ---

TEST_F(BucketJob, AMirrorThereIsAllThatALostMachineLeaves) {
  mirror_ = dir_;
  dir_ = folder_.File("ckpts");
  LoseTheDirectoryOfAMirroredJob();
}

TEST_F(BucketJob, AStopThatTheMirrorDoesNotHaveIsNotSaved) {
  mirror_ = dir_;
  dir_ = folder_.File("ckpts");
  const auto job = Launch(Joined({"--standalone", "--nproc-per-node=2", "--shutdown-timeout=20",
                                  kProgram},
                                 Saving(Endless({"--save-every=5"}))));
  job->Await(" checkpoint-mirrored step=");
  server_->Kill();
  AwaitCheckpoints(*job, 3);
  AwaitSteps(*job, 10);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
  EXPECT_GE(job->Count("save-failed .*but not in s3://checkpoints/run"), 1) << job->Output();
  // The directory is still there, and so it goes on from that, and mirrors what is missing.
  server_->Restart();
  const uint64_t saved = NewestComplete(files_, dir_)->step;
  const Words options = {"--lanes=4", "--steps=" + std::to_string(saved + 2)};
  const auto further = Start(2, Saving(options));
  EXPECT_EQ(further->ExitCode(), 0) << further->Output();
  EXPECT_EQ(further->Count("^resumed step=" + std::to_string(saved) + " "), 1);
  EXPECT_EQ(LastLineOf(*further), LastLine(1, options));
  EXPECT_EQ(NewestComplete(files_, mirror_)->step, saved + 2);
}

// Beginning anew would leave behind what nobody can see now.
TEST_F(BucketJob, AMirrorThatDoesNotAnswerIsNotTakenForAnEmptyOne) {
  mirror_ = dir_;
  dir_ = folder_.File("ckpts");
  server_->Kill();
  const auto job = Start(1, Saving({"--steps=3"}));
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("what --checkpoint-mirror s3://checkpoints/run holds is not "
                                       "known"));
}

}  // namespace
}  // namespace keel
