// HeldDirectory: the checkpoint directory, as this worker finds or holds it from epoch to epoch.
// Promises   rank 0 holds it (trainer/save/job_directory.h), and takes hold again where the
//            directory was removed or moved away with all that is in it.
// Does not   write checkpoints. Wait for a store that does not answer: who asks it goes on by
//            itself, so files and clock of a bucket live as long as the process.
// Threads    any: a commit looks at it beside training.
// Errors     kExists: another job saves there; else those of base/files.h.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/result.h"
#include "trainer/save/fence.h"
#include "trainer/save/job_directory.h"

namespace keel {

class HeldDirectory {
 public:
  // `root`: empty: there is none, and all is well. `job`: its name. `fence` outlives this.
  // `option`: as which `root` is given.
  HeldDirectory(Files& files, Clock& clock, std::string root, std::string job, const Fence& fence,
                std::string option = kCheckpointDirOption);
  ~HeldDirectory();

  // The directory can be written, and is no other living job's.
  Status Hold(Duration limit = JobDirectory::kHoldLimit,
              OlderLocks older = OlderLocks::kPassOver);
  Status HoldAnewWhereLost();
  void LetGo();
  // What others find it by; empty: it is not held, or nobody can tell.
  std::string id() const;
  // Of a holder of this very job.
  void Know(const std::string& id);
  // That what rank 0 holds is the directory we save in; looks until it has once been so.
  Status Check(const std::string& id);

 private:
  struct Asked;
  // All under mutex_.
  Status HoldLocked(Duration limit, OlderLocks older);
  Status AskBeside(Duration limit);
  void StopAsking();

  Files& files_;
  Clock& clock_;
  const std::string root_;
  const std::string job_;
  const Fence& fence_;
  const std::string option_;
  const bool is_in_bucket_;
  Random random_{EntropySeed()};
  mutable std::mutex mutex_;
  std::unique_ptr<JobDirectory> held_;   // guarded by mutex_
  bool seen_ = false;                    // guarded by mutex_
  std::shared_ptr<Asked> asked_;         // guarded by mutex_; null: no answer is awaited
  std::string known_;                    // guarded by mutex_: the last id that this job held it by
};

}  // namespace keel
