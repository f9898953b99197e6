// Saves beside training: one in flight, progress, cancel, and failures that are told.
#include "ckpt/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "ckpt/catalog.h"
#include "ckpt/snapshot.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

// Blocks in its first read until it is told to go on.
class GatedSource : public TensorSource {
 public:
  explicit GatedSource(const TestState& state) : state_(state) {}
  const std::byte* Borrow(size_t, uint64_t, size_t) override { return nullptr; }
  Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into) override {
    reached_ = true;
    reached_.notify_all();
    open_.wait(false);
    std::copy_n(state_.bytes[tensor].begin() + static_cast<ptrdiff_t>(offset), into.size(),
                into.begin());
    return Ok();
  }
  void AwaitReached() { reached_.wait(false); }
  void Open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  const TestState& state_;
  std::atomic<bool> reached_{false};
  std::atomic<bool> open_{false};
};

class BackgroundSaveTest : public testing::Test {
 protected:
  BackgroundSave::Request Request(uint64_t step, std::shared_ptr<TensorSource> source) {
    return {PlanOf(state_, "/c", step, step, 256), std::move(source), {}, true};
  }
  std::shared_ptr<CopiedSnapshot> Copy() {
    auto copy = std::make_shared<CopiedSnapshot>();
    copy->Copy(*Layout::Make(state_.specs, 256), 0, 1, state_.Spans());
    return copy;
  }

  BackgroundSave::Request Spread(Duration over) {
    BackgroundSave::Request request = Request(10, Copy());
    request.options.spread = over;
    return request;
  }

  MemoryFiles files_;
  ManualClock clock_;
  TestState state_ = TestState::Make(1, 3000);
};

TEST_F(BackgroundSaveTest, SavesWhatWasCopiedWhateverBecomesOfTheOriginal) {
  const TestState before = state_;
  BackgroundSave background(files_, clock_);
  ASSERT_OK(background.Start(Request(10, Copy())));
  for (auto& tensor : state_.bytes) std::fill(tensor.begin(), tensor.end(), std::byte{1});
  ASSERT_OK_AND_ASSIGN(const auto outcome, background.Take());
  ASSERT_OK(outcome.status);
  ASSERT_TRUE(outcome.committed.has_value());
  EXPECT_EQ(background.progress().bytes_done, background.progress().bytes_total);
  ASSERT_OK_AND_ASSIGN(const auto checkpoint,
                       Checkpoint::Open(files_, outcome.committed->step_dir));
  TestState loaded = state_.Blank();
  ASSERT_OK(Restore(*checkpoint, loaded.Targets(), {}));
  EXPECT_EQ(loaded.bytes, before.bytes);
}

TEST_F(BackgroundSaveTest, OnlyOneIsInFlight) {
  BackgroundSave background(files_, clock_);
  auto gated = std::make_shared<GatedSource>(state_);
  ASSERT_OK(background.Start(Request(10, gated)));
  gated->AwaitReached();
  EXPECT_TRUE(background.in_flight());
  EXPECT_FALSE(background.done());
  EXPECT_EQ(background.Start(Request(20, Copy())).error().code, Code::kExists);
  gated->Open();
  ASSERT_OK(background.Take()->status);
  EXPECT_FALSE(background.in_flight());
  ASSERT_OK(background.Start(Request(20, Copy())));
  ASSERT_OK(background.Take()->status);
  EXPECT_EQ(background.Take().error().code, Code::kNotFound);
}

TEST_F(BackgroundSaveTest, ACancelledSaveLeavesNothing) {
  BackgroundSave background(files_, clock_);
  auto gated = std::make_shared<GatedSource>(state_);
  ASSERT_OK(background.Start(Request(10, gated)));
  gated->AwaitReached();
  background.Cancel();
  gated->Open();
  ASSERT_OK_AND_ASSIGN(const auto outcome, background.Take());
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.error().code, Code::kCancelled);
  ASSERT_OK_AND_ASSIGN(const auto left, files_.List("/c"));
  EXPECT_TRUE(left.empty());
}

TEST_F(BackgroundSaveTest, OneThatIsSpreadIsNotDoneSooner) {
  BackgroundSave background(files_, clock_);
  const TimePoint began = RealClock().Monotonic();
  ASSERT_OK(background.Start(Spread(2s)));
  ASSERT_OK_AND_ASSIGN(const auto outcome, background.Take());
  const Duration took = RealClock().Monotonic() - began;
  ASSERT_OK(outcome.status);
  EXPECT_GE(took, 1s);   // all but the last of several parts of it
  EXPECT_GT(outcome.shard.rested, 0ms);
  EXPECT_LE(outcome.shard.rested, took);
}

TEST_F(BackgroundSaveTest, OneThatIsSpreadCanBeHurried) {
  BackgroundSave background(files_, clock_);
  ASSERT_OK(background.Start(Spread(24h)));
  background.Hurry();
  ASSERT_OK(background.Take()->status);
}

TEST_F(BackgroundSaveTest, OneThatIsSpreadCanBeCancelledWhileItRests) {
  BackgroundSave background(files_, clock_);
  ASSERT_OK(background.Start(Spread(24h)));
  while (background.progress().bytes_done == 0) std::this_thread::yield();
  background.Cancel();
  ASSERT_OK_AND_ASSIGN(const auto outcome, background.Take());
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.error().code, Code::kCancelled);
}

TEST_F(BackgroundSaveTest, AFailureIsToldAndTheNextSaveWorks) {
  FaultyFiles faulty(files_);
  faulty.Plan({.op = FileOp::kSync, .path_part = ".keel"});
  BackgroundSave background(faulty, clock_);
  ASSERT_OK(background.Start(Request(10, Copy())));
  ASSERT_OK_AND_ASSIGN(const auto outcome, background.Take());
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_NE(outcome.status.error().message.find("saving step 10"), std::string::npos);
  ASSERT_OK(background.Start(Request(10, Copy())));
  ASSERT_OK(background.Take()->status);
}

TEST_F(BackgroundSaveTest, AGroupCommitsAfterItsVote) {
  BackgroundSave::Request first = Request(10, Copy());
  first.commit = false;
  first.plan.parts = 2;
  BackgroundSave::Request second = first;
  second.plan.part = 1;
  BackgroundSave a(files_, clock_);
  BackgroundSave b(files_, clock_);
  ASSERT_OK(a.Start(first));
  ASSERT_OK(b.Start(second));
  ASSERT_OK_AND_ASSIGN(const auto one, a.Take());
  ASSERT_OK_AND_ASSIGN(const auto two, b.Take());
  ASSERT_OK(one.status);
  ASSERT_OK(two.status);
  ASSERT_OK_AND_ASSIGN(const auto before, LookAtStep(files_, one.save->step_dir()));
  EXPECT_EQ(before.state, StepState::kPartial);
  EXPECT_TRUE(before.in_progress);
  ASSERT_OK(one.save->Commit(0));
  ASSERT_OK_AND_ASSIGN(const auto after, LookAtStep(files_, one.save->step_dir()));
  EXPECT_EQ(after.state, StepState::kComplete);
}

TEST_F(BackgroundSaveTest, TheDestructorEndsASaveInFlight) {
  auto gated = std::make_shared<GatedSource>(state_);
  {
    BackgroundSave background(files_, clock_);
    ASSERT_OK(background.Start(Request(10, gated)));
    gated->AwaitReached();
    background.Cancel();
    gated->Open();
  }
  EXPECT_EQ(gated.use_count(), 1);
}

}  // namespace
}  // namespace keel
