// ResumeAhead: unpacks the newest checkpoint into the state while the group is still coming
// together.
// Promises   does what Resume() would do with that checkpoint, in the same order: nothing is
//            touched before every byte was verified. It logs and renames nothing: Resume() finds
//            again what is wrong with a checkpoint, and says so. A state that was touched but not
//            taken is marked (TrainState::filled_ahead()), so that nobody begins with it.
// Does not   decide anything: whether that checkpoint is the right one shows when all have met.
// Threads    starts one of its own, which has ended after Finish() or Stop(). Until then nobody
//            else may touch the state's tensors.
#pragma once

#include <future>
#include <string>

#include "base/files.h"
#include "ckpt/checkpoint.h"
#include "ckpt/shard_writer.h"
#include "trainer/state/train_state.h"

namespace keel {

class ResumeAhead {
 public:
  struct What {
    std::string root;          // where steps are
    std::string fingerprint;   // ours
    bool allow_inexact = false;
  };
  ResumeAhead(TrainState& state, Files& files, What what);
  ~ResumeAhead() { Stop(); }
  ResumeAhead(const ResumeAhead&) = delete;
  ResumeAhead& operator=(const ResumeAhead&) = delete;

  void Finish();   // waits until it is done
  void Stop();     // ends it early
  const Progress& progress() const { return progress_; }

  // After Finish(): whether the state's tensors are those of this very checkpoint.
  bool Filled(const Checkpoint& checkpoint) const;

 private:
  struct Done {
    bool touched = false;
    std::string filled;   // Name() of the checkpoint; empty: none
  };
  static std::string Name(const Checkpoint& checkpoint);
  Done Fill(Files& files, const What& what);

  TrainState& state_;
  Progress progress_;
  std::future<Done> under_way_;
  std::string filled_;
};

}  // namespace keel
