// Board: all that a supervisor has to do with the board of its job. It holds the member's half, on
// a thread and connection of its own, the presence connections, and, while this host coordinates,
// the keeper of the board.
// Promises   what is to be written is written as soon as the board can be reached; what is read
//            comes as events, on the loop, in order. After one half has written, the other looks at
//            the board at once. Where the coordinator leaves or is lost, the member finds the next
//            board, or this host opens it.
// Does not   judge (elastic/decisions/membership.h, follow.h, succession.h) or act on what it reads
//            (elastic/decisions/host_machine.h).
// Threads    the loop's. After the loop has stopped only the destructor may be called.
// Errors     of Open(): those of PresenceServer::Open(). A board that is gone is told as trouble.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/board/claimed_finder.h"
#include "elastic/board/client.h"
#include "elastic/board/finder.h"
#include "elastic/board/job_home.h"
#include "elastic/board/keeper.h"
#include "elastic/board/lease_thread.h"
#include "elastic/board/presence.h"
#include "elastic/board/scout.h"
#include "elastic/board/thread.h"
#include "store/memory_store.h"
#include "store/store_maker.h"

namespace keel {

// It has more than 12 data members because it owns both halves of the board, their threads and the
// presence connections, whose order of destruction matters.
class Board {
 public:
  struct Where {
    // Of the first board; each with a port. None: whoever claims the lease first opens it.
    std::vector<HostPort> endpoints;
    // Of the first board; null: another host keeps that, and is the coordinator.
    std::unique_ptr<StoreServer> server = nullptr;
    bool is_alone = false;       // no other host will come, so the board needs no network
    uint16_t peer_port = 0;      // to listen on, if it is free; 0: any
    std::string bind = {};       // numeric address to listen on; empty: all
    std::string own_address = {};   // numeric; other hosts reach this one at it
    std::string incarnation;
    std::unique_ptr<Lease> lease = nullptr;   // null: the job has none
    bool may_open = false;       // the first board, where the endpoint is another job's
    // Where the boards are if no host keeps them; null: hosts do. It must outlive the board.
    JobHome* home = nullptr;
    // Of the job's token. The stores that are made then believe sealed values alone.
    std::optional<Seal> seal = {};
    // Of `server`. Nothing: workers meet wherever it may be.
    std::optional<WorkersPlace> workers_meet = {};
  };
  struct Events {
    std::function<void(const MemberEvent& event)> on_member_event;
    std::function<void(TimePoint beat)> on_contact;
    std::function<void(const Decision& decision)> on_decision;   // the coordinator's
    std::function<void(const Status& status)> on_trouble;
    // A further reason, while the trouble lasts.
    std::function<void(const Error& reason)> on_reason;
    // The board is lost: HostMachine::OnBoardLost().
    std::function<void(const std::string& coordinator, int64_t promised, bool refused)> on_lost;
    // The store at which an epoch's workers are to meet cannot be opened, even after many attempts.
    std::function<void(const Error& why)> on_no_store;
    // The endpoint belongs to another job.
    std::function<void(const Error& why)> on_refused;
    std::function<void()> on_finished;
    // All hosts as the coordinator sees them, twice a second. Null: nobody asks for them.
    std::function<void(const std::vector<HostView>& hosts)> on_hosts;
  };

  static Result<std::unique_ptr<Board>> Open(boost::asio::io_context& loop, Clock& clock,
                                             StoreMaker& stores, Where where,
                                             BoardClientConfig member, JobPolicy policy,
                                             Random random, Events events);
  ~Board();

  // Where other supervisors reach this one; empty: none will come.
  std::string peer() const;
  // Whether this host coordinates, as far as it knows.
  bool coordinates() const { return keeps() && follows_own_; }
  // The boards lie in a home that is away, so that not even who coordinates can tell anybody.
  bool is_cut_off() const { return where_.home != nullptr && is_away_; }
  // The board that is followed, for people.
  std::string Target() const { return guide_.Target(); }

  // Without `hurry` the record is written with the next poll. `counted`: as BoardClient::Publish().
  // The record's `peer` is filled in.
  void Publish(MemberRecord record, const std::vector<CountedEpoch>& counted, bool hurry);
  void ReportBreak(const BreakRecord& record);
  void RegisterAnew();
  // Nothing more will be written. Calls on_finished once all of it is on the board and, if this
  // host has decided the end of the job, every other member has seen that, or, if it coordinates
  // and leaves, another host has taken its role; or after a limit. `at_once`: nobody can be told
  // anything.
  void Finish(bool at_once);

 private:
  Board(boost::asio::io_context& loop, Clock& clock, StoreMaker& stores, Where where,
        bool is_first, BoardClientConfig member, JobPolicy policy, Random random, Events events);

  void OpenLease(std::unique_ptr<Lease> lease);
  void OnLink(const LinkView& view);
  void TellLease();

  // Whether it keeps a board that was not left. Nobody need ever come to that.
  bool keeps() const { return keeper_ != nullptr && !keeper_->moved(); }
  // Whether the stores of its boards believe sealed values alone.
  bool IsSealed() const { return where_.seal.has_value() && !where_.is_alone; }
  BoardClientConfig AskingForVouchers(BoardClientConfig member) const;
  void TellKept();
  Result<std::unique_ptr<PresenceServer>> OpenPeerPort(PresenceServer::Where where);
  std::string Answer(const std::string& job) const;
  // `next`: its term, and the newest epoch that is known. `former`: as in CoordinatorConfig.
  void Keep(const BoardPlace& next, const std::string& handed_over_by, uint16_t port,
            std::unique_ptr<StoreServer> server, std::optional<EpochRecord> former = {});
  void OpenNext(BoardPlace next, const std::string& handed_over_by,
                const std::string& why);
  // Where no host keeps the boards (board_claimed.cc).
  std::unique_ptr<BoardGuide> MakeClaimedFinder();
  void TakeRole(const ClaimedFinder::Turn& turn);
  void LoseRole(int64_t term, const std::string& why);
  void CloseHome();
  void OnKeeperStep(const Coordinator::Step& step);
  void OnMoved();
  void CloseKeeper();
  void CloseIfNeedless(TimePoint now);
  void ScoutOrNot();
  void ListenAtEndpoint();
  void NoteEpoch(const std::string& id);
  void LimitFinish(Duration limit);
  void StartMember();
  Result<std::unique_ptr<Store>> Connect(const CancelToken& ending);
  BoardThread::Turn PollMember(Store& store, TimePoint now);
  void NoteShunned(const ShunnedRecord& record);
  bool NoteSuccession(const BoardClient::Step& step);
  void TellMember(std::function<void()> job, bool hurry = true);
  void OnMemberStep(const BoardClient::Step& step, TimePoint polled);
  void OnSuccession(const SuccessionRecord& record);
  void WarnIfUnknown(const BoardClient::Step& step, TimePoint polled);
  void OnMemberTrouble(const Status& status);
  void OnMemberReason(const Error& reason);
  bool IsRefusedFor(const Error& reason) const;
  void CheckFinished();

  boost::asio::io_context& loop_;
  Clock& clock_;
  StoreMaker& stores_;
  const Where where_;   // but for its server, which is the first keeper's
  const bool is_first_;
  const std::string job_;
  const std::optional<Seal> peer_seal_;   // of what is said at the peer port
  const JobPolicy policy_;
  Random random_;
  int64_t opened_ = 0;                // how many boards this host has kept
  ShunnedRecord shunned_;             // as the boards that it followed had it
  const Events events_;

  // The generation of the board that is kept here, left or not; empty: none is. Any thread.
  class Kept {
   public:
    bool Is(const std::string& generation) const {
      const std::lock_guard lock(mutex_);
      return !generation_.empty() && generation_ == generation;
    }
    void Set(const std::string& generation) {
      const std::lock_guard lock(mutex_);
      generation_ = generation;
    }

   private:
    mutable std::mutex mutex_;
    std::string generation_;   // guarded by mutex_
  };
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();

  MemoryBoard alone_;                               // the board of a host that is_alone
  std::unique_ptr<LeaseThread> lease_;              // null: the job has none
  BoardFinder finder_;
  const std::unique_ptr<BoardGuide> claimed_;       // null: hosts keep the boards
  BoardGuide& guide_;                               // that one, or `finder_`
  // Only the member's thread uses these.
  BoardClient member_;
  int64_t taken_ = 0;                               // how many jobs the member has taken

  // Only the loop's thread uses these.
  int64_t told_ = 0;                   // how many jobs the member was given
  int64_t settled_ = 0;                // how many of them are on the board
  std::vector<std::string> counted_;   // the epochs whose hosts the member was given, by their ids
  int64_t slot_ = -1;                  // on the board that is followed
  bool follows_own_;                   // the board that is followed is this host's
  int64_t opened_term_ = 0;            // the highest of the boards that this host has opened
  bool is_left_ = false;               // ... was, and nobody needs it any more
  bool is_first_left_ = false;         // ... and was the first one, at the endpoint
  bool finishing_ = false;
  bool ends_with_job_ = false;         // the job stops, and this host coordinates that
  TimePoint finish_by_{};
  bool has_moved_ = false;             // from one board to another, ever
  std::optional<TimePoint> elsewhere_since_;   // since when another board is followed
  std::string newest_epoch_;           // that the board named, by its id
  std::string newest_link_;            // ... that the lease named
  std::string shared_epoch_;           // ... that all hosts of it have found in the lease
  bool is_lost_ = false;               // the board is
  bool is_away_ = false;               // it could not be reached when it was last tried
  bool has_board_ = false;             // one was reached, ever
  bool is_known_ = false;              // the store has this job, or the user was told otherwise
  std::optional<TimePoint> answered_;  // since when a store answers
  boost::asio::steady_timer finish_limit_;
  boost::asio::steady_timer left_timer_;
  std::unique_ptr<PresenceServer> presence_server_;
  // At the port of the first board, once that was left: newcomers look there.
  std::unique_ptr<PresenceServer> endpoint_server_;
  PresenceClient presence_client_;
  std::unique_ptr<BoardKeeper> keeper_;
  // Of boards that were left: the workers of their epochs may still need them.
  std::vector<std::unique_ptr<StoreServer>> former_stores_;
  // Of the first board, where workers meet in it; it keeps newcomers from being answered there.
  std::unique_ptr<StoreServer> first_store_;
  std::string first_store_epoch_;      // the id of the epoch of those workers
  bool is_first_store_read_ = false;   // ... the board that is followed has named it

  std::unique_ptr<Scout> scout_;
  std::unique_ptr<BoardThread> member_thread_;
};

}  // namespace keel
