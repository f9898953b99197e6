// Waits by asking the store again and again.
#include "trainer/group/breakable_store.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace keel {
namespace {

// Naps are short at first: usually the others are only a moment behind.
constexpr Duration kNapMin = std::chrono::microseconds(100);
constexpr Duration kNapMax = std::chrono::milliseconds(2);
// Where many wait, each of them asks less often.
constexpr Duration kNapOfEach = std::chrono::microseconds(100);
// A break is noticed so soon.
constexpr Duration kLookForBreak = std::chrono::milliseconds(10);

std::vector<std::string> Part(const std::vector<std::string>& keys, size_t begin, size_t end) {
  return {keys.begin() + static_cast<std::ptrdiff_t>(begin),
          keys.begin() + static_cast<std::ptrdiff_t>(end)};
}

constexpr std::string_view kSealed = "group";

std::string_view TextOf(const BreakableStore::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

BreakableStore::BreakableStore(c10::intrusive_ptr<c10d::Store> store,
                               std::function<bool()> broken, int waiters,
                               std::optional<Seal> seal)
    : store_(std::move(store)), broken_(std::move(broken)),
      nap_max_(std::max<Duration>(kNapMax, kNapOfEach * waiters)), seal_(std::move(seal)) {}

void BreakableStore::Set(const std::string& key, const Bytes& value) {
  const std::string seal = seal_ ? seal_->Of({kSealed, key, TextOf(value)}) : "";
  Bytes bytes(seal.begin(), seal.end());
  bytes.insert(bytes.end(), value.begin(), value.end());
  store_->set(key, bytes);
}

// Nothing: somebody has written it who has not the secret.
std::optional<BreakableStore::Bytes> BreakableStore::Opened(const std::string& key,
                                                            const Bytes& bytes) {
  if (!seal_) return bytes;
  const std::string_view text = TextOf(bytes);
  const std::string_view seal = text.substr(0, Seal::kBytes);
  if (seal_->Fits(seal, {kSealed, key, text.substr(seal.size())})) {
    return Bytes(bytes.begin() + Seal::kBytes, bytes.end());
  }
  if (!std::exchange(is_stranger_told_, true)) {
    LogWarn("store-stranger",
            {{"key", key}, {"reason", "it has no seal of this epoch's workers"}});
  }
  return std::nullopt;
}

BreakableStore::Bytes BreakableStore::Get(const std::string& key) {
  while (true) {
    WaitFor({key}, {});
    if (auto value = Opened(key, store_->get(key))) return *std::move(value);
    Nap(nap_max_);
  }
}

std::vector<BreakableStore::Bytes> BreakableStore::GetAll(const std::vector<std::string>& keys,
                                                          const OnMissing& on_missing) {
  WaitFor(keys, on_missing);
  std::vector<Bytes> values;
  if (store_->hasExtendedApi()) {
    values = store_->multiGet(keys);
  } else {
    for (const std::string& key : keys) values.push_back(store_->get(key));
  }
  for (size_t i = 0; seal_ && i < keys.size(); ++i) {
    std::optional<Bytes> value = Opened(keys[i], values[i]);
    values[i] = value ? *std::move(value) : Get(keys[i]);
  }
  return values;
}

void BreakableStore::WaitFor(const std::vector<std::string>& keys, const OnMissing& on_missing) {
  size_t there = 0;   // all keys before it
  for (Duration nap = kNapMin;; nap = std::min<Duration>(nap * 3 / 2, nap_max_)) {
    if (broken_()) throw std::runtime_error("broken while waiting for key " + keys[there]);
    if (store_->check(Part(keys, there, keys.size()))) return;
    if (nap == nap_max_) {   // most often all are there before it is worth a look
      there = FirstMissing(keys, there);
      if (on_missing) on_missing(there);
    }
    Nap(nap);
  }
}

// Of keys that are not all there.
size_t BreakableStore::FirstMissing(const std::vector<std::string>& keys, size_t there) const {
  for (size_t end = keys.size(); end - there > 1;) {
    const size_t middle = there + (end - there) / 2;
    (store_->check(Part(keys, there, middle)) ? there : end) = middle;
  }
  return there;
}

void BreakableStore::Nap(Duration nap) const {
  for (const TimePoint end = RealClock().Monotonic() + nap; !broken_();) {
    const Duration left = end - RealClock().Monotonic();
    if (left <= Duration::zero()) return;
    RealClock().SleepFor(std::min<Duration>(left, kLookForBreak));
  }
}

}  // namespace keel
