// SimHost: one host with the real HostMachine and BoardClient, and, while it coordinates, the real
// Coordinator.
// Promises   carries out what the machines say, through a store that may fail, at the pace that
//            their NextPoll() and NextWake() ask for.
// Does not   decide anything; it is what tools/keelrun is in earnest, with simulated processes.
// Threads    one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/board/client.h"
#include "elastic/board/coordinator.h"
#include "elastic/board/lease_hand.h"
#include "elastic/decisions/follow.h"
#include "elastic/decisions/host_machine.h"
#include "store/memory_store.h"
#include "store/reach.h"
#include "store/seal/store_sealer.h"
#include "tests/sim/host_clock.h"
#include "tests/sim/scenario.h"
#include "tests/sim/scheduler.h"
#include "tests/sim/sim_store.h"
#include "tests/sim/stranger.h"
#include "tests/sim/workers.h"
#include "tests/support/memory_lease.h"

namespace keel {

// The address of a host's supervisor, where others look for it.
std::string PeerOf(int host);

// What a host needs of the world.
class SimHostWorld {
 public:
  virtual ~SimHostWorld() = default;
  virtual Scheduler& scheduler() = 0;
  virtual SimWorkers& workers() = 0;
  // A new board, kept by that host; its address. The world is told of each that is left.
  virtual std::string OpenBoard(int host) = 0;
  // Whoever comes to it finds nobody any more.
  virtual void CloseBoard(const std::string& address, Duration delay) = 0;
  virtual MemoryBoard& BoardAt(const std::string& address) = 0;
  virtual const Scenario& scenario() = 0;
  virtual Random& network() = 0;
  // What one attempt to connect finds. A process that stands still has a listener.
  virtual Reached Look(int host, const std::string& address) = 0;
  // Requests get there, and their answers do not come back.
  virtual bool TakesUnanswered(int host, const std::string& address) = 0;
  // When a board that stands still goes on; kNever: it does not, or it does not stand still.
  virtual TimePoint GoesOn(int host, const std::string& address) = 0;
  virtual Reached LookAtPeer(int host, const std::string& peer) = 0;
  virtual MemoryLeasePlace& lease_place(int host) = 0;
  // What the others answer who can be asked. Places that cannot be reached are left out, but for
  // that of `lost`, which others may hear from all the same.
  virtual std::vector<PeerSight> AskOthers(int host, const BoardPlace& lost = {}) = 0;
  // The first board of the host at the endpoint, if it can be reached; empty: none can.
  virtual std::string EndpointFor(int host) = 0;
  // Offers a place to those at the endpoint who are behind it.
  virtual void TellBehind(int host, const BoardPlace& own) = 0;
  // `followed`: the board that the host was on before; `is_asked`: to open this one.
  virtual void BoardOpened(int host, const std::string& generation, const BoardPlace& place,
                           const std::optional<BoardPlace>& followed, bool is_asked) = 0;
  // The host has read of a board, and what it had read last was of that other one.
  virtual void BoardReached(int host, const BoardPlace& left, const BoardPlace& reached) = 0;
  // A coordinator is about to write that epoch.
  virtual void EpochFormed(const EpochRecord& epoch) = 0;
  // The host has read of an epoch that it may be in.
  virtual void EpochRead(int host, const EpochRecord& epoch) = 0;
  // The host has read that the job stops, or that it has ended.
  virtual void ToldOfEnd(int host, const std::string& what) = 0;
  // Whether the coordinator that keeps the board of that generation says so to that host.
  virtual bool Vouches(int host, const std::string& generation) = 0;
  // Its process is dead, or another one runs there.
  virtual bool IsGone(const std::string& incarnation) = 0;
  virtual void TellCoordinator(int from, const std::string& coordinator) = 0;
  virtual void TellMembers(int from) = 0;
  virtual void PresenceOpened(int host, const std::string& coordinator) = 0;
  virtual void Object(const std::string& failure) = 0;
  virtual void Exited(int host, int code) = 0;
  virtual void Trace(const std::string& line) = 0;
};

class SimHost {
 public:
  SimHost(SimHostWorld& world, int number);

  // A new supervisor process; the coordinator's host opens a store, too.
  void Start();
  // The process is gone.
  void Stop(bool powered_off);

  void WorkerSays(const WorkerPlace& place, const WorkerMessage& message);
  void WorkerEnding(const WorkerPlace& place, const ExitStatus& status);
  void WorkerEnded(const WorkerPlace& place, const ExitStatus& status);
  void AskToStop(Duration deadline);
  void Look();                       // a poke from the coordinator
  void News(int64_t slot);           // ... or to it, from that member
  void Pause(Duration length);
  void PauseInMidPoll(Duration length) { stall_ = length; }
  void CutOff(Duration length);
  void LoseLease(Duration length);
  void PresenceOpened(int64_t slot, const std::string& incarnation);
  void PresenceClosed(int64_t slot, const std::string& incarnation);
  WorkerPlace PlaceOf(int seat) const;

  int number() const { return number_; }
  int life() const { return life_; }
  bool alive() const { return host_ != nullptr; }
  bool paused() const;
  bool stood_still_lately() const;
  bool cut_off() const;
  bool powered_off() const { return powered_off_; }
  bool coordinates() const { return coordinator_ != nullptr; }
  bool Keeps(const std::string& generation) const {
    return coordinator_ != nullptr && coordinator_->generation() == generation;
  }
  const std::string& endpoint() const { return endpoint_; }
  // Whom it follows.
  std::string coordinator() const { return place_ ? place_->by : ""; }
  std::optional<PeerSight> Sight() const;
  void Offer(const BoardPlace& place);
  std::optional<BoardPlace> own_place() const;
  TimePoint paused_until() const { return paused_until_; }   // true time
  std::optional<int64_t> slot() const { return member_ ? member_->slot() : std::nullopt; }
  const std::string& incarnation() const { return incarnation_; }

 private:
  TimePoint Now() const { return clock_.Monotonic(); }
  TimePoint TrueTime() const;
  bool Errs(Defect how) const { return world_.scenario().defect == how; }
  void Later(TimePoint when, int busy, std::function<void()> work);
  // What comes of a worker's process, unless it is an earlier life's.
  void OfWorker(const WorkerPlace& place, std::function<void()> hear);
  void AtTrueTime(TimePoint when, int busy, std::function<void()> work);
  void Act();
  void Do(const HostAction& action);
  void StartNow(const StartWorker& start);
  void CheckHealth(const StartWorker& start);
  void PlanWake();
  void PlanPoll(TimePoint when);
  void PlanCoordinator(TimePoint when);
  void PollMember();
  void PollCoordinator();
  std::unique_ptr<Store> Connect(const std::string& name, const std::string& address);
  SimStore::Way BeforeOperation(const std::string& address);
  void OpenBoard(int64_t term, int64_t epoch, const std::string& handed_over_by);
  bool FindBoard(TimePoint now);
  bool FollowFirst(const std::optional<BoardPlace>& best, TimePoint now);
  void SearchBoard(TimePoint now, bool refused);
  void Follow(const BoardPlace& place);
  void OnSuccession(const SuccessionRecord& record);
  FollowStep DecideNext(FollowView view, TimePoint now) const;
  MemberRecord RecordToPublish() const;
  std::vector<CountedEpoch> CountedToPublish() const;
  void Scout(TimePoint now);
  void CloseIfNeedless(TimePoint now);
  MemoryLease::Way BeforeLease();
  void PlanLease(TimePoint when);
  void PollLease();
  LinkView BelievedLease() const;
  void GiveToMember();
  void LeaveWhenTold(bool told);

  SimHostWorld& world_;
  const int number_;
  mutable HostClock clock_;                    // all times here are its, but for those named true
  int life_ = 0;
  std::string incarnation_;
  std::unique_ptr<HostMachine> host_;
  std::unique_ptr<BoardClient> member_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Store> store_, coordinator_store_;
  std::optional<StoreSealer> sealer_;   // of this life, which remembers nothing of those before
  std::optional<Random> random_, health_;
  std::map<int, std::string> checked_;   // workers that wait for the health check, by seat
  int boards_ = 0;                       // that this host has opened
  ShunnedRecord shunned_;                // as the board that it follows has it
  std::string endpoint_;                       // the address of the board that it opened first
  int64_t opened_term_ = 0;                    // the highest of the boards that it has opened
  std::string kept_;                           // ... of that which its coordinator keeps
  std::optional<BoardPlace> place_;            // of the board that it follows
  std::optional<BoardPlace> reached_;          // ... that it has read of last
  std::vector<Heir> heirs_;
  TimePoint heard_, scout_at_;
  std::optional<TimePoint> lost_at_, elsewhere_since_;
  bool refused_ = false;
  bool takes_any_ = false;                     // the next one may be behind that
  bool is_reached_ = false;
  int64_t epoch_ = 0;                          // the newest that any board named
  std::unique_ptr<MemoryLease> lease_;
  std::unique_ptr<LeaseHand> hand_;            // null: the job has no lease
  LinkView link_;                              // as it was told last
  std::string newest_epoch_;                   // that the board named, by its id
  TimePoint lease_away_until_;                 // true time
  TimePoint lease_poll_ = kNever;
  bool powered_off_ = false;
  std::vector<std::string> workers_;           // by seat
  std::vector<HostAction> to_member_;          // for the next poll: another thread in earnest
  TimePoint wake_ = kNever, poll_ = kNever, coordinate_ = kNever;
  TimePoint paused_until_, cut_until_;         // true times
  TimePoint exit_by_, hand_over_by_;
  std::optional<int> exiting_;
  bool told_ = false;                          // the board has the last record
  Duration stall_{0};                          // in the middle of the next poll
  int64_t epochs_ = 0;                         // that its coordinator formed
};

}  // namespace keel
