// Checkpointer: one worker's checkpoints: those beside training, and those that are made at once
// where training stops.
// Promises   nothing is written without a directory. A share that this worker has called durable is
//            not removed by it unless all agreed: somebody may be committing it.
// Does not   decide (trainer/save/save_schedule.h), vote, or choose what to resume from
//            (trainer/save/resume.h).
// Threads    one; writing and committing run in threads of its own.
// Errors     those of ckpt/save.h; kExists: another job saves in this directory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "trainer/save/at_once.h"
#include "trainer/save/beside.h"
#include "trainer/save/mirror_wait.h"
#include "trainer/save/tools.h"

namespace keel {

class Checkpointer {
 public:
  static Result<std::unique_ptr<Checkpointer>> Open(TrainState& state, CheckpointConfig config,
                                                    Files& files, Clock& clock);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  const CheckpointConfig& config() const { return tools_.config; }
  bool saves() const { return tools_.config.saves(); }
  SaveTerms terms() const { return tools_.terms(); }

  // Whoever is not rank 0 lets go of the directory.
  void BeginEpoch(const SavePlace& place);
  // After BeginEpoch(), once it is known that what is saved is of this job.
  void BeginMirroring();
  // What the votes have not decided is given up, and wanted again.
  void EndEpoch();
  // This worker saves nothing more.
  void LetGo();
  // There is a deadline for what is saved from now on: retention does not count against it.
  void Hurry() { tools_.committer.Hurry(); }

  HeldDirectory& directory() { return tools_.directory; }
  SaveBeside& beside() { return beside_; }
  SaveAtOnce& at_once() { return at_once_; }
  bool mirrors() const { return saves() && tools_.mirror.wanted(); }
  Mirror& mirror() { return tools_.mirror; }
  // For the state's step, which is saved.
  MirrorWait WaitForMirror(bool all);
  // By a worker that leaves without the others: ends the epoch, then saves all of the state.
  Status SaveAlone(const DiskWaiting& waiting, std::optional<TimePoint> deadline = std::nullopt);

  // What it would take to save one of so many equal shares; nothing: no save tells.
  std::optional<Duration> ExpectedSave(int shares) const { return tools_.ExpectedSave(shares); }
  // The newest whole checkpoint; nothing: there is none, or the disk does not tell.
  std::optional<uint64_t> NewestSaved() const;
  // What a worker that leaves holds beyond it.
  void TellUnsaved(const char* note) const;
  // The newest that this worker committed since this was last asked.
  std::optional<uint64_t> TakeCommitted() { return tools_.committer.TakeCommitted(); }

 private:
  Checkpointer(TrainState& state, CheckpointConfig config, Files& files, Clock& clock,
               Layout layout);

  SaveTools tools_;
  SaveBeside beside_;
  SaveAtOnce at_once_;
};

}  // namespace keel
