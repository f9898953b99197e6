// ReadAhead: asks the system to bring a directory's newest checkpoint into memory while its reader
// is still busy with something else.
// Promises   changes nothing and never fails: without it, reading only takes longer. It holds no
//            memory of this process, and uses only processor time that others leave: filling the
//            system's cache costs as much of it as unpacking does.
// Does not   verify. Go on after its destructor, which waits for one piece at most.
// Threads    starts one of its own.
#pragma once

#include <string>

#include "base/idle_work.h"

namespace keel {

class ReadAhead {
 public:
  // `root`: the directory of steps. Empty, missing or without a complete step: nothing is done.
  explicit ReadAhead(std::string root);

  void Wait() { work_.Wait(); }   // returns when everything was asked for

 private:
  IdleWork work_;
};

}  // namespace keel
