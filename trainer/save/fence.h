// Fence: whether the job has gone on in a later epoch than this worker's, as the job's lease says.
// A worker that stood still or was out of reach may not know, and must not commit.
// Promises   only looks: nothing is written or probed. Takes some seconds at most.
// Does not   keep anybody off where the lease cannot be read: see fence.cc.
// Threads    any.
// Errors     kStaleEpoch: a later epoch is claimed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

class Fence {
 public:
  // How long the own launcher may take to put this worker into an epoch that is claimed.
  static constexpr Duration kWordLimit = std::chrono::seconds(3);

  // `folder`: of the job's lease (store/lease/dir_lease.h); empty: it has none, and all is well.
  Fence(std::string folder, std::string job, Duration word_limit = kWordLimit);

  void BeginEpoch(int64_t number);
  Status Check() const;

  // The folder's name, the same on all hosts wherever they have its directory; without blanks.
  // Empty: there is no lease.
  std::string lease_name() const;
  int64_t epoch() const;

 private:
  const std::string folder_;
  const std::string job_;
  const Duration word_limit_;
  mutable std::mutex mutex_;
  mutable std::condition_variable begun_;
  int64_t epoch_ = 0;   // guarded by mutex_; 0: none yet
};

}  // namespace keel
