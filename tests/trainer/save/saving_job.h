// SavingJob: what tests of whole jobs that save share: their directory, what is whole in it, and
// what dead saves have left there.
// Promises   what counts as whole was read to the last bit.
// Threads    one.
#pragma once

#include <boost/filesystem.hpp>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "base/posix_files.h"
#include "ckpt/catalog.h"
#include "ckpt/verify.h"
#include "store/bucket_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/job_test.h"

namespace keel {

// Not too fast to be stopped in the middle.
inline const Words kSlow = {"--pause=30ms"};

// One of a checkpoint's.
inline std::string ShardIn(const std::string& step_dir) {
  PosixFiles files;
  const auto entries = files.List(step_dir);
  EXPECT_OK(entries);
  for (const DirEntry& entry : entries.ok() ? *entries : std::vector<DirEntry>()) {
    if (entry.name.ends_with(".keel")) return step_dir + "/" + entry.name;
  }
  ADD_FAILURE() << "no shard in " << step_dir;
  return "";
}

class SavingJob : public JobTest {
 protected:
  // Every one of the directory, verified to the last bit.
  std::vector<uint64_t> WholeSteps() {
    std::vector<uint64_t> steps;
    const auto entries = ListSteps(files_, dir_);
    EXPECT_OK(entries);
    if (!entries.ok()) return steps;
    for (const StepEntry& entry : *entries) {
      if (entry.state != StepState::kComplete) continue;
      const auto checkpoint = Checkpoint::Open(files_, entry.dir);
      EXPECT_OK(checkpoint);
      if (!checkpoint.ok()) continue;
      const auto damages = VerifyFrames(**checkpoint, {});
      EXPECT_OK(damages);
      if (damages.ok() && damages->empty()) steps.push_back(entry.step);
    }
    return steps;
  }
  std::string StepDir(uint64_t step) {
    const auto dir = ResolveCheckpoint(files_, dir_ + "@" + std::to_string(step));
    EXPECT_OK(dir);
    return dir.ok() ? *dir : "";
  }
  Words Saving(const Words& options) {
    const Words saving = Joined(options, {"--checkpoint-dir", dir_});
    return mirror_.empty() ? saving : Joined(saving, {"--checkpoint-mirror", mirror_});
  }

  // --- Jobs that something happens to ---

  // Goes on until it is stopped.
  static Words Endless(const Words& more) {
    return Joined({"--steps=1000000", "--lanes=4", "--pause=15ms"}, more);
  }
  // So many more from now on.
  static void AwaitSteps(Launched& job, int count) {
    const char* const made = "^step [0-9]+ rank 0 ";
    job.Await(made, job.Count(made) + count);
  }
  static void AwaitCheckpoints(Launched& job, int count) {
    job.Await(" checkpoint step=", job.Count(" checkpoint step=") + count);
  }
  // Whoever hears of the stop a step later than the others saves once more, and fails too: the
  // others have told that those who stay go on, and only the last one that it is lost.
  static void ExpectOneTellsThatItIsLost(Launched& job, const std::string& checkpoint) {
    EXPECT_EQ(job.Count("steps-unsaved steps=[0-9]+ checkpoint=" + checkpoint +
                        " note=\"these steps are lost(, unless another worker holds them)?\"$"), 1)
        << job.Output();
  }
  // One of these options that was stopped (else: an Endless() one) goes on and ends as one that
  // nobody disturbed.
  void ExpectSameEnd(const Words& of_job = {"--lanes=4"}) {
    const std::vector<uint64_t> whole = WholeSteps();
    const uint64_t from = whole.empty() ? 0 : whole.back();
    const Words options = Joined(of_job, {"--steps=" + std::to_string(from + 3)});
    const auto job = Start(2, Saving(options));
    EXPECT_EQ(job->ExitCode(), 0) << job->Output();
    EXPECT_EQ(job->Count("^resumed step=" + std::to_string(from) + " "), whole.empty() ? 0 : 1)
        << job->Output();
    EXPECT_EQ(LastLineOf(*job), LastLine(1, options));
  }
  // `keel gc` names every directory that is not whole, and when it has removed those, and what dead
  // saves have left in whole ones, nothing but whole checkpoints is there.
  void ExpectNoLeftoversThatGcDoesNotName() {
    const auto entries = ListSteps(files_, dir_);
    ASSERT_OK(entries);
    Launched gc(folder_, "gc",
                Launched::Command{{KEEL_BIN_DIR "/keel", "gc", dir_, "--keep=1000000",
                                   "--partial=all"}});
    ASSERT_EQ(gc.ExitCode(), 0) << gc.Output();
    for (const StepEntry& entry : *entries) {
      if (entry.state == StepState::kComplete) continue;
      EXPECT_EQ(gc.Count("^ *" + std::to_string(entry.step) + " +removed "), 1) << gc.Output();
    }
    ASSERT_OK_AND_ASSIGN(const auto left, files_.List(dir_));
    for (const DirEntry& entry : left) {
      if (entry.kind == FileKind::kDirectory) {
        ExpectOnlyItsOwn(dir_ + "/" + entry.name);
      } else {
        EXPECT_TRUE(entry.name.starts_with("job") || entry.name == "single-save.lock")
            << entry.name;
      }
    }
  }

  // A job that is mirrored loses a worker, is stopped, and then the machine that it saved on. It
  // goes on from the mirror alone.
  void LoseTheDirectoryOfAMirroredJob() {
    const auto job =
        Start(2, Saving(Endless({"--save-every=5", "--keep=2"})), {"--max-restarts=1"});
    job->Await(" checkpoint-mirrored step=");
    SignalPidIn(job->Await("^step [0-9]+ rank 0 "), SIGKILL);
    job->Await(" checkpoint-mirrored step=", job->Count(" checkpoint-mirrored step=") + 2);
    job->Signal(SIGTERM);
    EXPECT_EQ(job->ExitCode(), 75) << job->Output();
    const std::vector<uint64_t> here = WholeSteps();
    ASSERT_FALSE(here.empty());
    boost::filesystem::remove_all(dir_);
    const auto there = NewestComplete(files_, mirror_);
    ASSERT_OK(there);
    EXPECT_EQ(there->step, here.back()) << "a stop counts once the mirror has it";
    const Words options = {"--lanes=4", "--steps=" + std::to_string(here.back() + 3)};
    const auto further = Start(1, Saving(options));
    EXPECT_EQ(further->ExitCode(), 0) << further->Output();
    EXPECT_EQ(further->Count("^resumed step=" + std::to_string(here.back()) + " .*from=" +
                             mirror_ + "/"), 1) << further->Output();
    EXPECT_EQ(LastLineOf(*further), LastLine(1, options));
    EXPECT_EQ(NewestComplete(files_, mirror_)->step, here.back() + 3);
  }

  std::string dir_ = folder_.File("ckpts");   // or in a bucket
  std::string mirror_ = {};                   // where it is copied to; empty: nowhere
  PosixFiles disk_;
  BucketFiles files_{disk_};

 private:
  void ExpectOnlyItsOwn(const std::string& step_dir) {
    const auto manifest = ReadManifest(files_, step_dir);
    ASSERT_OK(manifest);
    ASSERT_OK_AND_ASSIGN(const auto files, files_.List(step_dir));
    for (const DirEntry& file : files) {
      EXPECT_TRUE(file.name == "manifest.json" || file.name == "commit.lock" ||
                  file.name.starts_with(manifest->attempt))
          << step_dir << "/" << file.name;
    }
  }
};

}  // namespace keel
