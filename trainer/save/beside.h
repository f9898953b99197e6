// SaveBeside: one worker's part in saving beside training: it copies its share, writes it, says in
// votes how far it is, and commits or gives up as the votes decide.
// Promises   training never waits for the disk, but for the copy where it is not done when the next
//            step is applied. A failure is loud, and costs the checkpoint only.
// Does not   decide (trainer/save/save_schedule.h) or vote. What its share is at any moment, and
//            what may happen to it, is the table of trainer/save/share_state.h.
// Threads    one.
// Errors     those of ckpt/save.h; kExists: another job saves in this directory.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/save/save_schedule.h"
#include "trainer/save/share.h"
#include "trainer/save/tools.h"

namespace keel {

class SaveBeside {
 public:
  explicit SaveBeside(SaveTools& tools) : tools_(tools), last_begin_(tools.clock.Monotonic()) {}

  // What the votes have not decided is given up, and wanted again.
  void EndEpoch();

  void WantSave() { wanted_ = true; }
  // Before the next step is applied: the copy of the last one must be done.
  void AwaitCopy();
  // For the vote.
  SaveVote Vote();
  // After a step that did not end training: begins, commits or gives up.
  void Act(const SaveDecision& decision);

  // --- Where training stops ---

  // The save under way, instead of a new one: waits until our share is durable.
  Status FinishShare(const DiskWaiting& waiting);
  // Rank 0, when all shares are known to be durable.
  Status CommitShares(const DiskWaiting& waiting);
  // What all agreed on then: rank 0 has committed it, or nobody shall.
  void EndShare(const Status& committed);
  // What is under way and not decided is given up, by all.
  Status EndUnderWay(const DiskWaiting& waiting);

 private:
  Status Begin();
  void TakeOutcome();
  void Fail(const Error& error);
  void GiveUp(const std::string& why, ShareEvent how);

  SaveTools& tools_;
  Share share_;
  bool wanted_ = false;
  bool commit_unsettled_ = false;   // the first worker was told to commit, and may not have yet
  TimePoint last_begin_;
};

}  // namespace keel
