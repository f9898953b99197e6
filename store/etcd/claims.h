// EtcdClaims: numbered claims of one role in a job. A claim with a higher number (a term) takes the
// place of the one before, and each number is claimed once.
// Promises   a claim is made by a transaction that succeeds only if the term is higher than every
//            term claimed before, and that ends the claim before it. So terms never fall, no two
//            hosts hold the same one, and one claim at most is in force. It hangs on a lease that
//            is kept alive here: it ends with its process, within the lease's time. Writes that
//            carry `fence()` fail once it is gone.
// Does not   decide who should claim, or when. Remember the last term for longer than
//            kEtcdTermMemory after nobody keeps it: a job that is dead for so long leaves nothing.
// Threads    one at a time, but alive() may be asked from any.
// Errors     those of EtcdClient; kTimeout of Claim(): it is not known whether the claim was made,
//            and its lease is given back, so that it ends in any case.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/etcd/client.h"
#include "store/etcd/keys.h"
#include "store/etcd/lease.h"
#include "store/etcd/messages.h"
#include "store/etcd/writer.h"

namespace keel {

inline constexpr std::chrono::seconds kEtcdTermMemory = std::chrono::hours(1);

class EtcdClaims {
 public:
  // `ttl`: a claim whose holder is gone ends so much later; at least 2 s (store/etcd/lease.h).
  EtcdClaims(EtcdAccess access, const std::string& prefix, std::chrono::seconds ttl,
             Duration limit);
  // Gives its claim back.
  ~EtcdClaims();

  // The highest term that was ever claimed; empty: none was.
  struct Seen {
    int64_t term = 0;
    std::string text;
    bool is_alive = false;         // it is in force: neither released nor over
    int64_t create_revision = 0;   // of its key; 0 unless it is alive
  };
  Result<std::optional<Seen>> Look(const CancelToken& cancel = CancelToken::Never());

  // Claims `term`, with a text for those who look. False: it is not higher than the last one. A
  // claim that is held already is released first.
  Result<bool> Claim(int64_t term, const std::string& text);

  // Tells etcd that the holder lives, besides what a thread does, and looks whether the claim is
  // still in force. kStaleEpoch: it is gone.
  Status Beat();
  // Whether a claim is held: by our own clock its lease cannot have ended, and the last Beat() saw
  // that nobody has claimed a higher term.
  bool alive() const;
  // Ends the claim at once, so that others see it. Nothing if none is held.
  Status Release();

  // For writes of the holder (EtcdStoreOptions). A claim must be held.
  EtcdFence fence() const;

 private:
  struct Held {
    EtcdFence fence;
    std::unique_ptr<EtcdLease> lease;    // of the claim
    std::unique_ptr<EtcdLease> memory;   // of the last term, which outlives the claim
    std::atomic<bool> is_gone = false;   // Beat() has seen that
    bool may_be_made = false;            // the claim was, or nobody knows
    ~Held();
  };
  // All that is known of terms.
  struct Terms {
    std::optional<Seen> last;
    int64_t last_revision = 0;           // at which the last term was written
    std::vector<EtcdKeyValue> alive;
  };
  std::shared_ptr<Held> held() const;
  Result<Terms> Read(Duration limit, const CancelToken& cancel = CancelToken::Never());
  Result<int64_t> Make(int64_t term, const std::string& text, const Terms& before,
                       Held& held, Duration limit);

  const EtcdAccess access_;
  const EtcdKeys keys_;
  const std::chrono::seconds ttl_;
  const Duration limit_;
  EtcdClient client_;
  mutable std::mutex mutex_;
  std::shared_ptr<Held> held_;   // guarded by mutex_; null: none
};

}  // namespace keel
