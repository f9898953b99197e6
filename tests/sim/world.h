// World: one simulated job from its start to its end, with the real machines of elastic/ in it.
// Promises   a Scenario's run is the same each time, event by event (Outcome::digest).
// Does not   judge: it asks the Checker at every event, and stops at the first thing it objects to.
// Threads    one.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/memory_store.h"
#include "tests/sim/checker.h"
#include "tests/sim/host.h"
#include "tests/sim/scenario.h"
#include "tests/sim/scheduler.h"
#include "tests/sim/stranger.h"
#include "tests/sim/workers.h"

namespace keel {

struct Outcome {
  std::string failure;              // empty: all was as it should be
  std::vector<std::string> trace;   // the last lines
  uint64_t digest = 0;              // of all that happened
  uint64_t events = 0;
  Duration simulated{0};
  int code = -1;                    // of the first supervisor that exited
  int64_t epochs = 0;               // that somebody entered
};

class World : public WorkerOwner, public WorkerWatcher, public SimHostWorld {
 public:
  using Tracer = std::function<void(const std::string& line)>;

  // `tracer` gets each line when it happens; it may be empty.
  World(const Scenario& scenario, Tracer tracer);
  Outcome Run();

 private:
  // WorkerOwner
  void WorkerSays(const WorkerPlace& place, const WorkerMessage& message) override;
  void WorkerEnding(const WorkerPlace& place, const ExitStatus& status) override;
  void WorkerEnded(const WorkerPlace& place, const ExitStatus& status) override;
  // WorkerWatcher
  void Entered(const SimWorker& worker, const SimGroup& group, int rank) override;
  void Stepped(const SimGroup& group) override;
  void Trace(const std::string& line) override;
  // SimHostWorld
  Scheduler& scheduler() override { return scheduler_; }
  SimWorkers& workers() override { return *workers_; }
  std::string OpenBoard(int host) override;
  void CloseBoard(const std::string& address, Duration delay) override;
  MemoryBoard& BoardAt(const std::string& address) override { return *boards_.at(address).board; }
  const Scenario& scenario() override { return scenario_; }
  Random& network() override { return network_; }
  Reached Look(int host, const std::string& address) override;
  bool TakesUnanswered(int host, const std::string& address) override;
  TimePoint GoesOn(int host, const std::string& address) override;
  Reached LookAtPeer(int host, const std::string& peer) override;
  MemoryLeasePlace& lease_place(int host) override {
    return lease_places_[scenario_.lease_apart ? host : 0];
  }
  std::vector<PeerSight> AskOthers(int host, const BoardPlace& lost) override;
  std::string EndpointFor(int host) override;
  void TellBehind(int host, const BoardPlace& own) override;
  void BoardOpened(int host, const std::string& generation, const BoardPlace& place,
                   const std::optional<BoardPlace>& followed, bool is_asked) override;
  void BoardReached(int host, const BoardPlace& left, const BoardPlace& reached) override {
    checker_.Reached(host, left, reached);
  }
  void EpochFormed(const EpochRecord& epoch) override { checker_.Formed(epoch); }
  void EpochRead(int host, const EpochRecord& epoch) override {
    checker_.Read(hosts_[host]->incarnation(), epoch);
  }
  void ToldOfEnd(int host, const std::string& what) override {
    checker_.ToldOfEnd(hosts_[host]->incarnation(), what);
  }
  bool Vouches(int host, const std::string& generation) override;
  bool IsGone(const std::string& incarnation) override { return FindHost(incarnation) == nullptr; }
  void TellCoordinator(int from, const std::string& coordinator) override;
  void TellMembers(int from) override;
  void PresenceOpened(int host, const std::string& coordinator) override;
  void Exited(int host, int code) override;
  void Object(const std::string& failure) override { objection_ = failure; }

  void Plan();
  void PlanTick();
  void PlanStranger();
  void Strike(const SimFault& fault);
  void StrikeWorker(const SimFault& fault);
  void FlapPresence(const SimFault& fault);
  void StrikeStore(const SimFault& fault);
  void StopSupervisor(const SimFault& fault);
  void StartSupervisor(int host, Duration delay);
  void Disturb(Duration length);
  Duration Delay();
  void CutLinks(const SimFault& fault);
  // What one sends gets to the other.
  bool Arrives(int from, int to);
  bool Connected(int a, int b) { return Arrives(a, b) && Arrives(b, a); }
  std::string WhoHears(int host, const BoardPlace& place);
  bool PokeArrives(int from, int to);
  SimHost* FindHost(const std::string& incarnation);
  bool Done() const;
  bool HasFailed() const;
  std::string Failure() const;
  Health Look();

  const Scenario scenario_;
  const Tracer tracer_;
  Scheduler scheduler_;
  // Each board that was ever opened, by its address, and who keeps it for as long as it lives.
  struct Kept {
    std::unique_ptr<MemoryBoard> board;
    int host = 0;
    int life = 0;
    bool is_closed = false;
  };
  std::map<std::string, Kept> boards_;
  std::map<int, MemoryLeasePlace> lease_places_;
  std::map<std::pair<int, int>, TimePoint> cut_until_;   // by who sends and who gets
  Random network_;
  std::unique_ptr<SimWorkers> workers_;
  std::vector<std::unique_ptr<SimHost>> hosts_;
  SimStranger stranger_;
  Checker checker_;
  Outcome outcome_;
  std::deque<std::string> trace_;
  std::string objection_;
  TimePoint disturbed_;   // until when something is, or may still be, wrong
  int starts_planned_ = 0;
};

// Runs the scenario of a seed.
Outcome Simulate(uint64_t seed, World::Tracer tracer = {});

}  // namespace keel
