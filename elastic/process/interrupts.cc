// Compares with the one before.
#include "elastic/process/interrupts.h"

#include <utility>

namespace keel {
namespace {

constexpr Duration kAgain = std::chrono::seconds(2);

}  // namespace

bool Interrupts::IsSecond(TimePoint now) {
  const auto before = std::exchange(last_, now);
  return before && now - *before <= kAgain;
}

}  // namespace keel
