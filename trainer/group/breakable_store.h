// BreakableStore: a c10d store whose waits end when a flag is raised.
// Promises   wait() and get() end within a few milliseconds of the flag, or at their limit, with an
//            exception that says for which key they waited.
// Does not   interrupt an operation of the store underneath: a store whose host is frozen blocks
//            until its own limit.
// Threads    as the store underneath.
// Cures      a trap: TCPStore's get() and wait() block inside the client's lock and end only at
//            their timeout, so a break could not reach a group that waits for an address.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"

namespace keel {

class BreakableStore final : public c10d::Store {
 public:
  // `broken` is asked while waiting; `limit` applies if the caller gives none.
  BreakableStore(c10::intrusive_ptr<c10d::Store> store, std::function<bool()> broken,
                 Duration limit);

  // What was last set under `key` through this object; empty if nothing was.
  std::vector<uint8_t> LastSet(const std::string& key) const;

  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& limit) override;
  // Not marked `override`: LibTorch before 2.8 has no such method.
  c10::intrusive_ptr<c10d::Store> clone();

 private:
  void WaitUntil(const std::vector<std::string>& keys, TimePoint deadline);

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::function<bool()> broken_;
  const Duration limit_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<uint8_t>> set_;  // guarded by mutex_
};

}  // namespace keel
