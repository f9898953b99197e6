// A keepalive each third of the lease's time.
#include "store/etcd/lease.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "store/etcd/messages.h"

namespace keel {
namespace {

// The destructor waits no longer than this for etcd to take the lease back.
constexpr Duration kGiveBackLimit = std::chrono::seconds(1);
constexpr Duration kAskAgain = std::chrono::milliseconds(100);   // while it may still be saved

}  // namespace

Result<std::unique_ptr<EtcdLease>> EtcdLease::Grant(const EtcdAccess& access,
                                                    std::chrono::seconds ttl, Duration limit) {
  EtcdClient client(access);
  Random random(EntropySeed());
  // The number is ours, so that a second attempt after a lost answer does not make a second lease.
  const auto id = static_cast<int64_t>(random.Next() >> 2) + 1;
  const TimePoint asked = RealClock().Monotonic();
  const Json question = {{"ID", std::to_string(id)}, {"TTL", std::to_string(ttl.count())}};
  const Result<Json> answer = client.Ask("/v3/lease/grant", question, limit);
  if (!answer.ok() && answer.error().code != Code::kExists) {
    return answer.error().Doing("asking for a lease");
  }
  return std::unique_ptr<EtcdLease>(new EtcdLease(access, id, ttl, asked));
}

Result<std::unique_ptr<EtcdLease>> EtcdLease::Share(const EtcdAccess& access, int64_t id,
                                                    std::chrono::seconds ttl, Duration limit) {
  // Nothing is known of it until etcd has answered.
  std::unique_ptr<EtcdLease> lease(
      new EtcdLease(access, id, ttl, RealClock().Monotonic() - ttl));
  {
    const std::lock_guard lock(lease->mutex_);
    lease->may_expire_ = true;
  }
  KEEL_TRY(lease->Beat(limit));
  return lease;
}

EtcdLease::EtcdLease(const EtcdAccess& access, int64_t id, std::chrono::seconds ttl,
                     TimePoint granted)
    : access_(access), id_(id), ttl_(ttl), client_(access), alive_until_(granted + ttl) {
  thread_ = std::thread([this] { KeepAlive(); });
}

EtcdLease::~EtcdLease() {
  StopThread();
  if (!may_expire_) (void)Revoke(kGiveBackLimit);
}

void EtcdLease::LetExpire() {
  StopThread();
  const std::lock_guard lock(mutex_);
  may_expire_ = true;
}

bool EtcdLease::alive() const {
  const std::lock_guard lock(mutex_);
  return !over_ && RealClock().Monotonic() < alive_until_;
}

bool EtcdLease::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

Status EtcdLease::Beat(Duration limit) {
  const std::lock_guard lock(client_mutex_);
  return Keep(client_, limit);
}

Status EtcdLease::Keep(EtcdClient& client, Duration limit) {
  if (over()) return Error{Code::kStaleEpoch, "the etcd lease is over; take another"};
  const TimePoint asked = RealClock().Monotonic();
  KEEL_TRY_ASSIGN(const Json answer, client.Ask("/v3/lease/keepalive",
                                                {{"ID", std::to_string(id_)}}, limit, stop_));
  const auto result = answer.find("result");
  if (result == answer.end()) return Error{Code::kCorrupt, "an answer to a keepalive is empty"};
  KEEL_TRY_ASSIGN(const int64_t seconds, EtcdInt64(*result, "TTL"));
  const std::lock_guard lock(mutex_);
  over_ = over_ || seconds <= 0;
  if (over_) return Error{Code::kStaleEpoch, "the etcd lease is over; take another"};
  alive_until_ = std::max(alive_until_, asked + std::chrono::seconds(seconds));
  return Ok();
}

void EtcdLease::KeepAlive() {
  EtcdClient client(access_);
  const Duration pause = Duration(ttl_) / 3;
  Duration wait = pause;
  bool is_told = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, wait, [this] { return is_stopping_; })) {
    lock.unlock();
    const Status kept = Keep(client, pause);
    lock.lock();
    wait = kept.ok() || RealClock().Monotonic() >= alive_until_ ? pause : kAskAgain;
    if (kept.ok()) is_told = false;
    if (kept.ok() || is_stopping_) continue;
    if (over_ || !std::exchange(is_told, true)) {
      LogWarn("etcd-lease-not-kept", {{"reason", kept.error().message}, {"is_over", over_}});
    }
    if (over_) return;
  }
}

void EtcdLease::StopThread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  stop_.Cancel();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status EtcdLease::Revoke(Duration limit) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return Ok();
  }
  const std::lock_guard lock(client_mutex_);
  const Result<Json> answer =
      client_.Ask("/v3/lease/revoke", {{"ID", std::to_string(id_)}}, limit);
  if (!answer.ok() && answer.error().code != Code::kNotFound) {
    return answer.error().Doing("giving a lease back");
  }
  const std::lock_guard state(mutex_);
  over_ = true;
  return Ok();
}

}  // namespace keel
