// Waits by asking the store again and again.
#include "trainer/group/breakable_store.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

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

}  // namespace

BreakableStore::BreakableStore(c10::intrusive_ptr<c10d::Store> store,
                               std::function<bool()> broken, int waiters)
    : store_(std::move(store)), broken_(std::move(broken)),
      nap_max_(std::max<Duration>(kNapMax, kNapOfEach * waiters)) {}

BreakableStore::Bytes BreakableStore::Get(const std::string& key) {
  WaitFor({key}, {});
  return store_->get(key);
}

std::vector<BreakableStore::Bytes> BreakableStore::GetAll(const std::vector<std::string>& keys,
                                                          const OnMissing& on_missing) {
  WaitFor(keys, on_missing);
  if (store_->hasExtendedApi()) return store_->multiGet(keys);
  std::vector<Bytes> values;
  for (const std::string& key : keys) values.push_back(store_->get(key));
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
