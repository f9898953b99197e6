// SimStore: a client of the MemoryBoard behind a network that may be cut, and whose operations let
// other hosts get in between.
// Threads    one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

namespace keel {

class SimStore : public Store {
 public:
  enum class Way {
    kThrough,
    kLost,
    kUnanswered,   // the board gets it, and the answer is lost
    kLate,   // the board gets it long after the client has given up
  };
  // Runs ahead of every operation and says what becomes of it.
  using Before = std::function<Way()>;
  using Later = std::function<void(std::function<void()>)>;

  SimStore(std::unique_ptr<Store> inner, Before before, Later later)
      : inner_(std::move(inner)), before_(std::move(before)), later_(std::move(later)) {}

  Status Set(const std::string& key, const std::string& value) override {
    return Through(&Store::Set, key, value);
  }
  Result<std::optional<std::string>> Get(const std::string& key) override {
    return Through(&Store::Get, key);
  }
  Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) override {
    return Through(&Store::GetMany, keys);
  }
  Result<int64_t> Add(const std::string& key, int64_t delta) override {
    return Through(&Store::Add, key, delta);
  }
  Result<Outcome> CompareSet(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& desired) override {
    return Through(&Store::CompareSet, key, expected, desired);
  }
  Result<bool> Delete(const std::string& key) override { return Through(&Store::Delete, key); }
  Status Wait(const std::vector<std::string>&, Duration, const CancelToken&) override {
    return Error{Code::kInvalid, "nothing in the simulator may wait in the store"};
  }
  Result<std::unique_ptr<Store>> Clone() override {
    return Error{Code::kInvalid, "nothing in the simulator clones a store"};
  }

 private:
  // What comes late outlives the call, so it has copies of its own.
  template <class R, class... Parameters, class... Arguments>
  R Through(R (Store::*operation)(Parameters...), const Arguments&... arguments) {
    const Way way = before_();
    if (way == Way::kThrough) return (inner_.get()->*operation)(arguments...);
    if (way == Way::kUnanswered) static_cast<void>((inner_.get()->*operation)(arguments...));
    if (way == Way::kLate) {
      later_([inner = inner_, operation, arguments...] {
        static_cast<void>((inner.get()->*operation)(arguments...));
      });
    }
    return Error{Code::kTimeout, "the store cannot be reached"};
  }

  const std::shared_ptr<Store> inner_;
  const Before before_;
  const Later later_;
};

}  // namespace keel
