// Store: the key-value board through which supervisors and workers find each other.
// Promises   each operation is atomic; a read sees what any client had written before it began;
//            every operation ends within its client's limit, even if the other side says nothing.
// Does not   last longer than its host; tell who wrote a key; order operations of different
//            clients.
// Threads    any, but the operations of one Store run one after the other, and Wait() counts as
//            one: a thread that waits needs a Store of its own (Clone()).
// Errors     kTimeout (the limit passed), kCancelled, kPeerLost (the connection is gone: this
//            Store is of no more use, make another), kInvalid (key or value too large).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/cancel.h"

namespace keel {

inline constexpr size_t kStoreKeyBytesMax = 4096;
inline constexpr size_t kStoreValueBytesMax = 4 << 20;

class Store {
 public:
  virtual ~Store() = default;

  virtual Status Set(const std::string& key, const std::string& value) = 0;

  // Empty if the key is absent; does not wait for it.
  virtual Result<std::optional<std::string>> Get(const std::string& key) = 0;
  virtual Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) = 0;
  // Whether the key exists. Where the store can tell that, a long value is not read for it.
  virtual Result<bool> Has(const std::string& key);

  // Adds to the decimal number in `key` (absent is 0) and returns the sum. A key that is added to
  // must not be written by Set() or CompareSet().
  virtual Result<int64_t> Add(const std::string& key, int64_t delta) = 0;

  // Writes `desired` if the key holds `expected` (empty: if the key is absent), and returns what
  // the key holds then. It cannot tell its own write from another client's write of the same bytes,
  // so values that compete must name their writer.
  struct Outcome {
    bool holds_desired = false;
    std::optional<std::string> now;  // what the key holds after the call
  };
  virtual Result<Outcome> CompareSet(const std::string& key,
                                     const std::optional<std::string>& expected,
                                     const std::string& desired) = 0;

  // Returns whether the key existed.
  virtual Result<bool> Delete(const std::string& key) = 0;

  // Returns when all keys exist; kTimeout at `limit` names those that are missing.
  virtual Status Wait(const std::vector<std::string>& keys, Duration limit,
                      const CancelToken& cancel = CancelToken::Never()) = 0;

  // Another connection to the same board.
  virtual Result<std::unique_ptr<Store>> Clone() = 0;
};

// The checks on sizes that every Store makes before it does anything.
Status CheckKey(const std::string& key);
Status CheckKeyAndValue(const std::string& key, const std::string& value);

// "waited 5 s for 2 of 3 keys: epoch/7, epoch/8": the words of Wait()'s kTimeout.
Error WaitTimedOut(const std::vector<std::string>& missing, size_t asked, Duration limit);

}  // namespace keel
