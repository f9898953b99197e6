// BreakableStore: what the building of a group needs of a c10d store, with waits that end when a
// flag is raised.
// Promises   a wait ends within ten milliseconds of the flag, with an exception that says for which
//            key it waited. However many members wait together for one key, they ask for it about
//            ten thousand times a second at most.
//            Where there is a secret, what others than its members have written is told in the
//            log, and waited for as if it were not there.
// Does not   end a wait by itself: who wants a limit raises the flag. Interrupt an operation of the
//            store underneath: a store whose host is frozen blocks until its own limit.
// Threads    one.
// Errors     exceptions, as those of the store underneath.
// Cures      a trap: TCPStore's get() and wait() block inside the client's lock and end only at
//            their timeout, so a break could not reach a group that waits for an address.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/seal/seal.h"

namespace keel {

class BreakableStore {
 public:
  using Bytes = std::vector<uint8_t>;
  // Is told the first of the keys that was not there when it was looked for.
  using OnMissing = std::function<void(size_t index)>;

  // `broken` is asked while waiting; so many members wait for the same. `seal`: of the epoch's
  // secret; nothing: whatever is there is believed.
  BreakableStore(c10::intrusive_ptr<c10d::Store> store, std::function<bool()> broken,
                 int waiters, std::optional<Seal> seal = {});

  void Set(const std::string& key, const Bytes& value);
  // Both wait until they are there.
  Bytes Get(const std::string& key);
  std::vector<Bytes> GetAll(const std::vector<std::string>& keys, const OnMissing& on_missing);
  void Delete(const std::string& key) { (void)store_->deleteKey(key); }

 private:
  std::optional<Bytes> Opened(const std::string& key, const Bytes& bytes);
  void WaitFor(const std::vector<std::string>& keys, const OnMissing& on_missing);
  size_t FirstMissing(const std::vector<std::string>& keys, size_t there) const;
  void Nap(Duration nap) const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::function<bool()> broken_;
  const Duration nap_max_;
  const std::optional<Seal> seal_;
  bool is_stranger_told_ = false;
};

}  // namespace keel
