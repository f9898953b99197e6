// Names and values as the store knows them.
#include "store/etcd/store_watch.h"

#include <utility>

namespace keel {

EtcdStoreWatch::EtcdStoreWatch(const EtcdAccess& access, const EtcdKeys& keys,
                               const EtcdRange& range, int64_t from_revision, Duration limit)
    : cut_(keys.Data("").size()),
      limit_(limit),
      watch_(access, range, from_revision),
      client_(access),
      values_(client_, keys, 0) {}

// An error while a large value is read leaves the changes for the next call.
Result<std::vector<EtcdChange>> EtcdStoreWatch::Next(Duration limit, const CancelToken& cancel) {
  if (changes_.empty()) {
    KEEL_TRY_ASSIGN(changes_, watch_.Next(limit, cancel));
  }
  for (; read_ < changes_.size(); ++read_) {
    EtcdChange& change = changes_[read_];
    const std::string key = change.key.substr(cut_);
    if (change.value) {
      KEEL_TRY_ASSIGN(change.value, values_.Read(key, *change.value, change.revision, limit_));
    }
    change.key = key;
  }
  read_ = 0;
  return std::exchange(changes_, {});
}

}  // namespace keel
