// SimStore: a client of the MemoryBoard behind a network that may be cut, and whose operations let
// other hosts get in between.
// Threads    one.
#pragma once

#include <functional>
#include <memory>

#include "store/store.h"

namespace keel {

class SimStore : public Store {
 public:
  // `before` runs ahead of every operation and says whether it gets through.
  SimStore(std::unique_ptr<Store> inner, std::function<bool()> before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  Status Set(const std::string& key, const std::string& value) override {
    return Through<Status>([&] { return inner_->Set(key, value); });
  }
  Result<std::optional<std::string>> Get(const std::string& key) override {
    return Through<Result<std::optional<std::string>>>([&] { return inner_->Get(key); });
  }
  Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) override {
    using Values = Result<std::vector<std::optional<std::string>>>;
    return Through<Values>([&] { return inner_->GetMany(keys); });
  }
  Result<int64_t> Add(const std::string& key, int64_t delta) override {
    return Through<Result<int64_t>>([&] { return inner_->Add(key, delta); });
  }
  Result<Outcome> CompareSet(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& desired) override {
    return Through<Result<Outcome>>([&] { return inner_->CompareSet(key, expected, desired); });
  }
  Result<bool> Delete(const std::string& key) override {
    return Through<Result<bool>>([&] { return inner_->Delete(key); });
  }
  Status Wait(const std::vector<std::string>&, Duration, const CancelToken&) override {
    return Error{Code::kInvalid, "nothing in the simulator may wait in the store"};
  }
  Result<std::unique_ptr<Store>> Clone() override {
    return Error{Code::kInvalid, "nothing in the simulator clones a store"};
  }

 private:
  template <class R, class F>
  R Through(F&& operation) {
    if (!before_()) return Error{Code::kTimeout, "the store cannot be reached"};
    return operation();
  }

  const std::unique_ptr<Store> inner_;
  const std::function<bool()> before_;
};

}  // namespace keel
