// Each operation as one transaction, repeated only once it is known not to have happened.
#include "store/etcd/etcd_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kIdDigits = 16;
// Clients that add to the same key wait at random, up to twice as long after each conflict.
constexpr uint64_t kConflictPauseUs = 500;
constexpr int kConflictDoublings = 6;

std::string WriterId() {
  Random random(EntropySeed());
  return RandomId(random, kIdDigits);
}

}  // namespace

Result<std::unique_ptr<EtcdStore>> EtcdStore::Open(EtcdStoreOptions options) {
  std::unique_ptr<EtcdStore> store(new EtcdStore(std::move(options)));
  Json question = EtcdRangeQuestion({store->keys_.Data("")});
  question["count_only"] = true;
  const Result<Json> answer =
      store->client_.Ask("/v3/kv/range", question, store->options_.limit);
  if (!answer.ok()) return answer.error();
  return store;
}

EtcdStore::EtcdStore(EtcdStoreOptions options)
    : options_(std::move(options)),
      keys_{options_.prefix},
      random_(EntropySeed()),
      client_(options_.access, options_.ending),
      writer_(client_, keys_.Writer(WriterId()), options_.lease, options_.fence),
      values_(client_, keys_, options_.lease) {}

EtcdStore::~EtcdStore() {
  if (options_.lease == 0) writer_.Forget();
}

Duration EtcdStore::Left(TimePoint end) {
  return std::max(Duration::zero(), end - RealClock().Monotonic());
}

EtcdMember EtcdStore::member() {
  const std::lock_guard lock(mutex_);
  return client_.member();
}

Status EtcdStore::Set(const std::string& key, const std::string& value) {
  KEEL_TRY(CheckKeyAndValue(key, value));
  const std::lock_guard lock(mutex_);
  const TimePoint end = End();
  for (;;) {
    const auto prepared = values_.Prepare(key, value, Left(end));
    if (!prepared.ok()) return writer_.Explained(prepared.error());
    EtcdTxn txn;
    values_.AddSet(key, *prepared, txn);
    KEEL_TRY_ASSIGN(const EtcdReply reply, writer_.Write(txn, Left(end)));
    if (reply.succeeded) return Ok();
    // Another writer of the key has removed our parts before we referred to them.
  }
}

Result<std::optional<std::string>> EtcdStore::Get(const std::string& key) {
  KEEL_TRY(CheckKey(key));
  const std::lock_guard lock(mutex_);
  KEEL_TRY_ASSIGN(Held held, Read(key, End()));
  return std::move(held.value);
}

Result<EtcdStore::Held> EtcdStore::Read(const std::string& key, TimePoint end) {
  for (;;) {
    KEEL_TRY_ASSIGN(const Json answer,
                    client_.Ask("/v3/kv/range", EtcdRangeQuestion({keys_.Data(key)}), Left(end)));
    KEEL_TRY_ASSIGN(const EtcdReply reply, EtcdRangeReply(answer));
    Result<Held> held = HeldIn(key, reply, 0, end);
    // Compacted between the two questions: the key holds something newer.
    if (!held.ok() && held.error().code == Code::kNotFound) continue;
    return held;
  }
}

Result<EtcdStore::Held> EtcdStore::HeldIn(const std::string& key, const EtcdReply& reply,
                                          size_t index, TimePoint end) {
  if (index >= reply.results.size()) {
    return Error{Code::kCorrupt, "an answer of etcd lacks the result for '" + key + "'"};
  }
  if (reply.results[index].empty()) return Held{};
  const EtcdKeyValue& found = reply.results[index][0];
  KEEL_TRY_ASSIGN(std::string value, values_.Read(key, found.value, reply.revision, Left(end)));
  return Held{std::move(value), found.mod_revision};
}

// One transaction; at most kEtcdTxnOperationsMax keys.
Result<EtcdReply> EtcdStore::ReadMany(const std::vector<std::string>& keys, bool keys_only,
                                      Duration limit, const CancelToken& cancel) {
  EtcdTxn txn;
  for (const std::string& key : keys) {
    Json read = EtcdRead({keys_.Data(key)});
    if (keys_only) read["request_range"]["keys_only"] = true;
    txn.then.push_back(std::move(read));
  }
  KEEL_TRY_ASSIGN(const Json answer, client_.Ask("/v3/kv/txn", txn.Question(), limit, cancel));
  KEEL_TRY_ASSIGN(EtcdReply reply, EtcdTxnReply(answer));
  if (reply.results.size() != keys.size()) {
    return Error{Code::kCorrupt, "an answer of etcd has " + CountText(reply.results.size(),
                                                                     "result") +
                                     " for " + CountText(keys.size(), "key")};
  }
  return reply;
}

Result<std::vector<std::optional<std::string>>> EtcdStore::GetMany(
    const std::vector<std::string>& keys) {
  for (const std::string& key : keys) KEEL_TRY(CheckKey(key));
  const std::lock_guard lock(mutex_);
  const TimePoint end = End();
  std::vector<std::optional<std::string>> values;
  for (size_t at = 0; at < keys.size(); at += kEtcdTxnOperationsMax) {
    const size_t count = std::min(kEtcdTxnOperationsMax, keys.size() - at);
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<std::string> some(first, first + static_cast<std::ptrdiff_t>(count));
    KEEL_TRY_ASSIGN(const EtcdReply reply,
                    ReadMany(some, false, Left(end), CancelToken::Never()));
    for (size_t i = 0; i < count; ++i) {
      Result<Held> held = HeldIn(some[i], reply, i, end);
      if (!held.ok() && held.error().code == Code::kNotFound) held = Read(some[i], end);
      if (!held.ok()) return held.error();
      values.push_back(std::move(held->value));
    }
  }
  return values;
}

Result<int64_t> EtcdStore::Add(const std::string& key, int64_t delta) {
  KEEL_TRY(CheckKey(key));
  const std::lock_guard lock(mutex_);
  const TimePoint end = End();
  KEEL_TRY_ASSIGN(Held held, Read(key, end));
  for (int conflicts = 0;; ++conflicts) {
    const Result<int64_t> before = ParseInteger(held.value.value_or("0"));
    int64_t sum = 0;
    if (!before.ok() || __builtin_add_overflow(*before, delta, &sum)) {
      return Error{Code::kInvalid, "store key '" + key + "' holds " + Shown(*held.value) +
                                       ", to which " + std::to_string(delta) +
                                       " cannot be added"};
    }
    if (delta == 0 && held.value) return sum;
    EtcdTxn txn;
    txn.compares = {EtcdModRevisionIs(keys_.Data(key), held.mod_revision)};
    txn.then = {EtcdPut(keys_.Data(key), std::to_string(sum), writer_.lease())};
    txn.otherwise = {EtcdRead({keys_.Data(key)})};
    KEEL_TRY_ASSIGN(const EtcdReply reply, writer_.Write(txn, Left(end)));
    if (reply.succeeded) return sum;
    if (Left(end) == Duration::zero()) {
      return Error{Code::kTimeout, "adding to store key '" + key + "': others changed it each "
                                       "time within " + DurationText(options_.limit)};
    }
    if (conflicts == 0) {
      KEEL_TRY_ASSIGN(held, HeldIn(key, reply, 0, end));
      continue;
    }
    const uint64_t most_us = kConflictPauseUs << std::min(conflicts, kConflictDoublings);
    RealClock().SleepFor(std::chrono::microseconds(random_.Uniform(most_us)));
    // What it held before the pause is old by now, and whoever tried with it would lose for ever.
    KEEL_TRY_ASSIGN(held, Read(key, end));
  }
}

Result<Store::Outcome> EtcdStore::CompareSet(const std::string& key,
                                             const std::optional<std::string>& expected,
                                             const std::string& desired) {
  KEEL_TRY(CheckKeyAndValue(key, desired));
  const std::lock_guard lock(mutex_);
  const TimePoint end = End();
  for (;;) {
    Json compare = EtcdModRevisionIs(keys_.Data(key), 0);
    const bool is_look = expected == desired;
    if (is_look || (expected && !EtcdValues::IsPlain(*expected))) {
      KEEL_TRY_ASSIGN(Held held, Read(key, end));
      if (is_look || held.value != expected) {
        const bool holds = held.value == desired;
        return Outcome{holds, std::move(held.value)};
      }
      compare = EtcdModRevisionIs(keys_.Data(key), held.mod_revision);
    } else if (expected) {
      compare = EtcdValueIs(keys_.Data(key), *expected);
    }
    const auto prepared = values_.Prepare(key, desired, Left(end));
    if (!prepared.ok()) return writer_.Explained(prepared.error());
    EtcdTxn txn;
    txn.compares.push_back(std::move(compare));
    txn.otherwise = {EtcdRead({keys_.Data(key)})};
    values_.AddSet(key, *prepared, txn);
    KEEL_TRY_ASSIGN(const EtcdReply reply, writer_.Write(txn, Left(end)));
    if (reply.succeeded) return Outcome{true, desired};
    Result<Held> held = HeldIn(key, reply, 0, end);
    if (!held.ok() && held.error().code != Code::kNotFound) return held.error();
    // It holds what was expected: our parts were gone, or a large value was written anew. Again.
    if (!held.ok() || held->value == expected) continue;
    const bool holds = held->value == desired;
    return Outcome{holds, std::move(held->value)};
  }
}

Result<bool> EtcdStore::Delete(const std::string& key) {
  KEEL_TRY(CheckKey(key));
  const std::lock_guard lock(mutex_);
  EtcdTxn txn;
  txn.compares = {EtcdExists(keys_.Data(key))};
  values_.AddDelete(key, txn);
  KEEL_TRY_ASSIGN(const EtcdReply reply, writer_.Write(txn, options_.limit));
  return reply.succeeded;
}

Result<std::vector<std::string>> EtcdStore::Missing(const std::vector<std::string>& keys,
                                                    Duration limit, const CancelToken& cancel,
                                                    int64_t* revision) {
  const TimePoint end = RealClock().Monotonic() + limit;
  std::vector<std::string> missing;
  *revision = 0;
  for (size_t at = 0; at < keys.size(); at += kEtcdTxnOperationsMax) {
    const size_t count = std::min(kEtcdTxnOperationsMax, keys.size() - at);
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<std::string> some(first, first + static_cast<std::ptrdiff_t>(count));
    KEEL_TRY_ASSIGN(const EtcdReply reply, ReadMany(some, true, Left(end), cancel));
    // Changes since the first answer count: a later one may have seen less.
    if (*revision == 0) *revision = reply.revision;
    for (size_t i = 0; i < count; ++i) {
      if (reply.results[i].empty()) missing.push_back(some[i]);
    }
  }
  return missing;
}

Status EtcdStore::Wait(const std::vector<std::string>& keys, Duration limit,
                       const CancelToken& cancel) {
  for (const std::string& key : keys) KEEL_TRY(CheckKey(key));
  const std::lock_guard lock(mutex_);
  const TimePoint end = RealClock().Monotonic() + limit;
  for (;;) {
    int64_t revision = 0;
    // It looks once at least, however short its limit is.
    KEEL_TRY_ASSIGN(std::vector<std::string> missing,
                    Missing(keys, std::max(Left(end), kEtcdAttemptLimit), cancel, &revision));
    if (missing.empty()) return Ok();
    const Status seen = AwaitKeys(keys, std::move(missing), revision, end, limit, cancel);
    // What was not delivered is compacted: all is read anew.
    if (seen.ok() || seen.error().code != Code::kNotFound) return seen;
  }
}

// Follows the changes since `revision`, when these keys were missing.
Status EtcdStore::AwaitKeys(const std::vector<std::string>& keys,
                            std::vector<std::string> missing, int64_t revision, TimePoint end,
                            Duration limit, const CancelToken& cancel) {
  std::set<std::string> absent(missing.begin(), missing.end());
  const auto [least, largest] = std::minmax_element(keys.begin(), keys.end());
  // A key that is there may be deleted before the last one comes, so all are followed.
  EtcdWatch watch(options_.access,
                  {keys_.Data(*least), keys_.Data(*largest) + std::string(1, '\0')}, revision + 1);
  const size_t cut = keys_.Data("").size();
  for (;;) {
    if (cancel.cancelled()) {
      return Error{Code::kCancelled, "the wait for store key " + *absent.begin() +
                                         " was cancelled"};
    }
    if (Left(end) == Duration::zero()) {
      return WaitTimedOut({absent.begin(), absent.end()}, keys.size(), limit);
    }
    const auto changes = watch.Next(Left(end), cancel);
    if (!changes.ok()) {
      const bool goes_on = changes.error().code == Code::kTimeout ||
                           changes.error().code == Code::kCancelled;
      if (!goes_on) return changes.error();
      continue;
    }
    for (const EtcdChange& change : *changes) {
      const std::string key = change.key.substr(cut);
      if (change.value) absent.erase(key);
      if (!change.value && std::find(keys.begin(), keys.end(), key) != keys.end()) {
        absent.insert(key);
      }
    }
    if (absent.empty()) return Ok();
  }
}

Result<std::unique_ptr<Store>> EtcdStore::Clone() {
  KEEL_TRY_ASSIGN(std::unique_ptr<EtcdStore> other, Open(options_));
  return std::unique_ptr<Store>(std::move(other));
}

std::unique_ptr<EtcdStoreWatch> EtcdStore::Watch(const std::string& prefix,
                                                 int64_t from_revision) const {
  return std::make_unique<EtcdStoreWatch>(options_.access, keys_,
                                          EtcdRange::Prefix(keys_.Data(prefix)), from_revision,
                                          options_.limit);
}

Result<EtcdStore::Listing> EtcdStore::List(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  const TimePoint end = End();
  const Json question = EtcdRangeQuestion(EtcdRange::Prefix(keys_.Data(prefix)));
  KEEL_TRY_ASSIGN(const Json answer, client_.Ask("/v3/kv/range", question, Left(end)));
  KEEL_TRY_ASSIGN(const EtcdReply reply, EtcdRangeReply(answer));
  Listing listing;
  listing.revision = reply.revision;
  for (const EtcdKeyValue& found : reply.results[0]) {
    const std::string key = found.key.substr(keys_.Data("").size());
    KEEL_TRY_ASSIGN(std::string value,
                    values_.Read(key, found.value, reply.revision, Left(end)));
    listing.keys.emplace_back(key, std::move(value));
  }
  return listing;
}

}  // namespace keel
