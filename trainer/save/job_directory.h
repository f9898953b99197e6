// JobDirectory: a checkpoint directory that one worker holds for its whole job, and that lets the
// job's other workers find out whether they save in the same one. In a bucket it is a prefix
// (trainer/save/bucket_hold.h).
// Promises   as long as it lives, no other living job holds that directory (whom of its own job it
//            passes over: trainer/save/job_locks.h), and a file with a name
//            of this holder's own is in it: a host whose path leads elsewhere does not see that
//            file. Each holder takes a new name, so no file system can remember that it was
//            absent.
// Does not   fail if that file cannot be made (a full disk): then nobody can tell, and id() is
//            empty.
// Threads    one.
// Errors     kExists: another job saves there; kInvalid: nobody can
//            (trainer/save/checkpoint_root.h); else those of base/files.h, naming the directory.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/result.h"
#include "trainer/save/checkpoint_root.h"
#include "trainer/save/job_locks.h"

namespace keel {

class JobDirectory {
 public:
  // How long to wait for another worker of this job to release the directory, or to be gone.
  static constexpr Duration kHoldLimit = std::chrono::seconds(5);

  // `former`: the id of a holder of this very job that is not in its epoch any more, if one is
  // known. `option`: as which `root` is given.
  static Result<std::unique_ptr<JobDirectory>> Hold(Files& files, Clock& clock, Random& random,
                                                    const std::string& root,
                                                    const JobHolder& holder, OlderLocks older,
                                                    Duration limit,
                                                    const std::string& former = "",
                                                    const std::string& option =
                                                        kCheckpointDirOption);
  JobDirectory() = default;
  virtual ~JobDirectory() = default;
  JobDirectory(const JobDirectory&) = delete;
  JobDirectory& operator=(const JobDirectory&) = delete;

  virtual const std::string& id() const = 0;
  // False: the directory was moved or removed together with its lock, which keeps nobody off any
  // more; or a worker of a later epoch has passed over that lock.
  virtual bool IsInPlace() const = 0;

  // Whether `root`, as this process sees it, is the directory of that id: Ok, or kNotFound.
  static Status Look(Files& files, const std::string& root, const std::string& id);
};

}  // namespace keel
