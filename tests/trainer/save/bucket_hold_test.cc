// Who may hold a prefix of a bucket, as decided and as done in a bucket in memory.
#include "trainer/save/bucket_hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory_objects.h"
#include "base/object_files.h"
#include "tests/harness/expect_ok.h"
#include "trainer/save/process_mark.h"

namespace keel {
namespace {

using Kind = HoldVerdict::Kind;
using testing::HasSubstr;

HoldSight HeldBy(const std::string& job, Duration quiet) {
  HoldSight sight;
  sight.lease.term = 3;
  sight.lease.text = BucketHolderText({"job " + job + ", process 7 on node1", job, "boot 7 99"});
  sight.claim = "3-aa";
  sight.quiet = quiet;
  return sight;
}

TEST(JudgeHold, APrefixThatNobodyHoldsIsTaken) {
  EXPECT_EQ(JudgeHold({}, "b", "").kind, Kind::kClaim);
  HoldSight released = HeldBy("a", Duration(0));
  released.lease.released = true;
  EXPECT_EQ(JudgeHold(released, "b", "").kind, Kind::kClaim);
}

TEST(JudgeHold, AHolderThatIsGoneIsReplaced) {
  EXPECT_EQ(JudgeHold(HeldBy("a", kHoldQuiet), "b", "").kind, Kind::kClaim);
  HoldSight gone = HeldBy("a", std::chrono::seconds(1));
  gone.is_process_gone = true;
  EXPECT_EQ(JudgeHold(gone, "b", "").kind, Kind::kClaim);
}

TEST(JudgeHold, AnotherJobIsRefusedAtOnceAndTheSameOneWaits) {
  const HoldVerdict other = JudgeHold(HeldBy("a", std::chrono::seconds(4)), "b", "");
  EXPECT_EQ(other.kind, Kind::kRefused);
  EXPECT_THAT(other.why, HasSubstr("job a, process 7 on node1"));
  EXPECT_THAT(other.why, HasSubstr("4"));
  EXPECT_EQ(JudgeHold(HeldBy("a", std::chrono::seconds(4)), "a", "").kind, Kind::kWait);
}

TEST(JudgeHold, AMemberThatLeftTheEpochIsPassedOver) {
  EXPECT_EQ(JudgeHold(HeldBy("a", Duration(0)), "a", "3-aa").kind, Kind::kClaim);
  EXPECT_EQ(JudgeHold(HeldBy("a", Duration(0)), "a", "2-bb").kind, Kind::kWait);
}

TEST(JudgeHold, AClaimThatCannotBeReadIsWaitedFor) {
  HoldSight damaged = HeldBy("a", std::chrono::seconds(1));
  damaged.lease.text = "\xff garbage";
  EXPECT_EQ(JudgeHold(damaged, "b", "").kind, Kind::kRefused);
  damaged.quiet = kHoldQuiet;
  EXPECT_EQ(JudgeHold(damaged, "b", "").kind, Kind::kClaim);
}

TEST(ProcessMark, TellsWhetherItsProcessIsGone) {
  EXPECT_FALSE(IsProcessGone(OwnProcessMark()));
  EXPECT_FALSE(IsProcessGone("")) << "nobody knows";
  EXPECT_FALSE(IsProcessGone("another-boot 1 1"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string mark = OwnProcessMark();
    _exit(write(ends[1], mark.data(), mark.size()) > 0 ? 0 : 1);
  }
  std::string mark(200, '\0');
  const ssize_t bytes = read(ends[0], mark.data(), mark.size());
  ASSERT_GT(bytes, 0);
  mark.resize(static_cast<size_t>(bytes));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(IsProcessGone(mark)) << mark;
  close(ends[0]);
  close(ends[1]);
}

class BucketHoldTest : public testing::Test {
 protected:
  Result<std::unique_ptr<JobDirectory>> Hold(const std::string& job,
                                             const std::string& former = "") {
    return JobDirectory::Hold(files_, RealClock(), random_, kRoot, {job},
                              OlderLocks::kPassOver, Duration(0), former);
  }

  const std::string kRoot = "s3://bucket/run";
  MemoryObjects bucket_;
  ObjectFiles files_{bucket_};
  Random random_{1};
};

TEST_F(BucketHoldTest, OneJobHoldsItAndOthersLearnWhoDoes) {
  ASSERT_OK_AND_ASSIGN(auto held, Hold("a"));
  EXPECT_TRUE(held->IsInPlace());
  EXPECT_OK(JobDirectory::Look(files_, kRoot, held->id()));
  EXPECT_EQ(JobDirectory::Look(files_, "s3://bucket/elsewhere", held->id()).error().code,
            Code::kNotFound);
  EXPECT_EQ(JobDirectory::Look(files_, kRoot, "7-0123").error().code, Code::kNotFound);
  const auto other = Hold("b");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Code::kExists);
  EXPECT_THAT(other.error().message, HasSubstr("another job saves in s3://bucket/run: job a"));
  held.reset();
  EXPECT_OK(Hold("b"));
}

TEST_F(BucketHoldTest, AQuietHolderIsReplacedAndFindsOut) {
  ASSERT_OK_AND_ASSIGN(const auto held, Hold("a"));
  bucket_.Pass(kHoldQuiet);
  ASSERT_OK_AND_ASSIGN(const auto other, Hold("b"));
  EXPECT_NE(held->id(), other->id());
  // By its next beat.
  const TimePoint deadline = RealClock().Monotonic() + std::chrono::seconds(50);
  while (held->IsInPlace() && RealClock().Monotonic() < deadline) {
    RealClock().SleepFor(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(held->IsInPlace());
  EXPECT_TRUE(other->IsInPlace());
}

TEST_F(BucketHoldTest, AnEpochTakesItFromTheOneBefore) {
  ASSERT_OK_AND_ASSIGN(const auto held, Hold("a"));
  EXPECT_EQ(Hold("a").error().code, Code::kExists);
  EXPECT_OK(Hold("a", held->id()));
}

// A bucket whose store replaces what is there, though it is asked not to.
class CarelessObjects : public MemoryObjects {
 public:
  Status PutIfAbsent(const std::string& key, std::string_view bytes) override {
    return Replace(key, bytes);
  }
};

TEST(BucketHold, AStoreThatIgnoresConditionsIsRefused) {
  CarelessObjects bucket;
  ObjectFiles files(bucket);
  Random random(1);
  const auto held = JobDirectory::Hold(files, RealClock(), random, "s3://bucket/run", {"a"},
                                       OlderLocks::kPassOver, Duration(0));
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code, Code::kInvalid);
  EXPECT_THAT(held.error().message, AllOf(HasSubstr("If-None-Match"),
                                         HasSubstr("say --checkpoint-unguarded")));
  EXPECT_TRUE(bucket.List("", Objects::Depth::kAll)->objects.empty());
}

}  // namespace
}  // namespace keel
