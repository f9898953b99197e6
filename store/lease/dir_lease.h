// DirLease: a lease in a directory that all hosts of a job share (NFS, Lustre, CephFS ...).
//
//   DIR/JOB.lease/term-7       the claim of term 7: put_if_absent.h
//   DIR/JOB.lease/beat-7       the beat of its holder, renamed into place each time
//
// Promises   as store/lease/lease.h. Leases of several jobs may be in one DIR: each has its folder,
//            and a claim names the job. What others have damaged is never taken for a claim that
//            can be read, and never keeps anybody from claiming the next term.
// Does not   notice that DIR is another directory on another host, such as a mount point without
//            its mount. Remove the folder of a job that is over: it holds kTermsKept claims.
// Threads    one at a time. Errors: as store/lease/lease.h; each names the directory.
// Lifetime   keeps `files` by reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "store/lease/claim_record.h"
#include "store/lease/lease.h"
#include "store/lease/lease_names.h"

namespace keel {

class DirLease : public Lease {
 public:
  // Older claims are removed by whoever claims a term. A claimant that is late by more finds, once
  // its claim is in place, that there is a higher one.
  static constexpr int64_t kTermsKept = 8;

  // Refuses a directory that is not there, cannot be written, or is not atomic, in one sentence.
  static Result<std::unique_ptr<DirLease>> Open(Files& files, Random& random,
                                                const std::string& dir, LeaseOwner owner);

  // Only reads: nothing is made, probed or written there, so anybody may look, as the workers of a
  // job do. No claim yet, and no folder of a lease at all: term 0 and kNotFound.
  static Result<LeaseSight> LookInto(Files& files, const std::string& folder,
                                     const std::string& job);

  Status Claim(int64_t term, const std::string& text) override;
  Status Beat() override;
  Result<LeaseSight> Look() override;
  Status Release() override;

  const std::string& folder() const { return folder_; }

 private:
  DirLease(Files& files, std::string folder, LeaseOwner owner, std::string claimant);

  Status Prepare(const std::string& dir, Random& random);
  Result<int64_t> HighestTerm();   // 0: there is none
  Result<ClaimRecord> ReadClaim(int64_t term);
  // Empty: there was none yet.
  Result<std::string> ReadBeat(int64_t term);
  // Ok: this object has that term, and there is no higher one.
  Status CheckHeld(int64_t term);
  Status WriteBeat(bool released);
  void Prune();
  Error About(const Error& error) const;

  Files& files_;
  const std::string folder_;
  const LeaseOwner owner_;
  const std::string claimant_;
  int64_t term_ = 0;          // that was claimed last; 0: none
  int64_t beats_ = 0;
};

}  // namespace keel
