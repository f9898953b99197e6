// The board in memory: one map under one mutex, and the faults planned for its clients.
#include "store/memory_store.h"

#include <charconv>

namespace keel {
namespace {

constexpr Duration kPollMax = std::chrono::milliseconds(2);

Error Lost(const std::string& client) {
  return {Code::kPeerLost, "store client '" + client + "' was cut off"};
}

Error NoReply(const std::string& client) {
  return {Code::kTimeout, "the store did not answer client '" + client + "'"};
}

}  // namespace

class MemoryClient : public Store {
 public:
  MemoryClient(MemoryBoard& board, std::string name, int64_t number)
      : board_(board), name_(std::move(name)), number_(number) {}

  Status Set(const std::string& key, const std::string& value) override {
    KEEL_TRY(CheckKeyAndValue(key, value));
    KEEL_TRY(Operate<bool>([&] {
      board_.keys_[key] = value;
      return true;
    }));
    return Ok();
  }

  Result<std::optional<std::string>> Get(const std::string& key) override {
    KEEL_TRY(CheckKey(key));
    return Operate<std::optional<std::string>>([&] { return Find(key); });
  }

  Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) KEEL_TRY(CheckKey(key));
    return Operate<std::vector<std::optional<std::string>>>([&] {
      std::vector<std::optional<std::string>> values;
      for (const std::string& key : keys) values.push_back(Find(key));
      return values;
    });
  }

  Result<int64_t> Add(const std::string& key, int64_t delta) override {
    KEEL_TRY(CheckKey(key));
    return Operate<int64_t>([&] {
      std::string& held = board_.keys_[key];
      int64_t number = 0;
      std::from_chars(held.data(), held.data() + held.size(), number);
      held = std::to_string(number + delta);
      return number + delta;
    });
  }

  Result<Outcome> CompareSet(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& desired) override {
    KEEL_TRY(CheckKeyAndValue(key, desired));
    return Operate<Outcome>([&] {
      if (Find(key) == expected) board_.keys_[key] = desired;
      std::optional<std::string> now = Find(key);
      const bool holds = now == desired;
      return Outcome{holds, std::move(now)};
    });
  }

  Result<bool> Delete(const std::string& key) override {
    KEEL_TRY(CheckKey(key));
    return Operate<bool>([&] { return board_.keys_.erase(key) > 0; });
  }

  Status Wait(const std::vector<std::string>& keys, Duration limit,
              const CancelToken& cancel) override {
    for (const std::string& key : keys) KEEL_TRY(CheckKey(key));
    const TimePoint end = board_.clock_.Monotonic() + limit;
    KEEL_TRY(Operate<bool>([] { return true; }));  // a planned fault may strike a wait, too
    std::unique_lock lock(board_.mutex_);
    for (;;) {
      const std::vector<std::string> missing = Missing(keys);
      if (!Alive()) return Lost(name_);
      if (missing.empty()) return Ok();
      if (cancel.cancelled()) {
        return Error{Code::kCancelled, "the wait for store key " + missing[0] + " was cancelled"};
      }
      if (board_.clock_.Monotonic() >= end) return WaitTimedOut(missing, keys.size(), limit);
      board_.changed_.wait_for(lock, kPollMax);
    }
  }

  Result<std::unique_ptr<Store>> Clone() override {
    {
      std::lock_guard lock(board_.mutex_);
      if (!Alive()) return Lost(name_);
    }
    return board_.Connect(name_);
  }

 private:
  // Runs one operation on the board, or meets the fault that is planned for it.
  template <class T, class F>
  Result<T> Operate(F&& operation) {
    std::lock_guard lock(board_.mutex_);
    ++board_.operations_;
    const std::optional<StoreFault> fault = NextFault();
    if (fault == StoreFault::kCut) cut_ = true;
    if (!Alive()) return Lost(name_);
    if (fault == StoreFault::kRequestLost) return NoReply(name_);
    T result = operation();
    board_.changed_.notify_all();
    if (fault == StoreFault::kReplyLost) return NoReply(name_);
    return result;
  }

  std::optional<StoreFault> NextFault() {
    auto [plan, end] = board_.plans_.equal_range(name_);
    std::optional<StoreFault> fault;
    while (plan != end) {
      const auto here = plan++;
      if (here->second.skip-- > 0) continue;
      fault = here->second.fault;
      board_.plans_.erase(here);
    }
    return fault;
  }

  bool Alive() const {
    const auto cut = board_.cuts_.find(name_);
    return !cut_ && number_ > board_.all_cut_ &&
           (cut == board_.cuts_.end() || number_ > cut->second);
  }

  std::optional<std::string> Find(const std::string& key) const {
    const auto found = board_.keys_.find(key);
    if (found == board_.keys_.end()) return std::nullopt;
    return found->second;
  }

  std::vector<std::string> Missing(const std::vector<std::string>& keys) const {
    std::vector<std::string> missing;
    for (const std::string& key : keys) {
      if (board_.keys_.count(key) == 0) missing.push_back(key);
    }
    return missing;
  }

  MemoryBoard& board_;
  const std::string name_;
  const int64_t number_;
  bool cut_ = false;
};

std::unique_ptr<Store> MemoryBoard::Connect(const std::string& client) {
  std::lock_guard lock(mutex_);
  return std::make_unique<MemoryClient>(*this, client, ++connections_);
}

void MemoryBoard::PlanFault(const std::string& client, int skip, StoreFault fault) {
  std::lock_guard lock(mutex_);
  plans_.emplace(client, Plan{skip, fault});
}

void MemoryBoard::Cut(const std::string& client) {
  std::lock_guard lock(mutex_);
  cuts_[client] = connections_;
  changed_.notify_all();
}

void MemoryBoard::CutAll() {
  std::lock_guard lock(mutex_);
  all_cut_ = connections_;
  changed_.notify_all();
}

void MemoryBoard::Restart() {
  CutAll();
  std::lock_guard lock(mutex_);
  keys_.clear();
}

size_t MemoryBoard::KeyCount() {
  std::lock_guard lock(mutex_);
  return keys_.size();
}

int64_t MemoryBoard::OperationCount() {
  std::lock_guard lock(mutex_);
  return operations_;
}

}  // namespace keel
