// HostWait: for what a launcher waits before its workers can make steps, for people.
// Threads    plain values.
#pragma once

#include <string>

#include "base/clock.h"

namespace keel {

struct HostWait {
  std::string what;            // "the store, which was last reached 40 s ago"
  TimePoint since;
  TimePoint until = kNever;    // when the launcher gives up; kNever: another one decides that
  std::string cure;            // what a person can do about it
};

}  // namespace keel
