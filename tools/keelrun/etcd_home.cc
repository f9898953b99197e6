// A claim's text is JSON, and names the lease of its board.
#include "tools/keelrun/etcd_home.h"

#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "store/etcd/etcd_store.h"

namespace keel {
namespace {

// The limit for each operation on a board: etcd may take two seconds to elect a leader.
constexpr Duration kOperationLimit = std::chrono::seconds(5);
constexpr Duration kClaimLimit = std::chrono::seconds(3);
constexpr Duration kFirstLookLimit = std::chrono::milliseconds(1500);
constexpr Duration kEndLimit = std::chrono::seconds(1);

std::string TextOf(const RoleClaim& claim) {
  return DumpJson({{"by", claim.by},
                   {"peer", claim.peer},
                   {"board", claim.board},
                   {"has_ended", claim.has_ended}});
}

Result<RoleClaim> ClaimOf(const EtcdClaims::Seen& seen) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(seen.text));
  RoleClaim claim;
  claim.term = seen.term;
  claim.is_alive = seen.is_alive;
  KEEL_TRY_ASSIGN(claim.by, Field<std::string>(json, "by"));
  KEEL_TRY_ASSIGN(claim.peer, Field<std::string>(json, "peer"));
  KEEL_TRY_ASSIGN(claim.board, Field<std::string>(json, "board"));
  KEEL_TRY_ASSIGN(claim.has_ended, Field<bool>(json, "has_ended"));
  return claim;
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

}  // namespace

std::string EtcdJobPrefix(const std::string& job) {
  static constexpr const char* kDigits = "0123456789ABCDEF";
  std::string name;
  for (const char c : job) {
    if (IsPlain(c)) {
      name += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    name += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return "keel/" + name + "/";
}

Result<std::unique_ptr<EtcdHome>> EtcdHome::Open(EtcdAccess access, const std::string& job) {
  std::unique_ptr<EtcdHome> home(new EtcdHome(std::move(access), EtcdJobPrefix(job)));
  const auto looked = EtcdStore::Open(
      {.access = home->access_, .prefix = home->prefix_, .limit = kFirstLookLimit});
  const bool may_come = looked.ok() || looked.error().code == Code::kTimeout;
  if (!may_come) return looked.error();
  return home;
}

EtcdHome::EtcdHome(EtcdAccess access, std::string prefix)
    : access_(std::move(access)),
      prefix_(std::move(prefix)),
      claims_(access_, prefix_, kClaimTtl, kClaimLimit) {}

EtcdHome::~EtcdHome() { SetOwn(std::nullopt); }

std::optional<EtcdHome::Own> EtcdHome::own() const {
  const std::lock_guard lock(mutex_);
  return own_;
}

// The board of a claim that is not held any more is left to those who still follow it.
void EtcdHome::SetOwn(std::optional<Own> own) {
  std::optional<Own> former;
  {
    const std::lock_guard lock(mutex_);
    former = std::exchange(own_, std::move(own));
  }
  if (former) former->board->LetExpire();
}

Result<std::optional<RoleClaim>> EtcdHome::LookUntil(const CancelToken& ending) {
  const std::optional<Own> held = own();
  // Without its board the claim is of no use: somebody must make another.
  if (held && held->board->over()) {
    SetOwn(std::nullopt);
    KEEL_TRY(claims_.Release());
  }
  KEEL_TRY_ASSIGN(const auto seen, claims_.Look(ending));
  if (!seen) return std::optional<RoleClaim>();
  Result<RoleClaim> claim = ClaimOf(*seen);
  if (claim.ok()) return std::optional(*std::move(claim));
  return Error{Code::kCorrupt, Text() + " holds a claim of the job under " + Shown(prefix_) +
                                   " that cannot be read (" + claim.error().message +
                                   "): delete what is under that prefix"};
}

Result<bool> EtcdHome::Claim(const RoleClaim& claim) {
  Own mine;
  mine.term = claim.term;
  KEEL_TRY_ASSIGN(mine.board, EtcdLease::Grant(access_, kBoardTtl, kClaimLimit));
  RoleClaim told = claim;
  told.board = std::to_string(mine.board->id());
  SetOwn(std::nullopt);
  KEEL_TRY_ASSIGN(const bool is_ours, claims_.Claim(claim.term, TextOf(told)));
  if (!is_ours) return false;
  mine.fence = claims_.fence();
  SetOwn(std::move(mine));
  return true;
}

void EtcdHome::Release() {
  (void)claims_.Release();   // else it ends by itself
  SetOwn(std::nullopt);
}

void EtcdHome::End(const RoleClaim& own) {
  const std::optional<Own> held = this->own();
  RoleClaim end = own;
  end.term = own.term + 1;
  end.has_ended = true;
  // If somebody else claims that term first, the job goes on without this host.
  const Result<bool> told = claims_.Claim(end.term, TextOf(end));
  if (told.ok() && *told && held && held->term == own.term) (void)held->board->Revoke(kEndLimit);
  Release();
}

Result<std::unique_ptr<Store>> EtcdHome::Open(int64_t term, int64_t lease,
                                              std::optional<EtcdFence> fence,
                                              const CancelToken& ending) const {
  EtcdStoreOptions options;
  options.access = access_;
  options.prefix = prefix_ + "board-" + std::to_string(term) + "/";
  options.limit = kOperationLimit;
  options.lease = lease;
  options.fence = std::move(fence);
  options.ending = ending;
  KEEL_TRY_ASSIGN(std::unique_ptr<EtcdStore> store, EtcdStore::Open(std::move(options)));
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::unique_ptr<Store>> EtcdHome::Connect(const RoleClaim& claim) {
  KEEL_TRY_ASSIGN(const int64_t lease, ParseInteger(claim.board));
  bool is_kept = false;
  std::shared_ptr<EtcdLease> former;   // no board but the one that is followed is kept
  {
    const std::lock_guard lock(mutex_);
    is_kept = kept_ && followed_ == claim.term && !kept_->over();
    if (!is_kept) former = std::exchange(kept_, nullptr);
    is_kept |= own_ && own_->term == claim.term;
  }
  if (!is_kept) {
    KEEL_TRY_ASSIGN(std::shared_ptr<EtcdLease> shared,
                    EtcdLease::Share(access_, lease, kBoardTtl, kClaimLimit));
    const std::lock_guard lock(mutex_);
    followed_ = claim.term;
    kept_ = std::move(shared);
  }
  return Open(claim.term, lease, std::nullopt);
}

Result<std::unique_ptr<Store>> EtcdHome::ConnectCoordinatorUntil(
    int64_t term, const CancelToken& ending) {
  const std::optional<Own> held = own();
  if (!held || held->term != term) {
    return Error{Code::kStaleEpoch, "term " + std::to_string(term) + " is not held any more"};
  }
  return Open(term, held->board->id(), held->fence, ending);
}

Result<std::unique_ptr<Store>> EtcdHome::ConnectReader(const RoleClaim& claim) {
  return Open(claim.term, 0, std::nullopt);
}

}  // namespace keel
