// Committer: writes the manifest of a save whose shares are durable, beside training or at once,
// then wakes the mirror and applies retention.
// Promises   one commit at a time; each outcome is told in the log once, and measured. In a hurry
//            nobody waits for retention, which goes on beside, and removes one checkpoint at least.
// Does not   know whether all shares are durable: its caller does.
// Threads    one; a commit beside training runs in a thread of its own.
// Errors     those of ckpt/save.h, of the directory that is held, and of the fence: then the save's
//            files are removed, as after any other one.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "ckpt/save.h"
#include "trainer/save/fence.h"
#include "trainer/save/fit.h"
#include "trainer/save/held_directory.h"
#include "trainer/save/mirror.h"
#include "trainer/save/terms.h"

namespace keel {

class Committer {
 public:
  // All of them outlive this.
  Committer(Files& files, Clock& clock, const CheckpointConfig& config, const Fence& fence,
            HeldDirectory& directory, Mirror& mirror, SaveSpeed& speed);

  // `is_awaited`: nobody trains meanwhile.
  void Begin(uint64_t step, std::unique_ptr<Save> save, bool is_awaited = false);

  // There is a deadline, until the next commit beside training.
  void Hurry() { is_hurried_ = true; }

  bool under_way() const { return commit_.valid(); }
  uint64_t step() const { return step_; }
  // Of the commit under way: whether it ended within `limit`, with retention unless in a hurry.
  bool AwaitDone(Duration limit) const;
  // Tells of a commit that has ended, if one has.
  void Collect();
  // Waits for the commit under way, if there is one, and tells of it, and how it ended.
  Status Await();
  // The newest step that was committed here since this was last asked.
  std::optional<uint64_t> TakeCommitted() { return std::exchange(committed_, std::nullopt); }

 private:
  struct Outcome {
    Status status;
    CommitReport report;
    Duration took{0};
  };
  Outcome Commit(uint64_t step, std::unique_ptr<Save> save) const;
  void Retain(uint64_t step) const;
  void Tell(uint64_t step, const Outcome& outcome);

  Files& files_;
  Clock& clock_;
  const CheckpointConfig& config_;
  const Fence& fence_;
  HeldDirectory& directory_;
  Mirror& mirror_;
  SaveSpeed& speed_;
  uint64_t step_ = 0;                    // of commit_
  std::optional<uint64_t> committed_;
  std::atomic<bool> is_hurried_{false};
  std::future<Outcome> commit_;          // valid: under way, or ended and not yet told
  std::future<void> retention_;          // that of the newest commit, after all those before it
};

}  // namespace keel
