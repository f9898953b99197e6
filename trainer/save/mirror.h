// Mirror: copies what is committed in the checkpoint directory to a second place, such as a bucket,
// beside training. Rank 0 does it for all.
//   Begin -> [Wake -> copying -> retention there]* -> End
// Promises   training never waits for the mirror. A copy is verified on its way, and its manifest
//            comes last, so the mirror holds whole checkpoints, whenever this dies. What fails is
//            told, and tried again. Retention there never removes the newest one.
// Does not   choose (trainer/save/mirror_plan.h), or resume from there (trainer/save/resume.h).
// Threads    one, and any for Wake() and what is const; it copies in a thread of its own. A store
//            that gives no answer is not waited for: files and clock live as long as the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "ckpt/retention.h"

namespace keel {

struct MirrorPlaces {
  std::string from;                // where the job saves
  std::string to;                  // empty: there is no mirror
  RetentionPolicy retention = {};  // of both
};

class Mirror {
 public:
  // `job`, `lease`: as in CheckpointConfig.
  Mirror(Files& files, Clock& clock, MirrorPlaces places, std::string job, std::string lease);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  bool wanted() const { return !places_.to.empty(); }
  const std::string& to() const { return places_.to; }

  // At the beginning of a job: that no other job copies there. It waits for a holder of this very
  // job to be gone, but for no store; `tick` is called each second. kExists, kInvalid: nothing may
  // be copied there; else it will be tried again.
  Status Hold(int64_t epoch, const std::function<void()>& tick);
  // What others of the job find its holder by; empty: it is not held.
  std::string id() const;
  void Know(const std::string& id);
  // By rank 0, as soon as it is in another epoch.
  void BeginEpoch(int64_t epoch);
  // By rank 0, in each of its epochs: copies from now on, beginning with what is there already.
  // `made`: how far the job has got. What is newer, in either place, was passed over when it
  // resumed, since it could not be read: that stays, and counts for nothing. Empty: nothing was.
  void Begin(int64_t epoch, std::optional<uint64_t> made = {});
  // By whoever is not rank 0 any more. What is being copied is given up.
  void End();
  // There is a new checkpoint, of step `made`.
  void Wake(std::optional<uint64_t> made = {});
  // The step that is being copied, which must stay for that long.
  std::optional<uint64_t> under_way() const;
  // The newest of the job's that is known to be there.
  std::optional<uint64_t> newest() const;
  // Of all copies so far, the one under way too, which falls back when it fails.
  uint64_t bytes_copied() const;

  // Gives up the copy of another step: this one is waited for.
  void Prefer(uint64_t step);
  // Whether that step, or a newer one, is there within `limit`, and with `all` whatever is to be
  // there.
  bool AwaitMirrored(uint64_t step, Duration limit, bool all = false) const;
  // Why the last attempt failed; empty: it did not.
  std::string why_not() const;

 private:
  struct Work;
  std::shared_ptr<Work> Current() const;
  std::shared_ptr<Work> CurrentOrNew();
  static void Run(Work& work);

  Files& files_;
  Clock& clock_;
  const MirrorPlaces places_;
  const std::string job_;
  const std::string lease_;
  mutable std::mutex mutex_;
  std::shared_ptr<Work> work_;   // guarded by mutex_; null: nothing is copied
  bool is_running_ = false;      // work_ has its thread
  std::string known_;            // the id of the last holder
};

}  // namespace keel
