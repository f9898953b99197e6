// Whole jobs on disks of their own that fill up, turn read-only, refuse at the last moment or die:
// real file systems, mounted for the test alone. Needs root; skips otherwise, and says why.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file_helpers.h"
#include "tests/trainer/save/saving_job.h"

namespace keel {
namespace {

// Not so often that they fill a disk by themselves.
const Words kSometimes = {"--save-every=6", "--keep=1000000"};

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

class OwnDisk : public SavingJob {
 protected:
  void TearDown() override {
    for (; !mounted_.empty(); mounted_.pop_back()) umount2(mounted_.back().c_str(), MNT_DETACH);
  }

  // A tmpfs at the directory `path`, seen by this process and its children only. Empty, or why not.
  std::string MountTmpfs(const std::string& path, const std::string& options) {
    EXPECT_OK(MakeDirs(files_, path));
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", path.c_str(), "tmpfs", 0, options.c_str()) != 0) {
      return std::strerror(errno);
    }
    mounted_.push_back(path);
    return "";
  }
  void Grow(const std::string& path, const std::string& options) {
    ASSERT_EQ(mount("none", path.c_str(), nullptr, MS_REMOUNT, options.c_str()), 0)
        << std::strerror(errno);
  }
  // Its exit code.
  int Shell(const std::string& command) {
    Launched shell(folder_, "shell", Launched::Command{{"/bin/sh", "-c", command}});
    const int code = shell.ExitCode();
    if (code != 0) std::printf("%s: %s\n", command.c_str(), shell.Output().c_str());
    return code;
  }
  // Leaves it no room for anything.
  void Fill(const std::string& ballast) {
    const int fd = open(ballast.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    const std::string piece(4096, 'x');
    while (write(fd, piece.data(), piece.size()) > 0) {
    }
    EXPECT_EQ(errno, ENOSPC);
    close(fd);
  }
  void Empty() { ASSERT_OK(files_.Remove(ballast_)); }

  const std::string disk_ = folder_.File("disk");
  const std::string ballast_ = disk_ + "/ballast";
  std::vector<std::string> mounted_;
};

class FullDisk : public OwnDisk {
 protected:
  void SetUp() override {
    const std::string why_not = MountTmpfs(disk_, "size=32m,nr_inodes=10000");
    if (!why_not.empty()) GTEST_SKIP() << "no mounts on this machine: " << why_not;
    dir_ = disk_ + "/ckpts";
  }
};

TEST_F(FullDisk, CostsOnlyItsSavesAndThoseAfterItSucceed) {
  const auto job = Start(2, Saving(Endless(kSometimes)));
  job->Await(" checkpoint step=");
  Fill(ballast_);
  job->Await("save-failed .*No space left on device; free some space", 3);
  AwaitSteps(*job, 3);
  const std::vector<uint64_t> before = WholeSteps();
  ASSERT_FALSE(before.empty());
  Empty();
  AwaitCheckpoints(*job, 1);
  EXPECT_GT(WholeSteps().back(), before.back());
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

// No room for names, although there is room for bytes.
TEST_F(FullDisk, OfNamesIsNoOther) {
  const auto job = Start(2, Saving(Endless(kSometimes)));
  job->Await(" checkpoint step=");
  const std::string names = disk_ + "/names";
  ASSERT_OK(files_.MakeDir(names));
  int made = 0;
  for (; made < 20000; ++made) {
    const int fd = open((names + "/" + std::to_string(made)).c_str(), O_WRONLY | O_CREAT, 0600);
    if (fd < 0) break;
    close(fd);
  }
  ASSERT_LT(made, 20000);
  job->Await("save-failed .*No space left on device", 3);
  AwaitSteps(*job, 3);
  while (made > 0) ASSERT_OK(files_.Remove(names + "/" + std::to_string(--made)));
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

TEST_F(FullDisk, AtTheEndTheJobFailsAndTheSameCommandFinishesIt) {
  (void)LastLine(2, Saving({"--steps=4"}));
  Fill(ballast_);
  const auto job = Start(2, Saving({"--steps=8"}));
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_EQ(job->Count("^final step="), 0) << job->Output();
  EXPECT_GE(job->Count("step 8 could not be saved: .*No space left on device"), 1)
      << job->Output();
  EXPECT_THAT(WholeSteps(), ElementsAre(4));
  Empty();
  ExpectNoLeftoversThatGcDoesNotName();
  EXPECT_EQ(LastLine(2, Saving({"--steps=8"})), LastLine(1, {"--steps=8"}));
}

TEST_F(FullDisk, AtAStopItIsUnsaved) {
  (void)LastLine(2, Saving({"--steps=4", "--lanes=4"}));
  Fill(ballast_);
  const auto job = Start(2, Saving({"--steps=1000000", "--lanes=4", "--pause=15ms"}));
  job->Await("^step 6 rank 0 ");
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 77) << job->Output();
  EXPECT_GE(job->Count("save-failed .*No space left on device"), 1) << job->Output();
  ExpectOneTellsThatItIsLost(*job, "4");
  EXPECT_THAT(WholeSteps(), ElementsAre(4));
  Empty();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

// ext4 on a loop device whose file lies on a tmpfs.
class LoopDisk : public OwnDisk {
 protected:
  // Empty, or why not. Of the file, `there` blocks have their room from the beginning.
  std::string MakeDisk(const std::string& features, int there = 0) {
    const std::string why_not = MountTmpfs(below_, "size=24m");
    if (!why_not.empty()) return "no mounts: " + why_not;
    EXPECT_OK(MakeDirs(files_, disk_));
    if (Shell("head -c " + std::to_string(there * kBlock) + " /dev/zero > " + image_ +
              " && truncate -s 64M " + image_ + " && mkfs.ext4 -q -F -m 0 -b " +
              std::to_string(kBlock) + " " + features + " " + image_) != 0) {
      return "mkfs.ext4 is not there, or fails";
    }
    dir_ = disk_ + "/ckpts";
    return MountLoop() ? "" : "no loop devices";
  }
  bool MountLoop() {
    if (Shell("mount -o loop,errors=remount-ro,noinit_itable " + image_ + " " + disk_) != 0) {
      return false;
    }
    mounted_.push_back(disk_);
    return true;
  }
  // As after a new start of the machine.
  void MountAnew() {
    ASSERT_EQ(umount2(disk_.c_str(), 0), 0) << std::strerror(errno);
    mounted_.pop_back();
    ASSERT_TRUE(MountLoop());
  }
  // It can be got over by a new mount only: stopped, the job is unsaved, and goes on then.
  void ExpectLoudUntilMountedAnew(Launched& job, const std::vector<uint64_t>& whole,
                                  const std::string& says, int code_of_another) {
    job.Await("save-failed .*" + says, 3);
    AwaitSteps(job, 3);
    const auto second = Start(1, Saving({"--steps=1000000"}));
    EXPECT_EQ(second->ExitCode(), code_of_another) << second->Output();
    EXPECT_EQ(second->Count("^step "), 0) << second->Output();
    EXPECT_THAT(second->Output(), HasSubstr(says));
    job.Signal(SIGTERM);
    EXPECT_EQ(job.ExitCode(), 77) << job.Output();
    ExpectOneTellsThatItIsLost(job, "[0-9a-z]+");
    MountAnew();
    EXPECT_THAT(WholeSteps(), IsSupersetOf(whole));
    ExpectNoLeftoversThatGcDoesNotName();
    ExpectSameEnd();
  }

  static constexpr int kBlock = 4096;
  const std::string below_ = folder_.File("below");
  const std::string image_ = below_ + "/image";
};

// Room is reserved without a word, and refused when it is written or shall be durable.
TEST_F(LoopDisk, ThatPromisesMoreThanItHasIsLoudAndIsGotOver) {
  // A journal, inode or directory that cannot be written would end the file system, as soon as the
  // kernel gets round to writing it: so there is no journal, directories lie in their inodes, and
  // all inodes, a block each, have their room.
  const int inodes = 1024, before_them = 34;
  const std::string why_not = MakeDisk(
      "-O ^has_journal,^resize_inode,inline_data -E nodiscard -I " + std::to_string(kBlock) +
      " -N " + std::to_string(inodes), before_them + inodes);
  if (!why_not.empty()) GTEST_SKIP() << "no disk of its own on this machine: " << why_not;
  const auto job = Start(2, Saving(Endless(kSometimes)));
  job->Await(" checkpoint step=");
  Fill(below_ + "/ballast");
  job->Await("save-failed .*(write|sync) /.*No space left on device", 3);
  AwaitSteps(*job, 3);
  Grow(below_, "size=200m");
  AwaitCheckpoints(*job, 2);
  job->Signal(SIGTERM);
  EXPECT_EQ(job->ExitCode(), 75) << job->Output();
  ExpectNoLeftoversThatGcDoesNotName();
  ExpectSameEnd();
}

TEST_F(LoopDisk, ThatTurnsReadOnlyLeavesWhatWasCommitted) {
  const std::string why_not = MakeDisk("-J size=4");
  if (!why_not.empty()) GTEST_SKIP() << "no disk of its own on this machine: " << why_not;
  const auto job = Start(2, Saving(Endless(kSometimes)));
  job->Await(" checkpoint step=", 2);
  const std::vector<uint64_t> whole = WholeSteps();
  // What it does by itself where it finds itself damaged.
  if (Shell("echo of-a-test > /sys/fs/ext4/$(basename $(findmnt -n -o SOURCE " + disk_ +
            "))/trigger_fs_error") != 0) {
    GTEST_SKIP() << "this kernel's ext4 cannot be told to fail";
  }
  ExpectLoudUntilMountedAnew(*job, whole, "Read-only file system", 78);
}

// From one moment on every call gives EIO, and what was not synced is lost.
TEST_F(LoopDisk, ThatDiesLeavesWhatWasCommitted) {
  const std::string why_not = MakeDisk("-J size=4");
  if (!why_not.empty()) GTEST_SKIP() << "no disk of its own on this machine: " << why_not;
  const auto job = Start(2, Saving(Endless(kSometimes)));
  job->Await(" checkpoint step=", 2);
  const std::vector<uint64_t> whole = WholeSteps();
  const int fd = open(disk_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  uint32_t without_flushing = 2;
  const unsigned long shutdown = _IOR('X', 125, uint32_t);   // FS_IOC_SHUTDOWN
  ASSERT_EQ(ioctl(fd, shutdown, &without_flushing), 0) << std::strerror(errno);
  close(fd);
  // The same error comes from a network file system that answers again later.
  ExpectLoudUntilMountedAnew(*job, whole, "Input/output error", 1);
}

// --- Two jobs, on two hosts that share a disk ---

// A host of its own for the command: another name and another network.
std::string OnAnotherHost(const std::string& command) {
  return "unshare --net --uts /bin/sh -c 'hostname other && ip link set lo up && exec " + command +
         "'";
}

TEST_F(OwnDisk, ASecondHostsJobIsRefusedUntilTheFirstIsGone) {
  const std::string why_not = MountTmpfs(disk_, "size=64m");
  if (!why_not.empty()) GTEST_SKIP() << "no mounts on this machine: " << why_not;
  if (Shell(OnAnotherHost("true")) != 0) GTEST_SKIP() << "no hosts of its own on this machine";
  dir_ = disk_ + "/ckpts";
  const auto first = Start(2, Saving(Endless(kSometimes)));
  first->Await(" checkpoint step=");
  const auto on_other = [&](const std::string& steps) {
    return Launched::Command{{"/bin/sh", "-c",
                              OnAnotherHost(KEEL_BIN_DIR "/keelrun --standalone "
                                            "--nproc-per-node=2 " + std::string(kProgram) +
                                            " --lanes=4 --keep=1000000 --steps=" + steps +
                                            " --checkpoint-dir " + dir_)}};
  };
  Launched refused(folder_, "refused", on_other("1000000"));
  EXPECT_EQ(refused.ExitCode(), 78) << refused.Output();
  EXPECT_EQ(refused.Count("^step "), 0) << refused.Output();
  EXPECT_THAT(refused.Output(), HasSubstr("another job saves in " + dir_));
  AwaitCheckpoints(*first, 1);
  first->Kill();
  const std::vector<uint64_t> whole = WholeSteps();
  const std::string steps = std::to_string(whole.back() + 3);
  Launched second(folder_, "second", on_other(steps));
  EXPECT_EQ(second.ExitCode(), 0) << second.Output();
  EXPECT_EQ(LastLineOf(second), LastLine(1, {"--lanes=4", "--steps=" + steps}));
  EXPECT_THAT(WholeSteps(), IsSupersetOf(whole));
}

}  // namespace
}  // namespace keel
