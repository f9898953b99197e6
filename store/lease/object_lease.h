// ObjectLease: a lease in a bucket that all hosts of a job reach.
//
//   PREFIX/JOB.lease/term-7    the claim of term 7, put where none is
//   PREFIX/JOB.lease/beat-7    the beat of its holder, replaced each time
//
// Promises   as store/lease/lease.h, in a bucket that keeps base/objects.h. Leases of several jobs
//            may be below one prefix.
// Does not   find out whether the bucket ignores conditions (object_probe.h does).
// Threads    one at a time. Errors: as store/lease/lease.h; each names the folder.
// Lifetime   keeps the bucket by reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/objects.h"
#include "base/random.h"
#include "store/lease/claim_record.h"
#include "store/lease/lease.h"

namespace keel {

class ObjectLease : public Lease {
 public:
  // As DirLease has it.
  static constexpr int64_t kTermsKept = 8;

  // `prefix`: "run/a/", or "" for the whole bucket. Asks nothing yet. kInvalid: names too long.
  static Result<std::unique_ptr<ObjectLease>> Make(Objects& bucket, Random& random,
                                                   const std::string& prefix, LeaseOwner owner);

  // Only reads. `folder`: the key of a lease's folder ("run/a/job.lease").
  static Result<LeaseSight> LookInto(Objects& bucket, const std::string& folder,
                                     const std::string& job);

  Status Claim(int64_t term, const std::string& text) override;
  Status Beat() override;
  Result<LeaseSight> Look() override;
  Status Release() override;

  // How old what Look() saw last was then, the beat or a claim without one, by the store's clock,
  // which names whole seconds. Longer than any limit: nobody holds the lease.
  Duration quiet() const { return quiet_; }
  // Names the claim of that term, and no other one's.
  Result<std::string> ClaimName(int64_t term);
  // Of the term that was claimed last.
  std::string OwnClaimName() const;

 private:
  ObjectLease(Objects& bucket, std::string folder, LeaseOwner owner, std::string claimant);

  struct Terms {
    std::vector<ObjectInfo> claims;   // from the lowest up
    std::vector<ObjectInfo> beats;
    int64_t highest() const;
  };
  Result<Terms> List();
  Result<std::string> Read(const std::string& key);
  Result<ClaimRecord> ReadClaim(int64_t term);
  Result<std::string> ReadBeat(int64_t term);   // empty: there is none
  Status CheckHeld(int64_t term);
  Status WriteBeat(bool released);
  void Prune(const Terms& terms);

  Objects& bucket_;
  const std::string folder_;   // "run/a/job.lease/"
  const LeaseOwner owner_;
  const std::string claimant_;
  int64_t term_ = 0;           // that was claimed last; 0: none
  int64_t beats_ = 0;
  Duration quiet_ = Duration::max();
};

}  // namespace keel
