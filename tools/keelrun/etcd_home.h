// EtcdHome: the boards of a job in an etcd cluster, and the claim of its coordinator's role.
//
//   keel/<job>/t/...            the claims (store/etcd/claims.h)
//   keel/<job>/board-<term>/... the board of that term (store/etcd/etcd_store.h)
//
// Promises   as elastic/board/job_home.h. All keys of a board hang on one lease, which all who
//            follow it keep alive, so that nobody's death takes anything from the others. A board
//            that nobody follows vanishes after kBoardTtl, and a claim kClaimTtl after its holder.
// Threads    Look() and Claim() in one at a time; Release() and End() in that one, or once it has
//            ended; the others in any.
// Errors     of Open(): kInvalid, kCorrupt: the cluster does not let us in, or is none. One that
//            does not answer is no error of Open(): it may come up.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "elastic/board/job_home.h"
#include "store/etcd/access.h"
#include "store/etcd/claims.h"
#include "store/etcd/lease.h"

namespace keel {

class EtcdHome : public JobHome {
 public:
  static constexpr std::chrono::seconds kClaimTtl{3};
  static constexpr std::chrono::seconds kBoardTtl{15};

  static Result<std::unique_ptr<EtcdHome>> Open(EtcdAccess access, const std::string& job);
  ~EtcdHome() override;

  Result<std::optional<RoleClaim>> Look() override { return LookUntil(CancelToken::Never()); }
  Result<std::optional<RoleClaim>> LookUntil(const CancelToken& ending) override;
  Result<bool> Claim(const RoleClaim& claim) override;
  void Release() override;
  void End(const RoleClaim& own) override;
  Result<std::unique_ptr<Store>> Connect(const RoleClaim& claim) override;
  Result<std::unique_ptr<Store>> ConnectCoordinator(int64_t term) override {
    return ConnectCoordinatorUntil(term, CancelToken::Never());
  }
  Result<std::unique_ptr<Store>> ConnectCoordinatorUntil(int64_t term,
                                                         const CancelToken& ending) override;
  Result<std::unique_ptr<Store>> ConnectReader(const RoleClaim& claim) override;
  std::string Text() const override { return EtcdClusterText(access_); }

 private:
  struct Own {
    int64_t term = 0;
    EtcdFence fence;
    std::shared_ptr<EtcdLease> board;
  };
  EtcdHome(EtcdAccess access, std::string prefix);
  Result<std::unique_ptr<Store>> Open(int64_t term, int64_t lease,
                                      std::optional<EtcdFence> fence,
                                      const CancelToken& ending = CancelToken::Never()) const;
  std::optional<Own> own() const;
  void SetOwn(std::optional<Own> own);

  const EtcdAccess access_;
  const std::string prefix_;
  EtcdClaims claims_;
  mutable std::mutex mutex_;
  std::optional<Own> own_;                // guarded by mutex_: the claim that is held, or was
  int64_t followed_ = 0;                  // guarded by mutex_: the term of `kept_`
  std::shared_ptr<EtcdLease> kept_;       // guarded by mutex_: that of the board that is followed
};

// "keel/<job>/", in which no two jobs share a key.
std::string EtcdJobPrefix(const std::string& job);

}  // namespace keel
