// Whoever comes from a new address each time finds the list full.
#include "elastic/board/strangers.h"

#include <map>
#include <mutex>

#include "base/clock.h"
#include "base/log.h"
#include "base/seldom.h"

namespace keel {
namespace {

constexpr size_t kAddressesMax = 100;
constexpr Duration kStrangerPause = std::chrono::minutes(1);

struct Strangers {
  std::mutex mutex;
  TimePoint began{};
  std::map<std::string, Seldom> by_address;   // guarded by `mutex`, as `began`
};

std::optional<int64_t> TimesToTell(const std::string& address) {
  static Strangers& strangers = *new Strangers;   // threads may still tell as the process ends
  const TimePoint now = RealClock().Monotonic();
  const std::lock_guard lock(strangers.mutex);
  const bool is_full = strangers.by_address.size() >= kAddressesMax;
  if (is_full && now - strangers.began > kStrangerPause) strangers.by_address.clear();
  if (strangers.by_address.empty()) strangers.began = now;
  const auto known = strangers.by_address.find(address);
  if (known != strangers.by_address.end()) return known->second.Tell(now);
  if (strangers.by_address.size() >= kAddressesMax) return std::nullopt;
  return strangers.by_address.emplace(address, Seldom(kStrangerPause)).first->second.Tell(now);
}

}  // namespace

void TellStranger(const std::string& address, const std::string& what) {
  const auto times = TimesToTell(address);
  if (!times) return;
  LogWarn("stranger", {{"address", address}, {"reason", what}, {"times", *times}});
}

}  // namespace keel
