// ReadAhead: asks the system to bring a directory's newest checkpoint into memory while whoever
// will read it is still busy with something else.
// Promises   changes nothing and never fails: without it, reading takes longer, that is all. Holds
//            no memory of this process, and takes what processors others leave: filling the
//            system's cache costs as much of one as unpacking does.
// Does not   verify. Go on behind its destructor, which waits for one piece at most.
// Threads    makes one of its own.
#pragma once

#include <string>

#include "base/idle_work.h"

namespace keel {

class ReadAhead {
 public:
  // `root`: where steps are; empty, not there or without a complete step: there is nothing to do.
  explicit ReadAhead(std::string root);

  void Wait() { work_.Wait(); }   // until all was asked for

 private:
  IdleWork work_;
};

}  // namespace keel
