// AddressStore: what a group's Gloo takes for a store. Gloo would publish its own address there and
// ask for that of each other member by itself: as many questions as pairs of members.
// Promises   what Gloo sets is kept here, and what it asks for is found here at once, if somebody
//            put it here. Once the flag is raised, nothing is found any more.
// Does not   wait, or ask anybody.
// Threads    any.
// Errors     exceptions: broken; a key that nobody has put here; what no Gloo of ours does.
#pragma once

#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace keel {

class AddressStore final : public c10d::Store {
 public:
  explicit AddressStore(std::function<bool()> broken) : broken_(std::move(broken)) {}

  // As Gloo publishes it; empty if it has not.
  std::vector<uint8_t> Of(int rank) const;
  void Put(int rank, const std::vector<uint8_t>& address);

  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> get(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& limit) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  int64_t getNumKeys() override;
  // Not marked `override`: LibTorch before 2.8 has no such method.
  c10::intrusive_ptr<c10d::Store> clone();

 private:
  const std::function<bool()> broken_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<uint8_t>> values_;  // guarded by mutex_
};

// The socket's address in what Gloo published; empty if this version of Gloo writes it differently.
std::optional<sockaddr_storage> SocketAddressOf(const std::vector<uint8_t>& published);

}  // namespace keel
