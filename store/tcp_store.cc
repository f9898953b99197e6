// The client of the board over c10d::TCPStore, and the cures for its traps.
#include "store/tcp_store.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "store/catch_torch.h"
#include "store/numeric_names.h"
#include "store/reach.h"
#include "store/resolve.h"
#include "store/socket_finder.h"
#include "store/torch_store.h"

namespace keel {
namespace {

using std::chrono::milliseconds;

// A wait that can be cancelled polls, with pauses that grow from the first to the second.
constexpr Duration kNapFirst = std::chrono::microseconds(100);
constexpr Duration kNapLast = milliseconds(5);
constexpr Duration kAgain = milliseconds(100);
constexpr size_t kFewKeys = 10;
constexpr std::chrono::seconds kC10dSecond(1);  // c10d counts its limit in whole seconds

// No writer of ours stores this: a compare-and-set from and to it reads a key without waiting.
constexpr const char* kNobodysValue = "\x01keel-nobodys-value-5d1f0c1e9a7b4c22\x01";

std::vector<uint8_t> BytesOf(const std::string& text) { return {text.begin(), text.end()}; }
std::string TextOf(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string Named(const TcpStoreAddress& address) {
  return "the store at " + address.host + ":" + std::to_string(address.port);
}

// c10d's receives wait for ever; the kernel's limit on the socket ends them.
void LimitSocket(int fd, Duration limit) {
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
  timeval time{};
  time.tv_sec = whole / 1000000;
  time.tv_usec = whole % 1000000;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// Limits c10d's connecting and greeting, which would wait for ever for a server that accepts and
// says nothing: shuts the new connection down once the limit is over.
class ConnectLimit {
 public:
  ConnectLimit(const TcpStoreAddress& address, Duration limit)
      : address_(address), before_(SocketsConnectedTo(address.host, address.port)) {
    watch_ = std::thread([this, limit] {
      std::unique_lock lock(mutex_);
      if (done_.wait_for(lock, limit, [&] { return over_; })) return;
      fired_ = true;
      do {  // c10d may try once more, and would then wait for ever
        for (const int fd : NewSockets()) shutdown(fd, SHUT_RDWR);
      } while (!done_.wait_for(lock, kAgain, [&] { return over_; }));
    });
  }

  ~ConnectLimit() { End(); }

  void End() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    done_.notify_all();
    if (watch_.joinable()) watch_.join();
  }

  bool fired() const { return fired_; }

  std::vector<int> NewSockets() const {
    std::vector<int> fresh = SocketsConnectedTo(address_.host, address_.port);
    std::erase_if(fresh, [&](int fd) {
      return std::find(before_.begin(), before_.end(), fd) != before_.end();
    });
    return fresh;
  }

 private:
  const TcpStoreAddress& address_;
  const std::vector<int> before_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  bool fired_ = false;
  std::thread watch_;
};

void WarnOnceWithoutNumericNames() {
  static const bool warned = [] {
    if (NumericNamesActive()) return false;
    LogWarn("reverse-dns-active",
            {{"what", "getnameinfo is not ours in this program: a slow name service can stall the "
                      "store by seconds; link store/numeric_names.cc into the executable"}});
    return true;
  }();
  (void)warned;
}

// Connects run one at a time: ConnectLimit tells its socket from those that were there before.
std::mutex& ConnectMutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

struct TcpStore::Connection {
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::mutex mutex;  // one operation at a time
  bool broken = false;
};

Result<std::unique_ptr<TcpStore>> TcpStore::Connect(const TcpStoreAddress& address,
                                                    const Limits& limits,
                                                    const CancelToken& cancel) {
  WarnOnceWithoutNumericNames();
  KEEL_TRY_ASSIGN(const std::string number, ResolveHost(address.host, limits.connect));
  const TcpStoreAddress numeric{number, address.port};
  auto connection = std::make_unique<Connection>();

  const TimePoint end = RealClock().Monotonic() + limits.connect;
  // c10d's own connecting cannot be cancelled, so that is done before.
  const auto await = cancel.can_be_cancelled() ? AwaitAnswer : AwaitListener;
  KEEL_TRY(await(numeric.host, numeric.port, limits.connect, cancel));

  std::unique_lock lock(ConnectMutex(), std::defer_lock);
  for (; !lock.try_lock(); RealClock().SleepFor(kNapLast)) {
    if (cancel.cancelled()) return Error{Code::kCancelled, "connecting was cancelled"};
    if (RealClock().Monotonic() < end) continue;
    return Error{Code::kTimeout, "connecting to " + Named(numeric) + ": another connection of this "
                                     "process was not made within " + DurationText(limits.connect)};
  }
  const Duration left = std::max<Duration>(end - RealClock().Monotonic(), kAgain);
  ConnectLimit limit(numeric, left);
  const Status connected = CatchTorch("connecting to " + Named(numeric), [&] {
    c10d::TCPStoreOptions options;
    options.port = numeric.port;
    options.waitWorkers = false;
    options.timeout = std::max(std::chrono::ceil<std::chrono::seconds>(left), kC10dSecond);
    connection->store = c10::make_intrusive<c10d::TCPStore>(numeric.host, options);
  });
  limit.End();
  if (!connected.ok()) {
    if (!limit.fired()) return connected.error();
    return Error{Code::kTimeout, "connecting to " + Named(numeric) + ": something listens there, "
                                     "but did not greet as a store within " +
                                     DurationText(limits.connect) + "; check host and port"};
  }
  for (const int fd : limit.NewSockets()) LimitSocket(fd, limits.operation);
  return std::unique_ptr<TcpStore>(new TcpStore(numeric, limits, std::move(connection)));
}

TcpStore::TcpStore(TcpStoreAddress address, Limits limits, std::unique_ptr<Connection> connection)
    : address_(std::move(address)), limits_(limits), connection_(std::move(connection)) {}

TcpStore::~TcpStore() = default;

Status TcpStore::Usable() const {
  if (!connection_->broken) return Ok();
  return Error{Code::kPeerLost, "the connection to " + Named(address_) +
                                    " broke earlier; connect anew"};
}

// Operations run one at a time and turn exceptions into Errors. A connection that failed is not
// used again, since a late answer would be taken for that of the next question.
template <class F>
auto TcpStore::Operate(const std::string& doing, F&& operation) {
  using Returned = decltype(CatchTorch(doing, std::forward<F>(operation)));
  std::lock_guard lock(connection_->mutex);
  if (Status usable = Usable(); !usable.ok()) return Returned(usable.error().Doing(doing));
  Returned result = CatchTorch(doing + " in " + Named(address_), std::forward<F>(operation));
  if (!result.ok()) connection_->broken = true;
  return result;
}

Status TcpStore::Set(const std::string& key, const std::string& value) {
  KEEL_TRY(CheckKeyAndValue(key, value));
  return Operate("setting '" + key + "'", [&] {
    connection_->store->set(key, BytesOf(value));
    connection_->store->check({key});  // c10d does not acknowledge a set: this answer follows it
  });
}

Result<std::optional<std::string>> TcpStore::Get(const std::string& key) {
  KEEL_TRY(CheckKey(key));
  return Operate("reading '" + key + "'", [&]() -> std::optional<std::string> {
    // c10d's get() waits for the key; a compare-and-set that changes nothing does not.
    const std::vector<uint8_t> nobody = BytesOf(kNobodysValue);
    const std::vector<uint8_t> found = connection_->store->compareSet(key, nobody, nobody);
    if (found == nobody) return std::nullopt;
    return TextOf(found);
  });
}

Result<bool> TcpStore::Has(const std::string& key) {
  KEEL_TRY(CheckKey(key));
  return Operate("looking for '" + key + "'", [&] { return connection_->store->check({key}); });
}

Result<std::vector<std::optional<std::string>>> TcpStore::GetMany(
    const std::vector<std::string>& keys) {
  using Values = std::vector<std::optional<std::string>>;
  for (const std::string& key : keys) KEEL_TRY(CheckKey(key));
  Values values;
  if (!keys.empty()) KEEL_TRY(AppendMany(keys, values));
  return values;
}

// One question serves for all keys if all exist. If one is missing (or deleted in between, so that
// c10d's multiGet would wait), many keys are asked for in halves, a few one by one.
Status TcpStore::AppendMany(const std::vector<std::string>& keys,
                            std::vector<std::optional<std::string>>& values) {
  const std::string doing = "reading " + std::to_string(keys.size()) + " keys";
  KEEL_TRY_ASSIGN(const bool all_there,
                  Operate(doing, [&] { return connection_->store->check(keys); }));
  if (all_there) {
    return Operate(doing, [&] {
      for (const std::vector<uint8_t>& value : connection_->store->multiGet(keys)) {
        values.push_back(TextOf(value));
      }
    });
  }
  if (keys.size() > kFewKeys) {
    const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
    KEEL_TRY(AppendMany({keys.begin(), middle}, values));
    return AppendMany({middle, keys.end()}, values);
  }
  for (const std::string& key : keys) {
    KEEL_TRY_ASSIGN(std::optional<std::string> value, Get(key));
    values.push_back(std::move(value));
  }
  return Ok();
}

Result<int64_t> TcpStore::Add(const std::string& key, int64_t delta) {
  KEEL_TRY(CheckKey(key));
  return Operate("adding to '" + key + "'", [&] { return connection_->store->add(key, delta); });
}

Result<Store::Outcome> TcpStore::CompareSet(const std::string& key,
                                            const std::optional<std::string>& expected,
                                            const std::string& desired) {
  KEEL_TRY(CheckKeyAndValue(key, desired));
  if (expected.has_value() && expected->empty()) {
    return Error{Code::kInvalid, "compare-and-set of '" + key + "': the expected value is empty, "
                                     "which c10d takes for an absent key"};
  }
  if (expected == desired) {
    KEEL_TRY_ASSIGN(std::optional<std::string> now, Get(key));
    const bool holds = now == desired;
    return Outcome{holds, std::move(now)};
  }
  return Operate("comparing and setting '" + key + "'", [&] {
    const std::string was = expected.value_or("");  // c10d: an absent key matches only an empty one
    std::string now = TextOf(connection_->store->compareSet(key, BytesOf(was), BytesOf(desired)));
    if (now == desired) return Outcome{true, std::move(now)};
    // c10d answers "what was expected" for a key that is not there; see the traps in the header.
    if (expected.has_value() && now == was) return Outcome{false, std::nullopt};
    return Outcome{false, std::move(now)};
  });
}

Result<bool> TcpStore::Delete(const std::string& key) {
  KEEL_TRY(CheckKey(key));
  return Operate("deleting '" + key + "'", [&] { return connection_->store->deleteKey(key); });
}

std::vector<std::string> TcpStore::Missing(const std::vector<std::string>& keys) {
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!connection_->store->check({key})) missing.push_back(key);
  }
  return missing;
}

Status TcpStore::Wait(const std::vector<std::string>& keys, Duration limit,
                      const CancelToken& cancel) {
  if (keys.empty()) return Ok();
  for (const std::string& key : keys) KEEL_TRY(CheckKey(key));
  KEEL_TRY_ASSIGN(const std::vector<std::string> missing,
                  Operate("waiting for '" + keys[0] + "'", [&] {
                    const bool there = cancel.can_be_cancelled() ? AskUntil(keys, limit, cancel)
                                                                 : WaitInC10d(keys, limit);
                    return there ? std::vector<std::string>() : Missing(keys);
                  }));
  if (missing.empty()) return Ok();
  if (cancel.cancelled()) {
    return Error{Code::kCancelled, "the wait for store key " + missing[0] + " was cancelled"};
  }
  return WaitTimedOut(missing, keys.size(), limit);
}

// The server answers when the keys exist: this is the fastest way, but nobody can end it before its
// limit. It also answers when another client looks for a missing key (see Get()), so the keys are
// checked again.
bool TcpStore::WaitInC10d(const std::vector<std::string>& keys, Duration limit) {
  const TimePoint end = RealClock().Monotonic() + limit;
  while (!connection_->store->check(keys)) {
    const Duration left = end - RealClock().Monotonic();
    if (left <= Duration::zero()) return false;
    try {
      connection_->store->wait(keys, std::chrono::ceil<milliseconds>(left));
    } catch (const c10::DistNetworkError&) {
      throw;  // the connection is of no use any more
    } catch (const c10::DistStoreError&) {
      return false;  // only the limit ran out: client and server agreed to end the wait
    }
  }
  return true;
}

bool TcpStore::AskUntil(const std::vector<std::string>& keys, Duration limit,
                        const CancelToken& cancel) {
  const TimePoint end = RealClock().Monotonic() + limit;
  for (Duration nap = kNapFirst;; nap = std::min(nap * 3 / 2, kNapLast)) {
    if (connection_->store->check(keys)) return true;
    const TimePoint now = RealClock().Monotonic();
    if (cancel.cancelled() || now >= end) return false;
    RealClock().SleepUntil(std::min(now + nap, end));
  }
}

Result<std::unique_ptr<Store>> TcpStore::Clone() {
  KEEL_TRY_ASSIGN(std::unique_ptr<TcpStore> other, Connect(address_, limits_));
  return std::unique_ptr<Store>(std::move(other));
}

struct TorchStoreAccess {
  static c10::intrusive_ptr<c10d::Store> Of(const TcpStore& store) {
    return store.connection_->store;
  }
};

c10::intrusive_ptr<c10d::Store> TorchStoreOf(const TcpStore& store) {
  return TorchStoreAccess::Of(store);
}

}  // namespace keel
