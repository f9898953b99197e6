// ProgressBar: how far a long piece of work is, drawn on stderr while it lives.
// Promises   draws nothing unless World says that stderr is a terminal, and nothing in the first
//            second; wipes itself away.
// Threads    has one of its own, which only reads the progress.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ckpt/shard_writer.h"
#include "tools/keel/command.h"

namespace keel {

// "[=====     ]  50%  1.2 GiB of 2.4 GiB, 3 s left"
std::string ProgressText(uint64_t done, uint64_t total, Duration elapsed);

class ProgressBar {
 public:
  using DrawOn = std::function<void(const std::string&)>;

  // Tests bring their own to draw on.
  explicit ProgressBar(const World& world, DrawOn draw_on = DrawOnStderr);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  Progress* progress() { return &progress_; }

 private:
  static void DrawOnStderr(const std::string& text);
  void Draw();

  Clock& clock_;
  const DrawOn draw_on_;
  const TimePoint started_;
  Progress progress_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace keel
