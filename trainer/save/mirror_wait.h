// MirrorWait: waits for what counts only once the mirror has it, piece by piece, so that whoever
// waits can tell others that it is alive.
// Promises   ends by its deadline, and without one when nothing new has reached the mirror for as
//            long as a disk is waited for (trainer/save/watch.h): attempts that fail again and
//            again are nothing new.
// Threads    one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "trainer/save/mirror.h"
#include "trainer/save/watch.h"

namespace keel {

// What a worker needs to tell others how its wait has ended, to let go of both places, and to end.
inline constexpr Duration kEndMargin = std::chrono::seconds(4);

class MirrorWait {
 public:
  // `from`: for people, where it is saved already. With `all` it waits for whatever is to be there.
  MirrorWait(Mirror& mirror, Clock& clock, std::string from, uint64_t step, bool all);

  // True: it is there. False: not within `limit`, but it may be. An error: it is given up, and why.
  // `deadline`: when this process must be gone.
  Result<bool> Await(Duration limit, std::optional<TimePoint> deadline);

 private:
  Mirror& mirror_;
  Clock& clock_;
  const std::string from_;
  const uint64_t step_;
  const bool all_;
  const TimePoint begin_;
  DiskPatience patience_;
  uint64_t most_ = 0;   // of what has reached the mirror
};

}  // namespace keel
