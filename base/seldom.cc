// Counts what is not told.
#include "base/seldom.h"

#include <utility>

namespace keel {

std::optional<int64_t> Seldom::Tell(TimePoint now) {
  ++times_;
  if (told_ && now - *told_ < pause_) return std::nullopt;
  told_ = now;
  return std::exchange(times_, 0);
}

}  // namespace keel
