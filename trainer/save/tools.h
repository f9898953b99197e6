// SaveTools: what saving beside training and saving at once both work with: the state, where and
// how it is saved, and the writer, committer and measures of which a worker has one each.
// Does not   begin, vote or decide (trainer/save/beside.h, trainer/save/at_once.h).
// Threads    one.
// Lifetime   keeps `state`, `files` and `clock` by reference.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "ckpt/layout.h"
#include "ckpt/save.h"
#include "trainer/save/committer.h"
#include "trainer/save/fit.h"
#include "trainer/save/held_directory.h"
#include "trainer/save/mirror.h"
#include "trainer/save/share_writer.h"
#include "trainer/save/terms.h"
#include "trainer/save/watch.h"
#include "trainer/state/image.h"
#include "trainer/state/train_state.h"

namespace keel {

struct SaveTools {
  SaveTools(TrainState& state, CheckpointConfig config, Files& files, Clock& clock, Layout layout);
  SaveTools(const SaveTools&) = delete;
  SaveTools& operator=(const SaveTools&) = delete;

  TrainState& state;
  const CheckpointConfig config;
  Files& files;
  Clock& clock;
  const Layout layout;
  SavePlace place = {};
  Fence fence;
  HeldDirectory directory;
  Mirror mirror;
  SaveSpeed speed = {};
  SaveWatch watch = {};
  ShareWriter writer;
  Committer committer;

  SaveTerms own_terms() const { return {config.every_steps, config.codec}; }
  SaveTerms terms() const { return place.terms.value_or(own_terms()); }

  // The share of this worker's place. The attempt's name follows from the epoch, the step and
  // `purpose`, so that all members know it without asking each other.
  Result<SavePlan> PlanShare(const std::string& purpose) const;
  Result<SavePlan> Plan(const std::string& attempt, uint32_t part, uint32_t parts) const;
  // What the plan's share holds. Buffers change in the next forward, all else only when a step is
  // applied: so they are copied, unless `alias_buffers`.
  Result<CpuBytes> ShareOf(const SavePlan& plan, bool alias_buffers) const;

  // What it would take to save one of so many equal shares; nothing: no save tells.
  std::optional<Duration> ExpectedSave(int shares) const;
  // Tells of a save of `step` that takes long, if it does.
  void TellIfLate(uint64_t step, const char* note);
  // Waits for the disk, and tells now and then that this worker is alive.
  Status AwaitDisk(const DiskWaiting& waiting, uint64_t step,
                   const std::function<bool(Duration limit)>& is_done);
  Status AwaitWriter(const DiskWaiting& waiting, uint64_t step);
  // Commits, and waits for the disk in the same way.
  Status CommitNow(const DiskWaiting& waiting, uint64_t step, std::unique_ptr<Save> save);

 private:
  Metadata Describe() const;
  bool IsBuffer(size_t tensor) const;
};

}  // namespace keel
