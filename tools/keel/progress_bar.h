// ProgressBar: how far a long piece of work is, drawn on stderr while it lives.
// Promises   draws nothing unless asked to, and nothing in the first second; wipes itself away.
// Threads    has one of its own, which only reads the progress.
#pragma once

#include <condition_variable>
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
  explicit ProgressBar(const World& world);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  Progress* progress() { return &progress_; }

 private:
  void Draw();

  Clock& clock_;
  const TimePoint started_;
  Progress progress_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace keel
