// MemoryWarmer: has the system hand out memory that will be written to soon, in the background, so
// that whoever writes does not wait for it page by page.
// Promises   changes no byte, so that the memory may be read and written meanwhile. Takes what
//            processors others leave. Where the system cannot do it (Linux before 5.14), it does
//            nothing.
// Does not   go on behind its destructor, which waits for one piece at most; the memory must last
//            until then.
// Threads    makes one of its own; Stop() from any.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/idle_work.h"

namespace keel {

class MemoryWarmer {
 public:
  explicit MemoryWarmer(std::vector<std::span<std::byte>> places);

  void Stop() { work_.Stop(); }
  void Wait() { work_.Wait(); }   // until all is there, or it was stopped

 private:
  IdleWork work_;
};

}  // namespace keel
