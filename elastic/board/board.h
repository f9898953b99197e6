// Board: the supervisor's hold on the store: a member's half, where the store is ours the
// coordinator's too, each on a thread and connection of its own, and the presence connections.
// Promises   what is to be written gets there as soon as the store can be reached; what is read
//            comes as events, on the loop, in order. What one half writes, the other one looks at
//            at once.
// Does not   judge (elastic/decisions/membership.h) or act on what it reads
//            (elastic/decisions/host.h).
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
#include "elastic/board/coordinator.h"
#include "elastic/board/member.h"
#include "elastic/board/presence.h"
#include "elastic/board/thread.h"
#include "store/memory_store.h"
#include "store/store_maker.h"

namespace keel {

class Board {
 public:
  struct Where {
    std::string host;            // of the store
    uint16_t port = 0;
    bool is_ours = false;        // then we are the coordinator
    bool is_alone = false;       // nobody else will come: the board needs no network
    std::string own_address;     // numeric, as others reach us
    std::string incarnation;
  };
  struct Events {
    std::function<void(const MemberEvent& event)> on_member_event;
    std::function<void(TimePoint beat)> on_contact;
    std::function<void(const Decision& decision)> on_decision;   // the coordinator's
    std::function<void(const Status& status)> on_trouble;
    // The store that an epoch's workers are to meet at cannot be opened, and was tried for long.
    std::function<void(const Error& why)> on_no_store;
    std::function<void()> on_finished;
    // The coordinator's: all hosts as it sees them, twice a second. Null: nobody asks.
    std::function<void(const std::vector<HostView>& hosts)> on_hosts;
  };

  static Result<std::unique_ptr<Board>> Open(boost::asio::io_context& loop, Clock& clock,
                                             StoreMaker& stores, Where where, MemberConfig member,
                                             JobPolicy policy, Random random, Events events);
  ~Board();

  // Without `hurry` it gets there with the next poll.
  void Publish(const MemberRecord& record, bool hurry);
  void ReportBreak(const BreakRecord& record);
  void RegisterAnew();
  // All is said: calls on_finished when it is on the board, and when every other member has seen
  // the end that we decided; or after `limit`.
  void Finish(Duration limit);

 private:
  Board(boost::asio::io_context& loop, Clock& clock, StoreMaker& stores, Where where,
        MemberConfig member, Events events);

  Status StartCoordinator(JobPolicy policy, Random random);
  void StartMember();
  Result<std::unique_ptr<Store>> Connect();
  Result<EpochStore> OpenEpochStore(const EpochRecord& epoch);
  void NoteNoStore(const Error& why);
  BoardThread::Turn PollMember(Store& store, TimePoint now);
  BoardThread::Turn PollCoordinator(Store& store, TimePoint now);
  void TellHosts(TimePoint now);
  void TellMember(std::function<void()> job, bool hurry = true);
  void OnMemberStep(const Member::Step& step, TimePoint polled);
  void OnCoordinatorStep(const Coordinator::Step& step);
  void WarnIfUnknown(const Member::Step& step, TimePoint polled);
  void OnMemberTrouble(const Status& status);
  void CheckFinished();

  boost::asio::io_context& loop_;
  Clock& clock_;
  StoreMaker& stores_;
  const Where where_;
  const std::string job_;
  const Events events_;

  MemoryBoard alone_;                               // the board where is_alone
  Member member_;                                   // the member's thread's own, as taken_
  int64_t taken_ = 0;                               // of what was told it
  std::optional<Coordinator> coordinator_;          // the coordinator's thread's own, as these
  std::deque<std::unique_ptr<StoreServer>> epoch_stores_;
  std::optional<TimePoint> no_store_since_;         // an epoch's store cannot be opened
  bool announced_ = false;
  std::optional<TimePoint> hosts_told_;

  // The loop's own.
  int64_t told_ = 0;
  int64_t settled_ = 0;
  bool coordinator_done_ = true;       // unless it has decided the end and others must see it
  bool finishing_ = false;
  bool is_known_ = false;              // our job, to the store
  std::optional<TimePoint> answered_;  // since when a store does
  boost::asio::steady_timer finish_limit_;
  std::unique_ptr<PresenceServer> presence_server_;
  PresenceClient presence_client_;

  std::unique_ptr<BoardThread> coordinator_thread_;
  std::unique_ptr<BoardThread> member_thread_;
};

}  // namespace keel
