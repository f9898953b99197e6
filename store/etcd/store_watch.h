// EtcdStoreWatch: the changes of a store's keys, with the names and values that the store knows.
// Promises   what EtcdWatch promises (store/etcd/watch.h); a large value is delivered whole.
// Does not   need the store that made it, or disturb it.
// Threads    one at a time. Errors: those of EtcdWatch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/etcd/keys.h"
#include "store/etcd/values.h"
#include "store/etcd/watch.h"

namespace keel {

class EtcdStoreWatch {
 public:
  EtcdStoreWatch(const EtcdAccess& access, const EtcdKeys& keys, const EtcdRange& range,
                 int64_t from_revision, Duration limit);

  Status Begin(Duration limit, const CancelToken& cancel = CancelToken::Never()) {
    return watch_.Begin(limit, cancel);
  }
  // As EtcdWatch::Next(); the keys are those of the store.
  Result<std::vector<EtcdChange>> Next(Duration limit,
                                       const CancelToken& cancel = CancelToken::Never());
  const EtcdMember& member() const { return watch_.member(); }
  int64_t next_revision() const { return watch_.next_revision(); }

 private:
  const size_t cut_;       // so many bytes of each key are not the store's
  const Duration limit_;   // for reading a large value
  EtcdWatch watch_;
  EtcdClient client_;
  EtcdValues values_;
  std::vector<EtcdChange> changes_;   // taken from watch_ and not yet delivered
  size_t read_ = 0;                   // so many of them are as the store knows them
};

}  // namespace keel
