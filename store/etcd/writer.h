// EtcdWriter: writes transactions to etcd that are applied once or not at all, though answers may
// be lost and members may apply what they were sent long after.
// How:
//   1. Each writer has a key of its own, and each of its transactions also demands that this key is
//      as the writer left it, and changes it. So no transaction can be applied twice.
//   2. When an answer is lost, the writer changes its key by itself ("fence 7"). Whatever of it is
//      still on its way then comes too late. If its key does not let it, the key tells that the
//      transaction was applied ("op 6").
//   3. Only then is the transaction repeated, or taken for done.
// Promises   an error with kTimeout means that nobody knows whether it was applied; the next write
//            settles that first. All else that fails has written nothing.
// Threads    one at a time.
// Errors     those of EtcdClient; kStaleEpoch: the lease that the keys hang on is over, or the
//            claim that writes depend on is gone. Nothing was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/etcd/client.h"
#include "store/etcd/messages.h"

namespace keel {

// A key that must still be the one that was created at this revision.
struct EtcdFence {
  std::string key;
  int64_t create_revision = 0;
};

class EtcdWriter {
 public:
  // `lease` 0: what is written stays. `client` is kept and must outlive this object.
  EtcdWriter(EtcdClient& client, std::string key, int64_t lease, std::optional<EtcdFence> fence);

  // What the reply's `results` hold are the results of `otherwise`: those of `then` may be lost.
  Result<EtcdReply> Write(const EtcdTxn& txn, Duration limit);

  // Takes its key back, if it has written one: for a writer without a lease that will not be used
  // any more. One attempt.
  void Forget();

  // The error, or kStaleEpoch if it says that etcd does not know our lease.
  Error Explained(const Error& error) const;
  int64_t lease() const { return lease_; }

 private:
  EtcdTxn Complete(const EtcdTxn& txn, const std::string& note) const;
  Result<bool> WasApplied(const std::string& note, TimePoint end);
  Result<EtcdReply> WithoutOwn(EtcdReply reply) const;
  Error LeaseIsOver() const;

  EtcdClient& client_;
  const std::string key_;
  const int64_t lease_;
  const std::optional<EtcdFence> fence_;
  int64_t revision_ = 0;   // at which our key was written last; 0: never
  int64_t notes_ = 0;
  std::string unsettled_;  // the note of a transaction whose outcome is not known; empty: none
};

}  // namespace keel
