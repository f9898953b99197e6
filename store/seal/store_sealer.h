// StoreSealer: makes sealed stores (sealed_store.h), and remembers what was seen of each.
// Promises   all stores that are sealed under one name share what was seen, for as long as this
//            object or one of them lives.
// Threads    any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "store/seal/sealed_store.h"

namespace keel {

class StoreSealer {
 public:
  // `open_keys`: that others must be able to read.
  StoreSealer(Seal seal, std::set<std::string> open_keys)
      : seal_(std::move(seal)), open_keys_(std::move(open_keys)) {}

  // `name`: the address of the store, or another name that no two stores have.
  std::unique_ptr<Store> Sealed(std::unique_ptr<Store> store, const std::string& name);

 private:
  const Seal seal_;
  const std::set<std::string> open_keys_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SealedPast>> pasts_;   // guarded by mutex_; by name
};

}  // namespace keel
