// JobExit: the exit codes of the launcher, which schedulers decide by. The one place that has them.
#pragma once

namespace keel {

enum class JobExit : int {
  kFinished = 0,
  kFailed = 1,          // the program failed more often than allowed; a value makes no sense
  kUsage = 2,           // the command line was not understood
  kStopped = 75,        // stopped on request, all is saved: start again to continue
  kLostQuorum = 76,     // too few hosts for too long
  kNotSaved = 77,       // stopped on request, but not saved in time
  kRefused = 78,        // this host does not fit the job
};

}  // namespace keel
