// BucketHold: a prefix of a bucket that one worker holds for its whole job. A bucket has no locks
// that end with their holder, so a lease is held there (store/lease/object_lease.h), by beats.
// Promises   of the jobs that save below a prefix, one holds it. Whoever has lost it finds that out
//            by its next beat, and IsInPlace() is false from then on.
// Does not   keep a holder that stands still from anything: a commit is safe without this, since
//            nothing takes a manifest's place.
// Threads    one; beats in a thread of its own.
// Errors     as trainer/save/job_directory.h; kInvalid also where the store cannot be saved in
//            (store/lease/object_probe.h).
// Lifetime   keeps the bucket by reference, for as long as its store takes to answer, which may be
//            after the destructor has returned (it waits for a second).
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "store/lease/object_lease.h"
#include "trainer/save/job_directory.h"
#include "trainer/save/job_locks.h"

namespace keel {

// A holder beats so often. One that was quiet for the second time is gone.
inline constexpr Duration kHoldBeat = std::chrono::seconds(5);
inline constexpr Duration kHoldQuiet = std::chrono::seconds(15);
static_assert(2 * kHoldBeat < kHoldQuiet,
              "one beat may be lost: by an error, or by the try of a request that is not answered");
// How long a job waits for a holder of its own name, which may be the job that was killed just now.
inline constexpr Duration kBucketHoldLimit = std::chrono::seconds(20);

// What a claim says of who made it.
struct BucketHolder {
  std::string words;     // for people
  std::string job;       // its name
  std::string process;   // trainer/save/process_mark.h
};
std::string BucketHolderText(const BucketHolder& holder);
// All empty where it cannot be read.
BucketHolder ParseBucketHolder(const std::string& text);

struct HoldSight {
  LeaseSight lease;
  std::string claim;            // the name of the claim
  Duration quiet{0};            // of its holder, by the store's clock
  bool is_process_gone = false; // it was one of this machine
};

struct HoldVerdict {
  enum class Kind { kClaim, kWait, kRefused };
  Kind kind = Kind::kClaim;
  std::string why;
};
// `former`: the claim of a member of this very job that is not in its epoch any more; or "".
HoldVerdict JudgeHold(const HoldSight& sight, const std::string& job, const std::string& former);

class BucketHold : public JobDirectory {
 public:
  static Result<std::unique_ptr<JobDirectory>> Take(const BucketPlace& place, Clock& clock,
                                                    Random& random, const std::string& root,
                                                    const JobHolder& holder,
                                                    const std::string& former, Duration limit);
  ~BucketHold() override;

  const std::string& id() const override { return id_; }
  bool IsInPlace() const override;

  static Status Look(const BucketPlace& place, const std::string& root, const std::string& id);

 private:
  struct Beating;   // shared with its thread, which may outlive this
  BucketHold(std::unique_ptr<ObjectLease> lease, std::string root);
  static void Beat(Beating& beating);

  const std::string id_;
  const std::shared_ptr<Beating> beating_;
};

}  // namespace keel
