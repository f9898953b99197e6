// Passes everything on, but waits by asking the store again and again.
#include "trainer/group/breakable_store.h"

#include <algorithm>
#include <stdexcept>

namespace keel {
namespace {

// Naps are short at first: usually the others are only a moment behind.
constexpr Duration kNapMin = std::chrono::microseconds(100);
constexpr Duration kNapMax = std::chrono::milliseconds(2);

}  // namespace

BreakableStore::BreakableStore(c10::intrusive_ptr<c10d::Store> store,
                               std::function<bool()> broken, Duration limit)
    : store_(std::move(store)), broken_(std::move(broken)), limit_(limit) {}

std::vector<uint8_t> BreakableStore::LastSet(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = set_.find(key);
  return found == set_.end() ? std::vector<uint8_t>() : found->second;
}

void BreakableStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  {
    const std::lock_guard lock(mutex_);
    set_[key] = value;
  }
  store_->set(key, value);
}

std::vector<uint8_t> BreakableStore::compareSet(const std::string& key,
                                                const std::vector<uint8_t>& expected,
                                                const std::vector<uint8_t>& desired) {
  return store_->compareSet(key, expected, desired);
}

std::vector<uint8_t> BreakableStore::get(const std::string& key) {
  wait({key});
  return store_->get(key);
}

int64_t BreakableStore::add(const std::string& key, int64_t value) {
  return store_->add(key, value);
}

bool BreakableStore::deleteKey(const std::string& key) { return store_->deleteKey(key); }

bool BreakableStore::check(const std::vector<std::string>& keys) { return store_->check(keys); }

int64_t BreakableStore::getNumKeys() { return store_->getNumKeys(); }

void BreakableStore::wait(const std::vector<std::string>& keys) {
  WaitUntil(keys, RealClock().Monotonic() + limit_);
}

void BreakableStore::wait(const std::vector<std::string>& keys,
                          const std::chrono::milliseconds& limit) {
  // c10d passes its default of five minutes where it means "as long as the store allows".
  WaitUntil(keys, RealClock().Monotonic() + std::min<Duration>(limit, limit_));
}

c10::intrusive_ptr<c10d::Store> BreakableStore::clone() {
  return c10::make_intrusive<BreakableStore>(store_, broken_, limit_);
}

void BreakableStore::WaitUntil(const std::vector<std::string>& keys, TimePoint deadline) {
  for (Duration nap = kNapMin;; nap = std::min<Duration>(nap * 3 / 2, kNapMax)) {
    if (broken_()) throw std::runtime_error("broken while waiting for key " + keys.front());
    if (store_->check(keys)) return;
    if (RealClock().Monotonic() >= deadline) {
      throw std::runtime_error("timed out waiting for key " + keys.front());
    }
    RealClock().SleepFor(nap);
  }
}

}  // namespace keel
