// A map with a lock.
#include "trainer/group/address_store.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace keel {
namespace {

// Under which a rank's address is; Gloo's first (and only) context is number 0.
std::string AddressKey(int rank) { return "0/" + std::to_string(rank); }

[[noreturn]] void Refuse(const std::string& call) {
  throw std::runtime_error("Gloo called " + call + " of its store, which this version should not");
}

}  // namespace

std::vector<uint8_t> AddressStore::Of(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(AddressKey(rank));
  return found == values_.end() ? std::vector<uint8_t>() : found->second;
}

void AddressStore::Put(int rank, const std::vector<uint8_t>& address) {
  set(AddressKey(rank), address);
}

void AddressStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
}

std::vector<uint8_t> AddressStore::get(const std::string& key) {
  wait({key});
  const std::lock_guard lock(mutex_);
  return values_.at(key);
}

bool AddressStore::check(const std::vector<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  return std::all_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return values_.contains(key); });
}

void AddressStore::wait(const std::vector<std::string>& keys) {
  if (broken_()) throw std::runtime_error("broken while asking for key " + keys.front());
  if (!check(keys)) throw std::runtime_error("nobody has the address " + keys.front());
}

void AddressStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) {
  wait(keys);
}

int64_t AddressStore::add(const std::string&, int64_t) { Refuse("add()"); }
bool AddressStore::deleteKey(const std::string&) { Refuse("deleteKey()"); }
int64_t AddressStore::getNumKeys() { Refuse("getNumKeys()"); }
c10::intrusive_ptr<c10d::Store> AddressStore::clone() { Refuse("clone()"); }

// Length and text of the host's name, length of the address, the address.
std::optional<sockaddr_storage> SocketAddressOf(const std::vector<uint8_t>& published) {
  uint64_t name_bytes = 0;
  if (published.size() < sizeof(name_bytes)) return {};
  std::memcpy(&name_bytes, published.data(), sizeof(name_bytes));
  const uint64_t offset = 2 * sizeof(uint64_t) + name_bytes;
  sockaddr_storage address{};
  if (name_bytes > published.size() || published.size() < offset + sizeof(address)) return {};
  std::memcpy(&address, published.data() + offset, sizeof(address));
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return {};
  return address;
}

}  // namespace keel
