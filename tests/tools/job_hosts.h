// JobHosts: the launchers of one job on this machine, which take each other for hosts.
// Promises   every process of the job, also one whose launcher is gone, carries `mark()` in its
//            environment, so that a test can tell that none is left.
// Threads    one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/harness/launched.h"

namespace keel {

class JobHosts {
 public:
  explicit JobHosts(int workers_per_host = 1);

  std::unique_ptr<Launched> Start(const std::string& name, std::vector<std::string> options,
                                  const std::vector<std::string>& program,
                                  const Environment& environment = {});
  // A foreign worker: it says where it is, and runs until it may finish.
  std::unique_ptr<Launched> StartForeign(const std::string& name,
                                         const std::vector<std::string>& options);
  // One in place: tests/elastic/survivor.cc.
  std::unique_ptr<Launched> StartSurvivor(const std::string& name,
                                          const std::vector<std::string>& options,
                                          const Environment& environment = {});
  // The workers of all hosts, and of those that are still to come.
  void LetFinish();

  const std::string& mark() const { return mark_; }
  const std::string& done_file() const { return done_file_; }
  uint16_t port() const { return port_; }
  const TempDir& folder() const { return folder_; }

 private:
  const int workers_per_host_;
  TempDir folder_;
  const std::string done_file_;
  const uint16_t port_;
  const std::string mark_;
};

// One worker's line "epoch <E> rank <R> of <W> pid <P> count <C>".
struct Entry {
  int64_t epoch = -1;
  int64_t pid = -1;
  int64_t count = -1;
};
// Those of the first epoch of that many workers, newer than `after`, that `workers` workers of the
// host have entered, none of them `without`; by pid. Of hosts that come, one worker may be ready
// before the other, so that an epoch of fewer comes first.
std::vector<Entry> AwaitEntries(Launched& host, int world, int workers, int64_t after = 0,
                                int64_t without = -1);

}  // namespace keel
