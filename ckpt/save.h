// Save: one attempt to write a checkpoint, seen by one of its writers.
//   Begin -> WriteShard (all writers) -> [the group votes that all are durable] -> Commit (one)
// Promises   once Commit() has returned Ok, the checkpoint is whole and durable; before, it does
//            not exist. A committed checkpoint is never overwritten (kExists). Whatever happens,
//            other steps are untouched. What a failed attempt leaves bears its name; gc removes
//            it.
// Does not   vote; delete older checkpoints (ckpt/retention.h).
// Threads    one at a time; WriteShard() starts threads of its own.
// Errors     kExists: the step is committed already; kNotFound: a shard is missing at Commit();
//            those of Files. They name step and file.
// Lifetime   keeps gc away from the attempt's files (ckpt/step_place.h); files outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/manifest.h"
#include "ckpt/shard_writer.h"

namespace keel {

struct SavePlan {
  std::string root = {};   // ROOT/step-000001200/ is made in it
  std::string attempt = {};  // NewAttempt(): the same for all writers, new for each attempt
  uint32_t part = 0;
  uint32_t parts = 1;
  Description description = {};  // equal for all writers, to the last value
};

struct CommitReport {
  std::string step_dir;
  uint64_t stored_bytes = 0;   // of all shards
  uint64_t content_bytes = 0;  // of all tensors
};

class StepPlace;

class Save {
 public:
  static Result<std::unique_ptr<Save>> Begin(Files& files, SavePlan plan);
  Save(const Save&) = delete;
  Save& operator=(const Save&) = delete;
  ~Save();

  // Call it once. On success the shard and its name are durable.
  Result<ShardSummary> WriteShard(TensorSource& source, const WriteOptions& options);

  // Called by one writer, when all shards are known to be durable. It reads the shards' footers, so
  // they must be visible here. After an error from the last sync, the checkpoint may or may not
  // exist after a power loss; the error says so.
  // `may_appear` is asked when all is written and only the manifest's name is missing: an error
  // keeps it from appearing.
  Result<CommitReport> Commit(int64_t saved_at_ns,
                              const std::function<Status()>& may_appear = [] { return Ok(); });

  // Removes what this writer wrote, if possible: for when the group gave up. Does nothing if there
  // is a manifest, since it may name this attempt's shards; nor in a bucket (ckpt/step_place.h).
  void Abandon();

  const SavePlan& plan() const { return plan_; }
  const std::string& step_dir() const { return step_dir_; }

 private:
  Save(Files& files, SavePlan plan);
  ShardName Name(uint32_t part) const { return {plan_.attempt, part, plan_.parts}; }
  Status Prepare();
  Status CheckUncommitted() const;
  Result<Manifest> BuildManifest(int64_t saved_at_ns) const;

  Files& files_;
  const SavePlan plan_;
  const std::string step_dir_;
  std::unique_ptr<StepPlace> place_;   // null: not begun
};

// kInvalid where `root`, into which a checkpoint is to go, is one itself or has the name of one.
Status CheckTakesSteps(Files& files, const std::string& root);

// Saves everything by a single writer. `attempt` names the attempt. On failure it removes the
// directories it made. kInvalid: `root` is a checkpoint itself.
Result<CommitReport> SaveCheckpoint(Files& files, SavePlan plan, TensorSource& source,
                                    const WriteOptions& options, int64_t saved_at_ns);

}  // namespace keel
