// EtcdLease: a lease that a thread keeps alive; keys that hang on it vanish when it ends.
// Promises   `alive()` is never true after etcd may have ended the lease, by our own clock: it
//            counts from the moment at which the last keepalive that was answered was sent. The
//            destructor stops the thread and gives the lease back.
// Does not   come back to life: once it is not alive for good (`over()`), grant another.
//            End at once with its process: its keys stay for up to the lease's time.
// Threads    any.
// Errors     of Grant(): those of EtcdClient.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "store/cancel.h"
#include "store/etcd/client.h"

namespace keel {

class EtcdLease {
 public:
  // `ttl` in whole seconds; etcd takes at least about 2 s (more than its election timeout).
  static Result<std::unique_ptr<EtcdLease>> Grant(const EtcdAccess& access,
                                                  std::chrono::seconds ttl, Duration limit);
  // Keeps alive a lease that somebody else was granted, with the same `ttl`. It is not given back:
  // it ends once nobody keeps it. kStaleEpoch: it is over.
  static Result<std::unique_ptr<EtcdLease>> Share(const EtcdAccess& access, int64_t id,
                                                  std::chrono::seconds ttl, Duration limit);
  ~EtcdLease();
  EtcdLease(const EtcdLease&) = delete;
  EtcdLease& operator=(const EtcdLease&) = delete;

  int64_t id() const { return id_; }
  std::chrono::seconds ttl() const { return ttl_; }
  // Whether its keys are surely there.
  bool alive() const;
  // etcd has said that it has ended.
  bool over() const;

  // Tells etcd now that we live, besides what the thread does. kStaleEpoch: the lease is over.
  Status Beat(Duration limit);
  // Ends the lease and with it all keys that hang on it. One that is over already is no error.
  Status Revoke(Duration limit);
  // Stops keeping it alive: it ends by itself after its time. The destructor does not end it.
  void LetExpire();

 private:
  EtcdLease(const EtcdAccess& access, int64_t id, std::chrono::seconds ttl, TimePoint granted);
  Status Keep(EtcdClient& client, Duration limit);
  void KeepAlive();
  void StopThread();

  const EtcdAccess access_;
  const int64_t id_;
  const std::chrono::seconds ttl_;
  const CancelToken stop_;
  EtcdClient client_;    // guarded by client_mutex_: that of Beat() and Revoke()
  std::mutex client_mutex_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  TimePoint alive_until_;       // guarded by mutex_
  bool over_ = false;           // guarded by mutex_
  bool is_stopping_ = false;    // guarded by mutex_
  bool may_expire_ = false;     // guarded by mutex_
  std::thread thread_;
};

}  // namespace keel
