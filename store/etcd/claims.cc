// The last term in one key, which is remembered, and the claim in force in another.
#include "store/etcd/claims.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace keel {
namespace {

// "7 10.0.0.1:29400": the last term with its text.
std::string LastText(int64_t term, const std::string& text) {
  return std::to_string(term) + " " + text;
}

}  // namespace

EtcdClaims::Held::~Held() {
  // The next claim must still be told which terms were claimed. Where ours was not made nothing
  // hangs on that lease, which is given back.
  if (memory && may_be_made) memory->LetExpire();
}

EtcdClaims::EtcdClaims(EtcdAccess access, const std::string& prefix, std::chrono::seconds ttl,
                       Duration limit)
    : access_(std::move(access)), keys_{prefix}, ttl_(ttl), limit_(limit), client_(access_) {}

EtcdClaims::~EtcdClaims() = default;

std::shared_ptr<EtcdClaims::Held> EtcdClaims::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

Result<EtcdClaims::Terms> EtcdClaims::Read(Duration limit, const CancelToken& cancel) {
  const Json question = EtcdRangeQuestion(EtcdRange::Prefix(keys_.Terms()));
  KEEL_TRY_ASSIGN(const Json answer, client_.Ask("/v3/kv/range", question, limit, cancel));
  KEEL_TRY_ASSIGN(EtcdReply reply, EtcdRangeReply(answer));
  Terms terms;
  for (EtcdKeyValue& found : reply.results[0]) {
    if (found.key != keys_.LastTerm()) {
      terms.alive.push_back(std::move(found));
      continue;
    }
    const size_t end = std::min(found.value.find(' '), found.value.size());
    const Result<int64_t> term = ParseInteger(std::string_view(found.value).substr(0, end));
    if (!term.ok()) {
      return Error{Code::kCorrupt, "key '" + found.key + "' of " + EtcdClusterText(access_) +
                                       " holds " + Shown(found.value) +
                                       ", which is no term; delete it"};
    }
    terms.last_revision = found.mod_revision;
    terms.last = Seen{*term, found.value.substr(std::min(end + 1, found.value.size()))};
  }
  if (!terms.last) return terms;
  for (const EtcdKeyValue& claim : terms.alive) {
    if (claim.key != keys_.Term(terms.last->term)) continue;
    terms.last->is_alive = true;
    terms.last->create_revision = claim.create_revision;
  }
  return terms;
}

Result<std::optional<EtcdClaims::Seen>> EtcdClaims::Look(const CancelToken& cancel) {
  KEEL_TRY_ASSIGN(const Terms terms, Read(limit_, cancel));
  return terms.last;
}

Result<bool> EtcdClaims::Claim(int64_t term, const std::string& text) {
  const TimePoint end = RealClock().Monotonic() + limit_;
  const auto left = [&] { return std::max(Duration::zero(), end - RealClock().Monotonic()); };
  KEEL_TRY(Release());
  KEEL_TRY_ASSIGN(Terms terms, Read(left()));
  if (terms.last && terms.last->term >= term) return false;
  auto held = std::make_shared<Held>();
  KEEL_TRY_ASSIGN(held->lease, EtcdLease::Grant(access_, ttl_, left()));
  KEEL_TRY_ASSIGN(held->memory, EtcdLease::Grant(access_, kEtcdTermMemory, left()));
  // Somebody may claim a lower term meanwhile, which does not forbid ours.
  while (!terms.last || terms.last->term < term) {
    KEEL_TRY_ASSIGN(const int64_t revision, Make(term, text, terms, *held, left()));
    if (revision != 0) {
      held->fence = {keys_.Term(term), revision};
      const std::lock_guard lock(mutex_);
      held_ = std::move(held);
      return true;
    }
    KEEL_TRY_ASSIGN(terms, Read(left()));
  }
  return false;
}

// The revision of our claim; 0: the terms are not any more as they were. The question may be asked
// several times: the lease shows whether a claim that is there already is ours.
Result<int64_t> EtcdClaims::Make(int64_t term, const std::string& text, const Terms& before,
                                 Held& held, Duration limit) {
  const std::string key = keys_.Term(term);
  EtcdTxn txn;
  txn.compares = {EtcdModRevisionIs(keys_.LastTerm(), before.last_revision),
                  EtcdCreateRevisionIs(key, 0)};
  txn.then = {EtcdPut(keys_.LastTerm(), LastText(term, text), held.memory->id()),
              EtcdPut(key, text, held.lease->id())};
  for (const EtcdKeyValue& former : before.alive) {
    if (former.key != key) txn.then.push_back(EtcdDelete({former.key}));
  }
  txn.otherwise = {EtcdRead({key})};
  held.may_be_made = true;   // until there is an answer
  KEEL_TRY_ASSIGN(const Json answer, client_.Ask("/v3/kv/txn", txn.Question(), limit));
  KEEL_TRY_ASSIGN(const EtcdReply reply, EtcdTxnReply(answer));
  if (reply.succeeded) return reply.revision;
  const bool is_there = !reply.results.empty() && !reply.results[0].empty();
  held.may_be_made = is_there && reply.results[0][0].lease == held.lease->id();
  return held.may_be_made ? reply.results[0][0].create_revision : 0;
}

Status EtcdClaims::Beat() {
  const std::shared_ptr<Held> now = held();
  if (now == nullptr) return Error{Code::kNotFound, "there is no claim to keep alive"};
  KEEL_TRY(now->lease->Beat(limit_));
  KEEL_TRY_ASSIGN(const Terms terms, Read(limit_));
  now->is_gone = std::none_of(terms.alive.begin(), terms.alive.end(), [&](const auto& claim) {
    return claim.key == now->fence.key && claim.create_revision == now->fence.create_revision;
  });
  if (!now->is_gone) return Ok();
  return Error{Code::kStaleEpoch, "our claim '" + now->fence.key + "' in " +
                                      EtcdClusterText(access_) +
                                      " is gone; another host may have taken over, follow it"};
}

bool EtcdClaims::alive() const {
  const std::shared_ptr<Held> now = held();
  return now != nullptr && !now->is_gone && now->lease->alive();
}

Status EtcdClaims::Release() {
  std::shared_ptr<Held> former;
  {
    const std::lock_guard lock(mutex_);
    former = std::exchange(held_, nullptr);
  }
  return former == nullptr ? Ok() : former->lease->Revoke(limit_);
}

EtcdFence EtcdClaims::fence() const {
  const std::shared_ptr<Held> now = held();
  KEEL_CHECK(now != nullptr, "the fence of no claim");
  return now->fence;
}

}  // namespace keel
