// SealedStore: a store in which only values count that somebody wrote who has a certain secret.
// Promises   as store/store.h, for all who have the secret, whoever else reaches the store beneath.
//            What lacks a seal, has one for another key, or is an earlier value of its writer, is
//            not believed: the last value that was counts, or the key is taken to be absent. It is
//            told in the log. Who finds such a thing puts the last value back that he believed.
// Does not   seal numbers that are added to: what Add() returns is whatever the store has, so it
//            may hurry somebody, and must prove nothing; Get() does not read them. Say anything by
//            Wait() but that there is something under the key. Keep a stranger from removing keys,
//            or from spoiling for a moment what newcomers would read. Look whether a key exists
//            without reading its value.
// Threads    and errors as store/store.h. kTimeout of CompareSet(): strangers write the key as
//            fast as we do.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/seal/sealed_past.h"
#include "store/store.h"

namespace keel {

class SealedStore : public Store {
 public:
  struct Config {
    std::string address;               // of the store, for the log
    std::set<std::string> open_keys;   // that others must be able to read: they carry no seal
  };
  // `past`: of that store; all connections of a process to it share one.
  SealedStore(std::unique_ptr<Store> store, std::shared_ptr<SealedPast> past, Config config);

  Status Set(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> Get(const std::string& key) override;
  Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) override;
  Result<int64_t> Add(const std::string& key, int64_t delta) override {
    return store_->Add(key, delta);
  }
  Result<Outcome> CompareSet(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& desired) override;
  Result<bool> Delete(const std::string& key) override { return store_->Delete(key); }
  Status Wait(const std::vector<std::string>& keys, Duration limit,
              const CancelToken& cancel) override {
    return store_->Wait(keys, limit, cancel);
  }
  Result<std::unique_ptr<Store>> Clone() override;

 private:
  using Value = std::optional<std::string>;

  bool IsOpen(const std::string& key) const { return config_.open_keys.contains(key); }
  Status CheckSize(const std::string& key, const std::string& value) const;
  std::string Sealed(const std::string& key, const std::string& value);
  Result<Value> Read(const std::string& key, Value text, uint64_t since);
  Result<Outcome> Replace(const std::string& key, const Value& text, const std::string& with);

  const std::unique_ptr<Store> store_;
  const std::shared_ptr<SealedPast> past_;
  const Config config_;
  const std::string writer_;
  uint64_t count_ = 0;
};

}  // namespace keel
