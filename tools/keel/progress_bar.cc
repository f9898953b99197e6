// A thread that draws a few times a second.
#include "tools/keel/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace keel {
namespace {

constexpr Duration kQuietFor = std::chrono::seconds(1);
constexpr Duration kDrawEvery = std::chrono::milliseconds(200);
constexpr size_t kBarWidth = 30;
constexpr std::string_view kWipe = "\r\x1b[K";

}  // namespace

std::string ProgressText(uint64_t done, uint64_t total, Duration elapsed) {
  if (total == 0) return "";
  done = std::min(done, total);
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(share * kBarWidth);
  std::string percent = std::to_string(static_cast<int>(share * 100));
  percent.insert(0, 4 - std::min<size_t>(percent.size(), 3), ' ');
  std::string text = "[" + std::string(filled, '=') + std::string(kBarWidth - filled, ' ') + "]" +
                     percent + "%  " + BytesText(done) + " of " + BytesText(total);
  if (done == 0 || done == total) return text;
  const double seconds = std::chrono::duration<double>(elapsed).count() * (1 - share) / share;
  return text + ", " + DurationText(std::chrono::seconds(static_cast<int64_t>(seconds) + 1)) +
         " left";
}

void ProgressBar::DrawOnStderr(const std::string& text) {
  // A bar that cannot be drawn is no reason to stop.
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

ProgressBar::ProgressBar(const World& world, DrawOn draw_on)
    : clock_(world.clock), draw_on_(std::move(draw_on)), started_(world.clock.Monotonic()) {
  if (world.shows_progress) thread_ = std::thread([this] { Draw(); });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void ProgressBar::Draw() {
  bool is_drawn = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kDrawEvery, [this] { return is_ended_; })) {
    const Duration elapsed = clock_.Monotonic() - started_;
    if (elapsed < kQuietFor) continue;
    is_drawn = true;
    draw_on_(std::string(kWipe) +
             ProgressText(progress_.bytes_done, progress_.bytes_total, elapsed));
  }
  if (is_drawn) draw_on_(std::string(kWipe));
}

}  // namespace keel
