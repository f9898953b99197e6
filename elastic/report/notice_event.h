// NoticeEvent: what is heard, and believed, of the end of this machine (elastic/notice/watch.h).
// Threads    plain values.
#pragma once

#include <string>

#include "base/clock.h"

namespace keel {

struct NoticeEvent {
  enum class Kind {
    kFound,         // a service answers as one of those asked
    kHint,
    kAnnounced,     // an end, which may still be withdrawn
    kWithdrawn,
    kLeave,         // the last event
    kUnreachable,   // says why; once, until kReached
    kReached,
    kGaveUp,        // says why; nobody is asked any more
  };
  Kind kind = Kind::kFound;
  std::string text = {};
  Duration left{0};        // for kAnnounced and kLeave: time to the end, as far as it is believed
  std::string note = {};   // for kAnnounced: what it says itself, if that is not believed
};

}  // namespace keel
