// Seldom: when to tell of something that may happen again and again.
// Promises   the first time is told at once; from then on at most once a pause, with how often it
//            has happened since it was told last.
// Threads    one.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace keel {

class Seldom {
 public:
  explicit Seldom(Duration pause) : pause_(pause) {}

  // It has happened again. How many times are to be told now; nothing: it is too soon.
  std::optional<int64_t> Tell(TimePoint now);

 private:
  const Duration pause_;
  std::optional<TimePoint> told_;
  int64_t times_ = 0;
};

}  // namespace keel
