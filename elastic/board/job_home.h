// JobHome: a place that outlives every host of the job, and holds its boards and the claim of the
// coordinator's role. Each term has a board of its own there.
// Promises   a claim is made only if its term is higher than all before it, and ends the claim
//            before it in the same step. A coordinator's connection writes nothing once its claim
//            is gone. What a dead job leaves vanishes by itself.
// Does not   decide who claims, or when (elastic/decisions/claiming.h).
// Threads    any.
// Errors     one sentence that names the place. kTimeout: it does not answer; kInvalid: it does not
//            let us in; kStaleEpoch: the board or the claim is gone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "elastic/decisions/claiming.h"
#include "store/cancel.h"
#include "store/store.h"

namespace keel {

class JobHome {
 public:
  virtual ~JobHome() = default;

  // The highest claim that was ever made, as far as the place remembers; nothing: none.
  virtual Result<std::optional<RoleClaim>> Look() = 0;
  // Makes a board for `claim.term` and claims that. False: somebody claimed it, or a higher one.
  virtual Result<bool> Claim(const RoleClaim& claim) = 0;
  // Gives the own claim back, if there is one; others may claim at once.
  virtual void Release() = 0;
  // The job is over: says so to those who come later, and removes the board of the own claim.
  virtual void End(const RoleClaim& own) = 0;

  // A member's connection, which keeps the board alive.
  virtual Result<std::unique_ptr<Store>> Connect(const RoleClaim& claim) = 0;
  // The coordinator's, for the own claim of that term.
  virtual Result<std::unique_ptr<Store>> ConnectCoordinator(int64_t term) = 0;
  // For reading a board of the past, which it does not keep alive.
  virtual Result<std::unique_ptr<Store>> ConnectReader(const RoleClaim& claim) = 0;

  // The same, for as long as somebody wants it: once `ending` is raised nobody waits for the
  // answer, or for one of that store. A place whose answers cannot take long need not heed it.
  virtual Result<std::optional<RoleClaim>> LookUntil(const CancelToken& ending) {
    (void)ending;
    return Look();
  }
  virtual Result<std::unique_ptr<Store>> ConnectCoordinatorUntil(int64_t term,
                                                                 const CancelToken& ending) {
    (void)ending;
    return ConnectCoordinator(term);
  }

  // "the etcd cluster at 10.0.0.1:2379"
  virtual std::string Text() const = 0;
};

}  // namespace keel
