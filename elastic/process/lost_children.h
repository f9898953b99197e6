// LostChildren: reaps the children that a subreaper inherits: what a worker or its script started,
// and did not wait for. Left alone, each of them would count for the limits on processes.
// Promises   reaps only what has ended, and that no Child object holds; what it finds for the first
//            time is left until the next look, since somebody may be about to adopt it.
// Does not   end anything (elastic/process/descendants.h).
// Threads    one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace keel {

class LostChildren {
 public:
  // To be called every few seconds. Takes next to no time while no child has ended.
  void Reap();

 private:
  std::vector<std::pair<pid_t, uint64_t>> seen_;   // at the last look: process, and when it began
};

}  // namespace keel
