// Who holds a checkpoint directory, and whom a worker of a later epoch passes over.
#include "trainer/save/job_locks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "ckpt/names.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "trainer/save/job_directory.h"

namespace keel {
namespace {

using testing::HasSubstr;

class JobLocks : public testing::Test {
 protected:
  using Held = Result<std::unique_ptr<JobDirectory>>;

  Held Hold(const JobHolder& holder, OlderLocks older = OlderLocks::kPassOver) {
    return JobDirectory::Hold(files_, RealClock(), random_, dir_.path(), holder, older,
                              Duration(0));
  }
  static JobHolder InEpoch(int64_t epoch) { return {"j", "j.lease", epoch}; }
  bool IsThere(const std::string& name) {
    return files_.Stat(JoinPath(dir_.path(), name)).ok();
  }

  TempDir dir_;
  PosixFiles files_;
  Random random_{EntropySeed()};
};

TEST_F(JobLocks, AWorkerOfALaterEpochPassesOver) {
  const Held old = Hold(InEpoch(3));
  ASSERT_OK(old);
  EXPECT_TRUE((*old)->IsInPlace());
  EXPECT_EQ(Hold(InEpoch(4), OlderLocks::kWaitFor).error().code, Code::kExists);
  Held next = Hold(InEpoch(4));
  ASSERT_OK(next);
  EXPECT_TRUE((*next)->IsInPlace());
  EXPECT_FALSE((*old)->IsInPlace()) << "it sees that it was passed over";
  EXPECT_TRUE(IsThere(LaterJobLockName(4)));
  next->reset();
  EXPECT_FALSE(IsThere(LaterJobLockName(4)));
}

TEST_F(JobLocks, NobodyPassesOverTheSameEpochOrALaterOne) {
  const Held held = Hold(InEpoch(4));
  ASSERT_OK(held);
  for (const int64_t epoch : {1, 3, 4}) {
    const Held refused = Hold(InEpoch(epoch));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kExists);
    EXPECT_THAT(refused.error().message, HasSubstr("another job saves in " + dir_.path()));
    EXPECT_THAT(refused.error().message, HasSubstr("epoch 4 of j.lease"));
  }
}

TEST_F(JobLocks, OnlyALeaseThatBothHaveLetsPass) {
  for (const JobHolder& holder : {JobHolder{"j", "", 1}, JobHolder{"k", "k.lease", 1}}) {
    const Held held = Hold(holder);
    ASSERT_OK(held);
    EXPECT_EQ(Hold(InEpoch(9)).error().code, Code::kExists);
    EXPECT_EQ(Hold({"j", "", 9}).error().code, Code::kExists);
  }
}

TEST_F(JobLocks, OneThatPassedOverHoldsTheDirectoryWhenTheFormerHolderIsGone) {
  Held old = Hold(InEpoch(3));
  ASSERT_OK(old);
  const Held next = Hold(InEpoch(4));
  ASSERT_OK(next);
  // The former holder finds out, and takes hold anew.
  EXPECT_EQ(Hold(InEpoch(3)).error().code, Code::kExists);
  old->reset();
  for (const JobHolder& other : {JobHolder{"k", "", 1}, JobHolder{"k", "k.lease", 9},
                                 JobHolder{"j", "", 9}, InEpoch(3)}) {
    const Held refused = Hold(other);
    ASSERT_FALSE(refused.ok()) << other.job;
    EXPECT_THAT(refused.error().message, HasSubstr("epoch 4 of j.lease"));
  }
  const Held last = Hold(InEpoch(5));
  ASSERT_OK(last);
  EXPECT_FALSE((*next)->IsInPlace());
}

TEST_F(JobLocks, SeveralHoldersArePassedOverTogether) {
  const Held first = Hold(InEpoch(1)), second = Hold(InEpoch(2)), third = Hold(InEpoch(5));
  ASSERT_OK(first);
  ASSERT_OK(second);
  ASSERT_OK(third);
  EXPECT_EQ(Hold(InEpoch(4)).error().code, Code::kExists);
  EXPECT_EQ(Hold({"k", "k.lease", 9}).error().code, Code::kExists);
}

TEST_F(JobLocks, WhatADeadHolderLeftIsRemoved) {
  ASSERT_OK_AND_ASSIGN(const auto file,
                       files_.Open(JoinPath(dir_.path(), LaterJobLockName(4)),
                                   {.write = true, .create = true}));
  ASSERT_OK(file->WriteAt(0, BytesOf(JobHolderText(InEpoch(4)))));
  ASSERT_OK(Hold({"k", "", 0}));
  EXPECT_FALSE(IsThere(LaterJobLockName(4)));
}

TEST_F(JobLocks, AnOldLockIsWaitedForBeforeItIsPassedOver) {
  const Held old = Hold(InEpoch(3));
  ASSERT_OK(old);
  const TimePoint begin = RealClock().Monotonic();
  ASSERT_OK(JobDirectory::Hold(files_, RealClock(), random_, dir_.path(), InEpoch(4),
                               OlderLocks::kPassOver, JobDirectory::kHoldLimit));
  EXPECT_GE(RealClock().Monotonic() - begin, kPassOverAfter);
}

TEST_F(JobLocks, ANameThatLooksLikeTheEndOfATextIsNotBelieved) {
  const Held held = Hold({"x, epoch 1 of j.lease", "", 0});
  ASSERT_OK(held);
  EXPECT_EQ(Hold(InEpoch(9)).error().code, Code::kExists);
}

}  // namespace
}  // namespace keel
