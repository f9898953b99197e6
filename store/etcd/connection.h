// EtcdConnection: one HTTP/1.1 connection to one member of an etcd cluster, plain or over TLS.
// Promises   each call ends at its deadline, or when the token that it heeds is raised, whatever
//            the member does: it may be stopped, trickle, hang up, or speak something else. Over
//            TLS the member's certificate must come from the given authority and name the host that
//            was asked for.
// Does not   try again, or serve further once a call has failed: `usable()` is false then.
// Threads    one at a time; the calling thread does all the work.
// Errors     kTimeout (no answer), kPeerLost (refused, or hung up), kCorrupt (no HTTP), kInvalid
//            (certificates or their files). Each message is a clause that begins with the member:
//            "h1:2379 refused the connection".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "store/cancel.h"
#include "store/etcd/access.h"

namespace keel {

struct EtcdRequest {
  std::string path;          // "/v3/kv/range"
  std::string body;
  std::string token = {};    // empty: none
};

struct EtcdAnswer {
  int status = 0;
  std::string body;
};

class EtcdConnection {
 public:
  // Of a name with several addresses one is tried: another `turn`, another one.
  static Result<std::unique_ptr<EtcdConnection>> Open(const EtcdMember& member,
                                                      const std::optional<EtcdTls>& tls,
                                                      size_t turn, TimePoint end,
                                                      const CancelToken& cancel =
                                                          CancelToken::Never());
  ~EtcdConnection();
  EtcdConnection(const EtcdConnection&) = delete;
  EtcdConnection& operator=(const EtcdConnection&) = delete;

  // From now on calls end when this token is raised, as at their deadline.
  void Heed(const CancelToken& cancel);

  // The answer must begin by `end`; a long one may go on, with kEtcdAttemptLimit for each piece.
  Result<EtcdAnswer> Ask(const EtcdRequest& request, TimePoint end);

  // For an answer that is a line each time something happens: sends the request, then reads the
  // answer's head and gives its status.
  Result<int> Begin(const EtcdRequest& request, TimePoint end);
  // The whole body of an answer that Begin() has begun.
  Result<std::string> Rest();
  // Empty: nothing came until `until`, or the token was raised. kPeerLost: the answer has ended.
  Result<std::optional<std::string>> Line(TimePoint until, const CancelToken& cancel);

  bool usable() const;

 private:
  class Exchange;
  explicit EtcdConnection(std::unique_ptr<Exchange> exchange);

  const std::unique_ptr<Exchange> exchange_;
};

}  // namespace keel
