// Board: all that a supervisor has to do with the store of its job. It holds the member's half, the
// coordinator's half if the store is on this host, each on a thread and connection of its own, and
// the presence connections.
// Promises   what is to be written is written as soon as the store can be reached; what is read
//            comes as events, on the loop, in order. After one half has written, the other looks at
//            the board at once.
// Does not   judge (elastic/decisions/membership.h) or act on what it reads
//            (elastic/decisions/host_machine.h).
// Threads    the loop's. After the loop has stopped only the destructor may be called.
// Errors     of Open(): those of PresenceServer::Open(). A store that is gone is told as trouble.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/random.h"
#include "elastic/board/client.h"
#include "elastic/board/coordinator.h"
#include "elastic/board/presence.h"
#include "elastic/board/thread.h"
#include "store/memory_store.h"
#include "store/store_maker.h"

namespace keel {

// It has more than 12 data members because it owns both halves of the board, their threads and the
// presence connections, whose order of destruction matters.
class Board {
 public:
  struct Where {
    std::string host;            // of the store
    uint16_t port = 0;
    bool is_ours = false;        // the store is on this host, which then is the coordinator
    bool is_alone = false;       // no other host will come, so the board needs no network
    std::string own_address;     // numeric; other hosts reach this one at it
    std::string incarnation;
  };
  struct Events {
    std::function<void(const MemberEvent& event)> on_member_event;
    std::function<void(TimePoint beat)> on_contact;
    std::function<void(const Decision& decision)> on_decision;   // the coordinator's
    std::function<void(const Status& status)> on_trouble;
    // The store at which an epoch's workers are to meet cannot be opened, even after many attempts.
    std::function<void(const Error& why)> on_no_store;
    std::function<void()> on_finished;
    // All hosts as the coordinator sees them, twice a second. Null: nobody asks for them.
    std::function<void(const std::vector<HostView>& hosts)> on_hosts;
  };

  static Result<std::unique_ptr<Board>> Open(boost::asio::io_context& loop, Clock& clock,
                                             StoreMaker& stores, Where where,
                                             BoardClientConfig member, JobPolicy policy,
                                             Random random, Events events);
  ~Board();

  // Without `hurry` the record is written with the next poll.
  void Publish(const MemberRecord& record, bool hurry);
  void ReportBreak(const BreakRecord& record);
  void RegisterAnew();
  // Nothing more will be written. Calls on_finished once all of it is on the board and, if this
  // host has decided the end of the job, every other member has seen that; or after `limit`.
  void Finish(Duration limit);

 private:
  Board(boost::asio::io_context& loop, Clock& clock, StoreMaker& stores, Where where,
        BoardClientConfig member, Events events);

  Status StartCoordinator(JobPolicy policy, Random random);
  void StartMember();
  Result<std::unique_ptr<Store>> Connect(const CancelToken& ending);
  Result<EpochStore> OpenEpochStore(const EpochRecord& epoch);
  void NoteNoStore(const Error& why);
  BoardThread::Turn PollMember(Store& store, TimePoint now);
  BoardThread::Turn PollCoordinator(Store& store, TimePoint now);
  void TellHosts(TimePoint now);
  void TellMember(std::function<void()> job, bool hurry = true);
  void OnMemberStep(const BoardClient::Step& step, TimePoint polled);
  void OnCoordinatorStep(const Coordinator::Step& step);
  void WarnIfUnknown(const BoardClient::Step& step, TimePoint polled);
  void OnMemberTrouble(const Status& status);
  void CheckFinished();

  boost::asio::io_context& loop_;
  Clock& clock_;
  StoreMaker& stores_;
  const Where where_;
  const std::string job_;
  const Events events_;

  MemoryBoard alone_;                               // the board of a host that is_alone
  // Only the member's thread uses these.
  BoardClient member_;
  int64_t taken_ = 0;                               // how many jobs the member has taken
  // Only the coordinator's thread uses these.
  std::optional<Coordinator> coordinator_;
  std::deque<std::unique_ptr<StoreServer>> epoch_stores_;
  std::optional<TimePoint> no_store_since_;         // since when no epoch's store can be opened
  bool announced_ = false;
  std::optional<TimePoint> hosts_told_;

  // Only the loop's thread uses these.
  int64_t told_ = 0;                   // how many jobs the member was given
  int64_t settled_ = 0;                // how many of them are on the board
  bool coordinator_done_ = true;       // false: it decided the end, and some member has to see it
  bool finishing_ = false;
  bool is_known_ = false;              // the store has this job, or the user was told otherwise
  std::optional<TimePoint> answered_;  // since when a store answers
  boost::asio::steady_timer finish_limit_;
  std::unique_ptr<PresenceServer> presence_server_;
  PresenceClient presence_client_;

  std::unique_ptr<BoardThread> coordinator_thread_;
  std::unique_ptr<BoardThread> member_thread_;
};

}  // namespace keel
