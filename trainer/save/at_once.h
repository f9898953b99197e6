// SaveAtOnce: a save that everybody waits for, of the state as it is: at the end of a job, and
// where it stops; with the others, or by one worker alone.
// Promises   a share that this worker has called durable is removed only once all agreed to that:
//            somebody may be committing it.
// Does not   save beside training (trainer/save/beside.h); ask the others.
// Threads    one.
// Errors     those of ckpt/save.h; kExists: another job saves in this directory.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "trainer/save/share.h"
#include "trainer/save/tools.h"

namespace keel {

class SaveAtOnce {
 public:
  explicit SaveAtOnce(SaveTools& tools) : tools_(tools) {}

  // Steps that could not be read when the job resumed: once it has come to one again, what cannot
  // be read there even now is put aside, and the step is saved.
  void NoteUnread(const std::vector<uint64_t>& steps) {
    unread_ = std::set<uint64_t>(steps.begin(), steps.end());
  }
  // By this very run, at this very step. Fails only where `waiting` ends the wait.
  Result<bool> IsCommitted(const DiskWaiting& waiting);

  // --- All members of the epoch together, after SaveBeside::EndUnderWay() ---

  Status WriteShare(const DiskWaiting& waiting);
  // Rank 0, when all shares are known to be durable.
  Status CommitShares(const DiskWaiting& waiting);
  // All agreed that it cannot be committed.
  void DropShare() { share_.On(ShareEvent::kDrop); }
  void EndEpoch() { share_.On(ShareEvent::kLose); }

  // --- Without the others, when no save is under way ---

  Status SaveAlone(const DiskWaiting& waiting);

 private:
  Status Write(SavePlan plan, const DiskWaiting& waiting);
  Result<BackgroundSave::Outcome> WriteNow(SavePlan plan, const DiskWaiting& waiting);

  SaveTools& tools_;
  Share share_;
  Random random_{EntropySeed()};
  std::set<uint64_t> unread_;
};

}  // namespace keel
