// Checkpointer: one worker's part in saving: beside training (copy, write, say how far it is,
// commit or give up as the votes decide), and at once where training stops.
// Promises   training never waits for the disk, but for the copy where it is not done when the next
//            step is applied. A share that this worker has called durable in a vote is not removed
//            by it unless all agreed: somebody may be committing it. A failure is loud, and costs
//            the checkpoint only. Nothing is written without a directory.
// Does not   decide (trainer/save/save_schedule.h), vote, or choose what to resume from
//            (trainer/save/resume.h).
// Threads    one; writing and committing run in threads of its own.
// Errors     those of ckpt/save.h; kExists: another job saves in this directory.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "ckpt/background.h"
#include "ckpt/retention.h"
#include "ckpt/snapshot.h"
#include "trainer/numerics/run_config.h"
#include "trainer/save/fit.h"
#include "trainer/save/job_directory.h"
#include "trainer/save/save_schedule.h"
#include "trainer/save/watch.h"
#include "trainer/state/image.h"
#include "trainer/state/train_state.h"

namespace keel {

// How all of a group save: a save that one begins and others do not would never end.
struct SaveTerms {
  uint64_t every_steps = 0;
  Codec codec = Codec::kPlanes;

  bool operator==(const SaveTerms&) const = default;
  // "--save-every 10, --codec planes"
  std::string Text() const;
};

struct CheckpointConfig {
  std::string root = {};         // empty: nothing is saved
  uint64_t every_steps = 0;      // 0: not by steps
  Duration every_time{0};        // 0: not by the clock
  Codec codec = Codec::kPlanes;
  RetentionPolicy retention = {};
  std::string fingerprint = {};  // of this worker
  std::string job = {};          // its name, for people
  SavedConfig config = {};       // of this worker
};

class Checkpointer {
 public:
  // While the disk is waited for, by a worker that others may be waiting for.
  struct Waiting {
    // Called now and then, if the disk gets on or may do so yet.
    std::function<void()> tick = [] {};
    // An error ends the wait, and is what comes of it.
    std::function<Status()> look = [] { return Ok(); };
  };
  // What the epoch gives: our place in it, and what nobody else has.
  struct Place {
    int rank = 0;
    int world = 1;
    std::string prefix;
    std::string fingerprint;   // of rank 0, for all to write the same
    SavedConfig config = {};   // likewise
    std::optional<SaveTerms> terms = {};   // likewise; nothing: our own
  };

  static Result<std::unique_ptr<Checkpointer>> Open(TrainState& state, CheckpointConfig config,
                                                    Files& files, Clock& clock);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  const CheckpointConfig& config() const { return config_; }
  bool saves() const { return !config_.root.empty(); }

  // --- Epochs ---

  // Who is not rank 0 lets go of the directory.
  void BeginEpoch(const Place& place);
  // What the votes have not decided is given up, and wanted again.
  void EndEpoch();
  // Rank 0: the directory can be written, and is no other living job's.
  Status HoldDirectory(Duration limit = JobDirectory::kHoldLimit);
  // Where it is held, but was removed or moved away with all that is in it: holds it again.
  Status HoldAnewWhereLost();
  // What others find it by; empty: it is not held, or nobody can tell.
  std::string directory_id() const;
  // That what rank 0 holds is the directory we save in; looks until it has once been so.
  Status CheckDirectory(const std::string& id);
  SaveTerms terms() const {
    return place_.terms.value_or(SaveTerms{config_.every_steps, config_.codec});
  }

  // --- Beside training ---

  void WantSave() { wanted_ = true; }
  // Before the next step is applied: the copy of the last one must be done.
  void AwaitCopy();
  // For the vote.
  SaveVote Vote();
  // After a step that did not end training: begins, commits or gives up.
  void Act(const SaveDecision& decision);

  // --- With little time ---

  // What it would take to save one of so many equal shares; nothing: no save tells.
  std::optional<Duration> ExpectedSave(int shares) const;
  // The newest whole checkpoint; nothing: there is none, or the disk does not tell.
  std::optional<uint64_t> NewestSaved() const;
  // What a worker that leaves holds beyond it.
  void TellUnsaved(const char* note) const;
  // The newest that this worker committed since this was last asked.
  std::optional<uint64_t> TakeCommitted() { return std::exchange(committed_, std::nullopt); }
  // The save under way, instead of a new one: waits until our share is durable.
  Status FinishShare(const Waiting& waiting);
  // What all agreed on then: rank 0 has committed it, or nobody shall.
  void EndShare(const Status& committed);

  // --- At once, all members of the epoch ---

  // What is under way and not decided is given up.
  Status EndUnderWay(const Waiting& waiting);
  bool IsCommitted() const;
  Status WriteShare(const Waiting& waiting);
  // Rank 0, when all shares are known to be durable.
  Status CommitShares();
  void DropShare();

  // --- At once, without the others ---

  Status SaveAlone(const Waiting& waiting);

 private:
  struct Committed {
    Status status;
    CommitReport report;
    Duration took{0};
    std::string retention;   // what went wrong there; empty: nothing
  };

  Checkpointer(TrainState& state, CheckpointConfig config, Files& files, Clock& clock,
               Layout layout);
  Result<SavePlan> Plan(const std::string& attempt, uint32_t part, uint32_t parts) const;
  Metadata Describe() const;
  bool IsBuffer(size_t tensor) const;
  Status Begin();
  Status CopyAndWrite(SavePlan plan, const std::vector<std::span<const std::byte>>& share,
                      Duration spread);
  Result<HostBytes> ShareOf(const SavePlan& plan, bool alias_buffers) const;
  void TakeOutcome();
  void TellIfLate(const char* note);
  void CollectCommit();
  void AwaitCommit();
  void Report(uint64_t step, const Committed& committed);
  void GiveUp(const std::string& why);
  Status WriteNow(SavePlan plan, const Waiting& waiting);
  Status AwaitWriter(const Waiting& waiting);
  Status AwaitDisk(const Waiting& waiting, const std::function<bool(Duration limit)>& is_done);
  void LeaveWriter();
  bool TakeLeftWriter();
  Committed Commit(std::unique_ptr<Save> save);
  Status HoldLocked(Duration limit);   // under directory_mutex_
  void Fail(const Error& error);
  void ReserveRoom();

  TrainState& state_;
  const CheckpointConfig config_;
  Files& files_;
  Clock& clock_;
  const Layout layout_;
  Place place_;
  mutable std::mutex directory_mutex_;
  std::unique_ptr<JobDirectory> directory_;   // guarded by directory_mutex_
  bool directory_seen_ = false;
  Random random_{EntropySeed()};

  SaveSpeed speed_;
  bool wanted_ = false;
  TimePoint last_begin_;
  SaveWatch watch_;
  SaveState saving_ = SaveState::kIdle;   // kCommitting is told by commit_
  bool said_durable_ = false;
  uint64_t saving_step_ = 0;
  std::thread copier_;
  Status copied_;                          // the copier's, until it is joined
  std::shared_ptr<CopiedSnapshot> snapshot_ = std::make_shared<CopiedSnapshot>();
  std::atomic<bool> ending_{false};
  bool reserved_ = false;
  std::thread reserver_;                   // makes room in snapshot_; the copier joins it
  BackgroundSave background_;
  bool writer_left_ = false;               // it ends in its own time, and nobody wants its outcome
  std::unique_ptr<Save> share_;            // durable, not yet decided
  uint64_t committing_step_ = 0;
  std::optional<uint64_t> committed_;
  std::future<Committed> commit_;
};

}  // namespace keel
