// The progress bar: when it draws, and what.
#include "tools/keel/progress_bar.h"

#include <gtest/gtest.h>

#include "base/memory_files.h"

namespace keel {
namespace {

// Moves when told, and knows how often it was asked: each look of the bar asks once.
class WatchedClock : public ManualClock {
 public:
  TimePoint Monotonic() override {
    const TimePoint now = ManualClock::Monotonic();
    const std::lock_guard lock(mutex_);
    ++looks_;
    changed_.notify_all();
    return now;
  }
  // Until the bar has looked twice more: the first of them may have been on its way already.
  void AwaitLooks() {
    std::unique_lock lock(mutex_);
    const int wanted = looks_ + 2;
    changed_.wait(lock, [&] { return looks_ >= wanted; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int looks_ = 0;  // guarded by mutex_
};

class Screen {
 public:
  void Draw(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ += text;
    drawn_.notify_all();
  }
  std::string Text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  void AwaitText() {
    std::unique_lock lock(mutex_);
    drawn_.wait(lock, [&] { return !text_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable drawn_;
  std::string text_;  // guarded by mutex_
};

class ProgressBarTest : public testing::Test {
 protected:
  World MakeWorld(bool shows_progress) {
    return {files_, clock_, Paint(), shows_progress, {}};
  }
  ProgressBar::DrawOn OnScreen() {
    return [this](const std::string& text) { screen_.Draw(text); };
  }

  MemoryFiles files_;
  WatchedClock clock_;
  Screen screen_;
};

TEST_F(ProgressBarTest, DrawsNothingInTheFirstSecond) {
  ProgressBar bar(MakeWorld(true), OnScreen());
  bar.progress()->bytes_total = 200;
  bar.progress()->bytes_done = 100;
  clock_.AwaitLooks();
  clock_.Advance(std::chrono::milliseconds(999));
  clock_.AwaitLooks();
  EXPECT_EQ(screen_.Text(), "");
}

TEST_F(ProgressBarTest, DrawsAfterASecondAndWipesItselfAway) {
  {
    ProgressBar bar(MakeWorld(true), OnScreen());
    bar.progress()->bytes_total = 200;
    bar.progress()->bytes_done = 100;
    clock_.Advance(std::chrono::seconds(1));
    screen_.AwaitText();
  }
  const std::string text = screen_.Text();
  EXPECT_NE(text.find("50%  100 B of 200 B"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << "it stays behind";
}

TEST_F(ProgressBarTest, WorkThatEndsWithinASecondLeavesNoTrace) {
  { ProgressBar bar(MakeWorld(true), OnScreen()); }
  EXPECT_EQ(screen_.Text(), "");
}

TEST_F(ProgressBarTest, WithoutATerminalNothingIsDrawnHoweverLongItTakes) {
  {
    ProgressBar bar(MakeWorld(false), OnScreen());
    bar.progress()->bytes_total = 200;
    clock_.Advance(std::chrono::hours(1));
  }
  EXPECT_EQ(screen_.Text(), "");
}

TEST(ProgressText, SaysHowMuchAndHowLong) {
  EXPECT_EQ(ProgressText(0, 0, std::chrono::seconds(2)), "");
  EXPECT_EQ(ProgressText(50, 200, std::chrono::seconds(10)),
            "[=======                       ]  25%  50 B of 200 B, 31 s left");
  EXPECT_EQ(ProgressText(300, 200, std::chrono::seconds(10)),
            "[==============================] 100%  200 B of 200 B");
}

}  // namespace
}  // namespace keel
