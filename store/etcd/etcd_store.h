// EtcdStore: the board in an etcd cluster, which outlives every host of the job.
// Promises   the contract of store/store.h. An operation whose answer is lost is settled with
//            another member: it happens once or not at all, and the outcome that it returns is the
//            true one (store/etcd/writer.h). All keys lie below the job's prefix, and hang on the
//            lease, if there is one. With a fence, nothing is written once the claim is gone.
// Does not   give kPeerLost: it stays of use whatever the cluster does. Keep the lease alive
//            (store/etcd/lease.h); remove its keys at the end where it has no lease.
// Threads    as store/store.h says.
// Errors     those of EtcdClient; kTimeout of a write: nobody knows yet whether it happened;
//            kStaleEpoch: the lease or the claim is gone, and nothing was written.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/etcd/access.h"
#include "store/etcd/client.h"
#include "store/etcd/keys.h"
#include "store/etcd/store_watch.h"
#include "store/etcd/values.h"
#include "store/etcd/writer.h"
#include "store/store.h"

namespace keel {

struct EtcdStoreOptions {
  EtcdAccess access;
  std::string prefix;    // of all keys of the job: "keel/<job>/"
  Duration limit = std::chrono::seconds(10);   // for each operation; Wait() has its own
  int64_t lease = 0;     // 0: keys stay
  std::optional<EtcdFence> fence = {};
  // Raised when nobody needs the store any more: operations then end with kCancelled, or with
  // kTimeout where a write may have happened.
  CancelToken ending = CancelToken::Never();
};

class EtcdStore : public Store {
 public:
  // Also looks whether the cluster lets us in.
  static Result<std::unique_ptr<EtcdStore>> Open(EtcdStoreOptions options);
  ~EtcdStore() override;

  Status Set(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> Get(const std::string& key) override;
  Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) override;
  Result<int64_t> Add(const std::string& key, int64_t delta) override;
  Result<Outcome> CompareSet(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& desired) override;
  Result<bool> Delete(const std::string& key) override;
  Status Wait(const std::vector<std::string>& keys, Duration limit,
              const CancelToken& cancel = CancelToken::Never()) override;
  Result<std::unique_ptr<Store>> Clone() override;

  // The changes of all keys that begin so. `from_revision` 0: from now on.
  std::unique_ptr<EtcdStoreWatch> Watch(const std::string& prefix, int64_t from_revision) const;

  // All keys that begin so, with their values, as they were at one revision: watch from the next.
  struct Listing {
    std::vector<std::pair<std::string, std::string>> keys;
    int64_t revision = 0;
  };
  Result<Listing> List(const std::string& prefix);

  // The member that is asked first.
  EtcdMember member();

 private:
  // What a key holds: nothing, or a value as of a revision of the cluster.
  struct Held {
    std::optional<std::string> value;
    int64_t mod_revision = 0;   // 0: it is absent
  };
  explicit EtcdStore(EtcdStoreOptions options);
  Result<Held> Read(const std::string& key, TimePoint end);
  Result<Held> HeldIn(const std::string& key, const EtcdReply& reply, size_t index, TimePoint end);
  Result<EtcdReply> ReadMany(const std::vector<std::string>& keys, bool keys_only, Duration limit,
                             const CancelToken& cancel);
  Result<std::vector<std::string>> Missing(const std::vector<std::string>& keys, Duration limit,
                                           const CancelToken& cancel, int64_t* revision);
  Status AwaitKeys(const std::vector<std::string>& keys, std::vector<std::string> missing,
                   int64_t revision, TimePoint end, Duration limit, const CancelToken& cancel);
  TimePoint End() const { return RealClock().Monotonic() + options_.limit; }
  static Duration Left(TimePoint end);

  const EtcdStoreOptions options_;
  const EtcdKeys keys_;
  std::mutex mutex_;      // one operation at a time
  Random random_;
  EtcdClient client_;
  EtcdWriter writer_;
  EtcdValues values_;
};

}  // namespace keel
