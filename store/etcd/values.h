// EtcdValues: values of any size that store/store.h allows, where etcd takes 1.5 MiB at a time.
// A value of up to kEtcdPartBytes lies in its key as it is. A larger one is written in parts first,
// and its key gets a reference to them. A value that begins like a reference is written in parts,
// too, whatever its size, so that the two are never mixed up.
// Promises   a reader gets a value whole, as it was at the revision of its reference; the write
//            that replaces a value removes its parts in the same transaction.
// Does not   remove the parts of a writer that dies between them and the reference: the next write
//            of that key does, or the end of the lease.
// Threads    one at a time. Errors: those of EtcdClient; kCorrupt (parts that do not fit together).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/etcd/client.h"
#include "store/etcd/keys.h"
#include "store/etcd/messages.h"

namespace keel {

inline constexpr size_t kEtcdPartBytes = 512 << 10;

class EtcdValues {
 public:
  // `client` is kept and must outlive this object.
  EtcdValues(EtcdClient& client, EtcdKeys keys, int64_t lease);

  // True if the key holds the value's own bytes.
  static bool IsPlain(std::string_view value);

  // Writes what must be there before the transaction that sets the key.
  struct Prepared {
    std::string held;                  // what the key itself will hold
    std::vector<std::string> parts{};  // their keys
    std::string id{};                  // of these parts; empty: there are none
  };
  Result<Prepared> Prepare(const std::string& key, const std::string& value, Duration limit);
  // Adds to `txn` that it sets the key and removes the parts of its former value.
  void AddSet(const std::string& key, const Prepared& prepared, EtcdTxn& txn) const;
  void AddDelete(const std::string& key, EtcdTxn& txn) const;

  // The value that the key `held` at `revision`. kNotFound: that revision is compacted by now.
  Result<std::string> Read(const std::string& key, const std::string& held, int64_t revision,
                           Duration limit);

 private:
  EtcdClient& client_;
  const EtcdKeys keys_;
  const int64_t lease_;
  Random random_;
};

}  // namespace keel
