// Workers: the simulated training processes of all hosts, and the groups they train in.
// Promises   a group makes a step only when all workers of its epoch are inside and alive, as the
//            vote of real ones has it; a checkpoint is what the last whole save of a group held.
// Does not   know supervisors: it tells a WorkerOwner what its process says and how it ends, in
//            order, and is told what to send.
// Threads    one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "elastic/decisions/host_machine.h"
#include "elastic/process/exit_status.h"
#include "tests/sim/scenario.h"
#include "tests/sim/scheduler.h"

namespace keel {

// Which process: a seat of one life of a host's supervisor.
struct WorkerPlace {
  int host = 0;
  int life = 0;
  int seat = 0;
  std::string worker;       // incarnation, as is
  std::string supervisor;   // this one
};

class WorkerOwner {
 public:
  virtual ~WorkerOwner() = default;
  virtual void WorkerSays(const WorkerPlace& place, const WorkerMessage& message) = 0;
  // The kernel ends it, and is not done yet.
  virtual void WorkerEnding(const WorkerPlace& place, const ExitStatus& status) = 0;
  virtual void WorkerEnded(const WorkerPlace& place, const ExitStatus& status) = 0;
};

struct SimGroup;

struct SimWorker {
  size_t number = 0;          // in order of starting
  WorkerPlace place;
  bool in_place = false;
  bool odd = false;           // in its numerics
  bool alive = true;
  bool said_hello = false;
  bool hung = false;          // nothing but SIGKILL moves it
  bool stopped = false;       // ... and it tells nobody where it is, as after SIGSTOP
  bool ignores_term = false;
  bool stop_wanted = false;
  bool join_wanted = false;
  bool finishing = false;
  SimGroup* group = nullptr;  // the one it is inside
  int rank = -1;              // there
  int64_t newest_epoch = 0;   // it was ever inside
  int64_t step = -1;          // -1: it holds no state
  TimePoint last_words;       // messages stay in order
  TimePoint heard;            // something of its supervisor
  Duration quiet_limit{0};
  int watches = 0;            // for that limit; only the newest counts
};

// Addresses differ from run to run.
struct ByNumber {
  bool operator()(const SimWorker* a, const SimWorker* b) const { return a->number < b->number; }
};

struct SimGroup {
  EpochRecord epoch;
  std::set<SimWorker*, ByNumber> inside;
  int left = 0;                         // who was inside and is not any more
  bool finished = false;
  bool stepping = false;
  int64_t step = 0;

  size_t size() const { return epoch.workers.size(); }
  bool complete() const { return inside.size() == size() && left == 0; }
};

// Sees everything at the moment it happens; elastic's machines know nothing of it.
class WorkerWatcher {
 public:
  virtual ~WorkerWatcher() = default;
  virtual void Entered(const SimWorker& worker, const SimGroup& group, int rank) = 0;
  virtual void Stepped(const SimGroup& group) = 0;
  virtual void Trace(const std::string& line) = 0;
};

class SimWorkers {
 public:
  SimWorkers(Scheduler& scheduler, const Scenario& scenario, WorkerOwner& owner,
             WorkerWatcher& watcher);

  // There is no such program today.
  bool FailsToStart();
  void Start(const WorkerPlace& place, const std::optional<EpochRecord>& epoch, int rank);
  void Deliver(const WorkerPlace& place, const SupervisorMessage& message);
  void Deliver(const WorkerPlace& place, const EnterEpoch& enter);
  void Signal(const WorkerPlace& place, int signal);
  // Faults.
  void Kill(const WorkerPlace& place, const ExitStatus& status);
  void Hang(const WorkerPlace& place);
  // The guard of a supervisor that is gone ends its workers; nobody is told.
  void KillAllOf(int host, int life);
  bool AnyAliveOf(int host, int life) const;

  const std::vector<std::unique_ptr<SimWorker>>& all() const { return workers_; }
  const std::map<std::string, SimGroup>& groups() const { return groups_; }
  bool work_done() const { return work_done_; }
  int own_deaths() const { return own_deaths_; }
  // Of workers that were struck while their group was whole: nobody can have overlooked these.
  int counted_deaths() const { return counted_deaths_; }
  int64_t saved_step() const { return saved_step_; }

 private:
  SimWorker* Find(const WorkerPlace& place);
  void Later(SimWorker& worker, Duration delay, std::function<void()> work);
  void Say(SimWorker& worker, WorkerMessage message);
  void Die(SimWorker& worker, const ExitStatus& status);
  void EndSoon(SimWorker& worker, Duration delay, const ExitStatus& status);
  Duration Some(Duration usual);
  bool Happens(double chance);

  void Hear(const WorkerPlace& place, std::function<void(SimWorker& worker)> heard);
  void On(SimWorker&, const EpochMessage&) {}   // EnterEpoch comes in its place
  void On(SimWorker& worker, const BreakMessage& message);
  void On(SimWorker& worker, const JoinMessage& message);
  void On(SimWorker& worker, const StopMessage& message);
  void On(SimWorker&, const SaveMessage&) {}   // changes nothing that the job can see
  void On(SimWorker& worker, const AliveMessage& message);
  void On(SimWorker&, const UnknownMessage&) {}
  void On(SimWorker& worker, const RefusedMessage&) { EndSoon(worker, {}, ExitStatus::Exited(1)); }

  void Break(SimWorker& worker);
  void WatchForSilence(SimWorker& worker, int watch);

  void Enter(SimWorker& worker, const EpochRecord& epoch, int rank);
  bool RefuseMisfits(SimGroup& group);
  void LeaveGroup(SimWorker& worker);
  void Park(SimWorker& worker, Duration delay, bool at_boundary);
  void NoticeBreak(SimWorker& worker);
  void TellAgain(SimWorker& worker, const std::string& epoch);
  void HangNow(SimWorker& worker);
  Activity ActivityOf(const SimWorker& worker) const;
  void SaveAndLeave(SimWorker& worker);
  void PlanStep(SimGroup& group);
  void FinishStep(SimGroup& group);
  void Finish(SimGroup& group);

  Scheduler& scheduler_;
  const Scenario& scenario_;
  WorkerOwner& owner_;
  WorkerWatcher& watcher_;
  Random random_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  std::map<std::string, SimGroup> groups_;   // by the epoch's id
  int64_t saved_step_ = 0;
  bool work_done_ = false;
  int own_deaths_ = 0;
  int counted_deaths_ = 0;
};

}  // namespace keel
