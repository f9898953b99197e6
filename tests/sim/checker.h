// Checker: what must hold in every run (PROTOCOL.md; the invariants have their numbers in the .cc).
// Promises   says nothing of a run in which all holds; else the first thing that did not, in words.
// Does not   ask the machines what they believe: it sees processes, epochs' records and exits.
// Threads    one.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

// A board that was opened, and who still heard the former one when a host took the role unasked.
struct Opening {
  std::string generation;
  int host = 0;
  BoardPlace place;
  std::string heard_by;       // empty: nobody, or it was asked
};

class Checker {
 public:
  using OfHost = std::function<bool(const std::string& incarnation)>;
  // `is_gone`: whether that host is dead. `stands_still`: whether its supervisor is stopped, or was
  // until just now.
  Checker(const Scenario& scenario, OfHost is_gone, OfHost stands_still)
      : scenario_(scenario), is_gone_(std::move(is_gone)),
        stands_still_(std::move(stands_still)) {}

  // The coordinator forms epochs of that board from now on.
  void BoardOpened(const Opening& opening);
  void BoardLeft(const std::string& address) { open_.erase(address); }
  void Reached(int host, const BoardPlace& left, const BoardPlace& reached);
  void ToldOfEnd(const std::string& incarnation, const std::string& what);
  void Formed(const EpochRecord& record);
  void Read(const std::string& incarnation, const EpochRecord& record);

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
  std::vector<std::string> HostsThatKnow(const EpochRecord& record);
  int JoinLineages(const EpochRecord& record);
  void CheckRanksStable(const Epoch& epoch);
  void CheckRestarts(const Epoch& epoch);
  void CheckEnd(const SimWorker& worker, const EpochRecord& record);
  void CheckPlace(Epoch& epoch, const SimWorker& worker, int rank);
  void CheckAlone(const SimWorker& worker, const SimGroup& group, const SimWorkers& workers);
  void Object(const std::string& failure);
  bool IsOutOfReach(const EpochRecord& epoch) const;

  const Scenario& scenario_;
  const OfHost is_gone_, stands_still_;
  std::map<std::string, int> generations_;
  std::set<std::string> addresses_;                        // of all boards
  std::map<std::string, BoardPlace> open_;                 // those that nobody has left, by address
  std::map<std::string, std::string> told_;                // by incarnation: how the job ends
  std::map<std::string, std::set<std::string>> too_late_;  // by epoch: hosts that had been told
  std::map<std::string, Epoch> epochs_;       // by id
  std::map<Order, std::string> ids_;
  std::map<std::string, int> lineages_;       // of hosts, by incarnation
  std::map<std::string, int64_t> joined_;     // the highest number of its epochs, by incarnation
  std::map<std::string, std::set<std::string>> readers_;   // by epoch: hosts in it that know it
  // By epoch: those that nobody alive had read of when it was formed.
  std::map<std::string, std::set<std::string>> forgotten_;
  int lineages_made_ = 0;
  TimePoint progress_;
  std::string failure_;
};

}  // namespace keel
