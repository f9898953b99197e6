// Checker: what must hold in every run (PROTOCOL.md; the invariants have their numbers in the .cc).
// Promises   says nothing of a run in which all holds; else the first thing that did not, in words.
// Does not   ask the machines what they believe: it sees processes, epochs' records and exits.
// Threads    one.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "tests/sim/scenario.h"
#include "tests/sim/workers.h"

namespace keel {

// What an outsider sees at a moment.
struct Health {
  TimePoint now;
  TimePoint disturbed;        // until when something is wrong
  int supervisors = 0;        // that are there
  bool store = false;         // is there
  std::string who;            // for the message
};

class Checker {
 public:
  explicit Checker(const Scenario& scenario) : scenario_(scenario) {}

  // The coordinator forms epochs of that board from now on.
  void StoreOpened(const std::string& generation);

  void Entered(const SimWorker& worker, const SimGroup& group, int rank,
               const SimWorkers& workers, TimePoint now);
  void Stepped(const SimGroup& group, TimePoint now);
  void SupervisorExits(int host, int code, bool leaves_workers, const SimWorkers& workers,
                       TimePoint now);
  void Tick(const Health& health);
  void JobOver(const SimWorkers& workers);

  const std::string& failure() const { return failure_; }
  int64_t epochs() const { return static_cast<int64_t>(epochs_.size()); }

 private:
  // Epochs in the order in which they were formed: by board, and on one board by number.
  using Order = std::pair<int, int64_t>;
  struct Epoch {
    Order order;
    int lineage = 0;                      // shared by all epochs that hosts have in common
    bool has_stepped = false;
    EpochRecord record;
    std::map<int, std::string> by_rank;   // who came with that rank; empty: nobody yet
  };

  Epoch& Know(const EpochRecord& record);
  int JoinLineages(const EpochRecord& record);
  void CheckRanksStable(const Epoch& epoch);
  void CheckPlace(Epoch& epoch, const SimWorker& worker, int rank);
  void CheckAlone(const SimWorker& worker, const SimGroup& group, const SimWorkers& workers);
  void Object(const std::string& failure);

  const Scenario& scenario_;
  std::map<std::string, int> generations_;
  std::map<std::string, Epoch> epochs_;       // by id
  std::map<Order, std::string> ids_;
  std::map<std::string, int> lineages_;       // of hosts, by incarnation
  int lineages_made_ = 0;
  TimePoint progress_;
  std::string failure_;
};

}  // namespace keel
