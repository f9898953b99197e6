// There are two limits: one doubles, the other begins again with each byte.
#include "trainer/save/watch.h"

#include <algorithm>

namespace keel {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr int kLate = 4;   // times what is expected
constexpr Duration kDiskPatience = std::chrono::minutes(5);

}  // namespace

void SaveWatch::OnBegin(TimePoint now, Duration spread, std::optional<Duration> expected) {
  begin_ = now;
  tell_after_ = spread + std::max(kPatience, kLate * expected.value_or(Duration(0)));
}

std::optional<Duration> SaveWatch::Look(TimePoint now) {
  const Duration passed = now - begin_;
  if (passed < tell_after_) return std::nullopt;
  tell_after_ = 2 * passed;
  return passed;
}

bool DiskPatience::IsLeft(TimePoint now, uint64_t bytes) {
  if (bytes != bytes_) moved_ = now;
  bytes_ = bytes;
  return now - moved_ < kDiskPatience;
}

}  // namespace keel
