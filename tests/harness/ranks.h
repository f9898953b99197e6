// Ranks: N real processes of one program, each with its own environment, that a test starts,
// listens to, signals and waits for.
// Promises   every wait ends: with what was waited for, or with an Error that names who was waited
//            for and shows what everyone printed last. The destructor ends all, stopped ones and
//            grandchildren in other sessions too.
// Does not   deliver a signal in the very instant in which a line is printed, only right after.
// Threads    one, which made it; signals after lines are sent from threads of its own.
// Errors     kTimeout: the limit passed; kCancelled: the process ended first; those of Spawn().
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/harness/captured_process.h"
#include "tests/support/temp_dir.h"

namespace keel {

struct RanksSpec {
  std::vector<std::string> argv = {};
  int count = 1;
  // What each rank has on top of our environment, such as TorchEnvironment().
  std::function<Environment(int rank)> environment = [](int) { return Environment(); };
  std::string working_dir = {};
  std::string log_prefix = "rank-";   // output goes to <log_prefix><rank>.log in the test's folder
};

// What PyTorch's programs want to know about themselves: RANK, WORLD_SIZE, MASTER_PORT and so on.
Environment TorchEnvironment(int rank, int world_size, int master_port);

class Ranks {
 public:
  static Result<std::unique_ptr<Ranks>> Start(RanksSpec spec, const TempDir& folder);
  ~Ranks();

  int count() const { return spec_.count; }
  pid_t pid(int rank) const { return Process(rank).pid(); }

  // The n-th matching line since the rank's start, whether it is printed already or not.
  Result<std::string> AwaitLine(int rank, const Pattern& pattern, Duration limit,
                                int occurrence = 1);
  // The first matching line of each rank.
  Result<std::vector<std::string>> AwaitAll(const Pattern& pattern, Duration limit);

  Status Signal(int rank, int signal);
  // Once, as soon as `watched` prints such a line (or at once, if it has), `victim` gets the
  // signal.
  void SignalAfterLine(int watched, const Pattern& pattern, int victim, int signal);

  // The rank's end; all it printed is collected by then.
  Result<ExitStatus> Wait(int rank, Duration limit);
  Result<std::vector<ExitStatus>> WaitAll(Duration limit);

  // A new process in the rank's place; what is left of the old one is killed first. `changes` are
  // laid over the rank's environment, this time only.
  Status Restart(int rank, const Environment& changes = {});

  // All that the rank's present process has printed so far, and one stream of it.
  std::string Output(int rank) const;
  std::string Stdout(int rank) const;
  std::string Stderr(int rank) const;
  // How everyone is, with their last lines; where the rest is saved.
  std::string Report(size_t lines_max = 10) const;

 private:
  struct Trigger {
    int watched;
    Pattern pattern;
    int victim;
    int signal;
  };

  Ranks(RanksSpec spec, std::string folder);

  Status StartRank(int rank, const Environment& changes);
  void OnLine(int rank, const std::string& line);
  void Fire(const Trigger& trigger);
  CapturedProcess& Process(int rank) const;
  std::string LogPath(int rank) const;
  std::string Tail(int rank, size_t lines_max) const;
  Error Explain(const Error& error, const std::string& waiting, Duration limit, int rank) const;

  const RanksSpec spec_;
  const std::string folder_;

  // Taken by reader threads when a line has come: never held while a process is being ended, since
  // that waits for its reader.
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<CapturedProcess>> processes_;   // changed only under mutex_
  std::vector<Trigger> triggers_;                             // guarded by mutex_
};

}  // namespace keel
