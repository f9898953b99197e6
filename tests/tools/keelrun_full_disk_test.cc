// Jobs whose log files lie on a disk that is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/harness/launched.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

// Behind it, words of a shell that has a small file system of its own in $DISK.
constexpr const char* kOnSmallDisk = "mount -t tmpfs -o size=64k,nr_inodes=100 none $DISK && ";

class KeelrunFullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string can = "mkdir " + disk_ + " && DISK=" + disk_ + " unshare -m sh -c '" +
                            kOnSmallDisk + " true' 2>/dev/null";
    if (std::system(can.c_str()) != 0) GTEST_SKIP() << "this machine allows no mounts";
  }

  // Two workers that print 601 lines of a hundred bytes each.
  std::unique_ptr<Launched> Start(const std::string& options, const std::string& before = "true") {
    const std::string worker =
        "i=0; while [ $i -lt 600 ]; do i=$((i + 1)); printf \"line %-95d\\n\" $i; done; "
        "echo final line";
    const std::string line = std::string(kOnSmallDisk) + before + "; exec " KEEL_BIN_DIR
                             "/keelrun --standalone --nproc-per-node=2 " + options +
                             " --no-python sh -c '" + worker + "'";
    return std::make_unique<Launched>(folder_, "job",
                                      Launched::Command{{"unshare", "-m", "sh", "-c", line}},
                                      Environment{{"DISK", disk_}});
  }

  TempDir folder_;
  const std::string disk_ = folder_.File("disk");
};

TEST_F(KeelrunFullDisk, TheConsoleGetsAllAndTheSummaryTellsWhatFilesMiss) {
  const auto job = Start("--tee=3 --log-dir=$DISK");
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  for (const std::string rank : {"0", "1"}) {
    EXPECT_EQ(job->Count("^.default" + rank + ".:line [0-9]+ *$"), 600) << rank;
    EXPECT_EQ(job->Count("^.default" + rank + ".:final line$"), 1) << rank;
  }
  EXPECT_GE(job->Count("warn output-missing from=.*stdout.log bytes=[0-9]+ reason=.*No space left"),
            1);
  EXPECT_GE(job->Count("^  missing from .*stdout.log: [0-9]+ bytes of output .*No space left"), 1);
}

TEST_F(KeelrunFullDisk, WhereTheTemporaryFolderIsTheFullOneItIsTheSame) {
  const auto job = Start("--tee=3", "export TMPDIR=$DISK");
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^.default[01].:final line$"), 2);
  EXPECT_GE(job->Count("^  missing from .*stdout.log: [0-9]+ bytes of output .*No space left"), 1);
}

TEST_F(KeelrunFullDisk, OutputThatGoesToFilesAloneIsMissedWithAWord) {
  const auto job = Start("--redirects=3 --log-dir=$DISK --log-format=json");
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_GE(job->Count("output-missing"), 1);
  EXPECT_THAT(job->Output(), HasSubstr("\"output_missing\":[{"));
}

// No file and no folder can be made any more.
TEST_F(KeelrunFullDisk, WithoutRoomForAFolderTheConsoleIsFedAllTheSame) {
  const auto job = Start("--tee=3 --log-dir=$DISK/logs",
                         "mkdir $DISK/logs; i=0; while [ $i -lt 97 ]; do i=$((i + 1)); "
                         ": > $DISK/$i || break; done 2>/dev/null");
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^.default[01].:final line$"), 2) << job->Output();
  EXPECT_GE(job->Count("no-log-folder"), 1) << job->Output();
}

}  // namespace
}  // namespace keel
