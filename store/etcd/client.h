// EtcdClient: asks the members of an etcd cluster in turn until one answers.
// Promises   a call ends at its deadline, or soon after it was cancelled; an attempt at a member is
//            limited to kEtcdAttemptLimit, and to more once nobody has answered within that, and
//            the member that answered last is asked first. The token of the user is fetched when it
//            is needed, and anew when etcd no longer knows it.
// Does not   know what the questions mean (store/etcd/messages.h); make a call that must not happen
//            twice safe by itself (store/etcd/writer.h).
// Threads    one at a time.
// Errors     one sentence that says what to do. kTimeout: no answer within the limit; kInvalid:
//            certificates, user, password, permission, or a question etcd refuses; kNotFound: no
//            such lease, or a revision that is compacted; kExists: the lease is there already;
//            kNoSpace: etcd's database is full; kCorrupt: what answers is no etcd; kCancelled.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "store/cancel.h"
#include "store/etcd/access.h"
#include "store/etcd/connection.h"

namespace keel {

class EtcdClient {
 public:
  // `ending`: cancels each call that has no token of its own.
  explicit EtcdClient(EtcdAccess access, CancelToken ending = CancelToken::Never());

  // For calls that may happen several times. `path` is that of the gateway, "/v3/kv/range".
  Result<Json> Ask(const std::string& path, const Json& question, Duration limit,
                   const CancelToken& cancel = CancelToken::Never());

  // For calls that must not: empty when the question may have reached a member whose answer never
  // came, so that nobody knows whether it acted.
  Result<std::optional<Json>> AskOnce(const std::string& path, const Json& question,
                                      Duration limit);

  // A connection of its own whose answer goes on line by line, with a fresh token.
  Result<std::unique_ptr<EtcdConnection>> Follow(const std::string& path, const Json& question,
                                                 Duration limit, const CancelToken& cancel);

  // The member that is asked first.
  const EtcdMember& member() const { return access_.members[current_]; }
  void AskNextMember();
  const EtcdAccess& access() const { return access_; }

 private:
  // How one attempt at one member ended.
  struct Attempt {
    enum class Kind { kAnswered, kRefused, kNotSent, kLost } kind = Kind::kNotSent;
    Json answer = {};
    Error error = {};  // kRefused: etcd's own word, which asking elsewhere does not change
  };
  template <class F>
  Result<Attempt> InTurn(Duration limit, bool may_repeat, const CancelToken& cancel, F&& attempt);
  Attempt TryAsk(const std::string& path, const std::string& question, TimePoint end);
  Attempt TryFollow(const std::string& path, const std::string& question, TimePoint end,
                    std::unique_ptr<EtcdConnection>& opened);
  Attempt TryAuthenticate(TimePoint end);
  TimePoint AfterLogin(TimePoint end) const;
  Attempt Connect(TimePoint end, std::unique_ptr<EtcdConnection>& connection);
  Attempt Judge(const EtcdAnswer& answer);
  Attempt Refusal(const Json& answer, int status);
  bool NeedsToken() const { return !access_.user.empty() && token_.empty(); }
  std::string Everyone(const std::vector<std::string>& words) const;

  const EtcdAccess access_;
  const CancelToken ending_;
  Random random_;
  size_t current_ = 0;
  TimePoint turn_end_;   // when the present call must have ended
  size_t turn_ = 0;   // how often all were asked: which of its addresses each one is asked at
  std::unique_ptr<EtcdConnection> connection_;  // to member(); null: none yet
  bool has_served_ = false;                     // it has answered before
  std::string token_;
  CancelToken cancel_ = CancelToken::Never();   // of the present call
  Duration patience_ = kEtcdAttemptLimit;       // the limit of an attempt
};

}  // namespace keel
