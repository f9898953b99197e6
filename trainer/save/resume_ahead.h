// ResumeAhead: unpacks the newest checkpoint into the state while the group is still coming
// together.
// Promises   does what Resume() would do with that checkpoint, in the same order: nothing is
//            touched before every byte was verified. Tells and renames nothing: what is wrong with
//            a checkpoint, Resume() finds again and says. A state that was touched and not taken is
//            known as such (TrainState::filled_ahead()), so that nobody begins with it.
// Does not   decide anything: whether that checkpoint is the one is seen when all have met.
// Threads    makes its own, which has ended behind Finish() and Stop(). Until then nobody else may
//            touch the state's tensors.
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

  void Finish();   // until it is done
  void Stop();     // sooner, with less
  const Progress& progress() const { return progress_; }

  // Behind Finish(): whether the state's tensors are those of this very checkpoint.
  bool Filled(const Checkpoint& checkpoint) const;

 private:
  struct Done {
    bool touched = false;
    std::string filled;   // Name() of the checkpoint; empty: of none
  };
  static std::string Name(const Checkpoint& checkpoint);
  Done Fill(Files& files, const What& what);

  TrainState& state_;
  Progress progress_;
  std::future<Done> under_way_;
  std::string filled_;
};

}  // namespace keel
