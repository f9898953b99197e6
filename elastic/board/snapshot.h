// BoardSnapshot: what several keys of the board held at one moment, to be read by key.
// Threads    a plain value. Errors: those of the store.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace keel {

class BoardSnapshot {
 public:
  static Result<BoardSnapshot> Take(Store& store, const std::vector<std::string>& keys) {
    KEEL_TRY_ASSIGN(const auto values, store.GetMany(keys));
    BoardSnapshot snapshot;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (values[i]) snapshot.values_.emplace(keys[i], *values[i]);
    }
    return snapshot;
  }

  // The value of `key`; null if the board has no such key, or it was not asked for.
  const std::string* Of(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace keel
