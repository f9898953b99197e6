// StepPlace: where one writer of an attempt puts its shard, and where the manifest appears: the
// step's directory on a disk, or the keys below its prefix in a bucket.
//   Prepare -> MakeShard -> (its bytes) -> KeepShard -> [one writer] Publish
// Promises   a shard whose KeepShard() returned Ok is whole and durable, under its name. A manifest
//            appears whole, and takes no other one's place. Nobody who keeps to ckpt/removal.h
//            removes the shard while this lives.
// Does not   know what is in the files, or whether the step is committed (ckpt/save.h does).
// Threads    one at a time.
// Errors     those of base/files.h and base/objects.h.
// Lifetime   keeps the files by reference.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "ckpt/names.h"
#include "ckpt/shard_writer.h"

namespace keel {

struct StepPlan {
  std::string root;
  std::string step_dir;   // below it
  ShardName shard;        // of this writer
};

class StepPlace {
 public:
  // On a disk or in a bucket, as its root says.
  static Result<std::unique_ptr<StepPlace>> At(Files& files, StepPlan plan);
  StepPlace() = default;
  StepPlace(const StepPlace&) = delete;
  StepPlace& operator=(const StepPlace&) = delete;
  virtual ~StepPlace() = default;

  // Whether what is put here is kept from others by locks, and can be removed by its name. Where
  // not, what was given up stays until it is old (ckpt/removal.h): a request that had no answer may
  // still take effect, such as the put of a manifest that names it.
  virtual bool has_locks() const = 0;
  // Makes what must be there before a shard can.
  virtual Status Prepare() = 0;
  // After Prepare(), by whoever has no name of its own for the attempt. From here on nobody else
  // makes or removes what has this shard's name, where there are locks. kExists: somebody is at it.
  virtual Status KeepOthersOut() { return Ok(); }
  // After KeepOthersOut(): removes what one that died left under this shard's name.
  virtual void RemoveLeftover() {}
  // What is impossible here is left out.
  virtual WriteOptions Adapt(WriteOptions options) const { return options; }
  // An empty file, whose bytes are durable after its Sync(). A raised `cancel` ends what waits for
  // the place.
  virtual Result<std::unique_ptr<File>> MakeShard(uint64_t bytes_max, bool direct,
                                                  Progress* progress) = 0;
  virtual Status KeepShard() = 0;
  // Where there are locks: removes it, if that is possible.
  virtual void DropShard() = 0;
  // `may_appear` is asked once nothing but the appearance is missing.
  virtual Status Publish(const std::string& manifest,
                         const std::function<Status()>& may_appear) = 0;
  // Leave nothing of the step that nobody else has something in.
  virtual void Leave() = 0;
};

// The two kinds.
std::unique_ptr<StepPlace> MakeDirStep(Files& files, StepPlan plan);
std::unique_ptr<StepPlace> MakeBucketStep(Files& files, BucketPlace root, StepPlan plan);

}  // namespace keel
