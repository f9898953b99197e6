// EtcdWatch: follows the changes of a range of keys.
// Promises   every change from the first revision on is delivered once and in order, also across
//            the loss of the member that delivers: the watch goes on at another one behind the
//            last change. A member that is stopped, or that has lost its leader, is left.
// Does not   use a thread: members are read, and left, only within Begin() and Next().
// Threads    one at a time.
// Errors     of Next() and Begin(): kTimeout: no member delivers at present, and nothing is missed
//            yet: call again. kNotFound: etcd has compacted changes that were not delivered; read
//            all anew and make another watch. kInvalid: as EtcdClient says. kCancelled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/cancel.h"
#include "store/etcd/client.h"
#include "store/etcd/messages.h"

namespace keel {

struct EtcdChange {
  std::string key;
  std::optional<std::string> value;   // empty: the key was deleted, or its lease ended
  int64_t revision = 0;
};

class EtcdWatch {
 public:
  // `from_revision` 0: from Begin() on.
  EtcdWatch(EtcdAccess access, EtcdRange range, int64_t from_revision);

  // Returns when a member follows the range. Next() does this, too. Takes one attempt at least.
  Status Begin(Duration limit, const CancelToken& cancel = CancelToken::Never());

  // Returns as soon as there are changes; an empty list: none came within the limit.
  Result<std::vector<EtcdChange>> Next(Duration limit,
                                       const CancelToken& cancel = CancelToken::Never());

  // The member that delivers, or that is asked next.
  const EtcdMember& member() const { return client_.member(); }
  // All changes before this revision are delivered. 0: it has not begun.
  int64_t next_revision() const { return next_revision_; }

 private:
  Result<bool> TryBegin(Duration limit, const CancelToken& cancel);
  Result<std::vector<EtcdChange>> Read(const std::string& line);
  Result<std::vector<EtcdChange>> Ended(const Json& result);
  bool MemberStillAnswers();
  void Leave();

  EtcdClient client_;
  const EtcdRange range_;
  int64_t next_revision_;
  std::unique_ptr<EtcdConnection> connection_;   // null: no member follows
  TimePoint heard_;                // when the member was last known to answer
  std::optional<Error> over_;      // what Next() says from now on
};

}  // namespace keel
