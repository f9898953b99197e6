// JobLocks: the locks by which a job holds its checkpoint directory.
//
// The job's worker holds `job.lock`. A worker whose machine vanished or stands still may keep it
// for long. Where the job has a lease, that worker is fenced (trainer/save/fence.h) as soon as a
// later epoch is claimed. So a worker of a later epoch passes over the lock, and holds one of its
// own, `job-EPOCH.lock`. Whoever takes one of these locks then looks at all others.
//
// Promises   of all that hold a directory, those that are not passed over are one. The lock of
//            another job, of a job without a lease, and of an epoch that is not older than the own
//            one is never passed over.
// Does not   tell two runs of one name apart that share a lease: pass over nothing where a job
//            begins.
// Threads    one. Errors: kExists: another one holds it, and the message quotes it; else those of
//            base/files.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"

namespace keel {

// Waits for a lock that somebody else holds for a short time.
Result<std::unique_ptr<FileLock>> TakeLock(Files& files, Clock& clock, const std::string& path,
                                           const std::string& owner, Duration limit);

// Who holds a directory.
struct JobHolder {
  std::string job;          // its name
  std::string lease = {};   // the name of its lease, without blanks; empty: it has none
  int64_t epoch = 0;        // that it is in
};

// What the lock says of its holder, for people and for workers of later epochs.
std::string JobHolderText(const JobHolder& holder);

struct JobLock {
  std::unique_ptr<FileLock> lock;
  std::string path;
  bool passes_over = false;   // others hold locks of older epochs
};

enum class OlderLocks { kWaitFor, kPassOver };

// How long a lock that may be passed over is waited for: its holder may just be letting go of it.
inline constexpr Duration kPassOverAfter = std::chrono::milliseconds(500);

Result<JobLock> TakeJobLock(Files& files, Clock& clock, const std::string& root,
                            const JobHolder& holder, OlderLocks older, Duration limit);

// Removes the files of locks of the second kind that nobody holds.
void RemoveFreeJobLocks(Files& files, const std::string& root);

}  // namespace keel
