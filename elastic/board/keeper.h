// BoardKeeper: keeps one board of the job: the coordinator's half of it, on a thread and connection
// of its own, and the stores that its epochs need.
// Promises   what is decided comes as events, on the loop, in order. Once the board was left, it is
//            only kept for those who have not read so yet.
// Does not   judge (elastic/decisions/membership.h), or know where else the job has boards.
// Threads    the loop's.
// Errors     of Open(): those of StoreMaker::Serve().
#pragma once

#include <boost/asio/io_context.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "elastic/board/coordinator.h"
#include "elastic/board/thread.h"
#include "elastic/board/workers_place.h"
#include "store/store_maker.h"

namespace keel {

class BoardKeeper {
 public:
  struct Events {
    std::function<void(const Coordinator::Step& step)> on_step;
    // A store at which an epoch's workers are to meet cannot be opened, even after many attempts.
    std::function<void(const Error& why)> on_no_store;
    // All hosts, twice a second. Null: nobody asks for them.
    std::function<void(const std::vector<HostView>& hosts)> on_hosts;
  };
  struct Place {
    std::string own_address;   // as other hosts reach this one
    std::string bind;          // numeric; empty: all of this host's addresses
    uint16_t port = 0;         // of its store
    bool has_store = true;     // in which workers can meet, too
    // Where they expect that; nothing: this board is not meant.
    std::optional<WorkersPlace> workers_meet = {};
    bool is_elsewhere = false;   // the board itself, so that its store is the workers' alone
  };
  using Connect = std::function<Result<std::unique_ptr<Store>>(const CancelToken& ending)>;

  // `server`: the board's store; null: somebody else keeps it open.
  BoardKeeper(boost::asio::io_context& loop, Clock& clock, StoreMaker& stores, Place place,
              std::unique_ptr<StoreServer> server, Connect connect, CoordinatorConfig config,
              Random random, Events events);
  ~BoardKeeper();

  void Wake() { thread_->Wake(); }
  // That member has written to the board; -1: some member has.
  void NoteNews(int64_t slot);
  // That member has raised its beat.
  void NoteBeat(int64_t slot, const std::string& incarnation);
  void PresenceOpened(int64_t slot, const std::string& incarnation);
  void PresenceClosed(int64_t slot, const std::string& incarnation);
  void Offer(const BoardPlace& place);
  // What is known of the job's lease has changed.
  void NoteLease();

  // As of the last step that was told.
  const BoardPlace& place() const { return told_.place; }
  const std::optional<BoardPlace>& moved() const { return told_.moved; }
  const std::string& generation() const { return generation_; }
  // Nobody needs it any more: the job is over for all, or nobody else is here.
  bool is_free() const { return told_.is_free; }
  bool is_stopping() const { return told_.is_stopping; }   // the job
  // What the job's lease is to say of it.
  const LinkRecord& link() const { return told_.link; }
  // This host is here, and no host here was ever in an epoch.
  bool is_fresh() const { return told_.is_fresh; }
  // No other host has ever come to this board, or all have gone.
  bool is_alone() const { return told_.is_alone; }
  // Stops coordinating. What its epochs' workers may still need is given to the caller.
  struct Left {
    std::deque<std::unique_ptr<StoreServer>> stores;
    std::unique_ptr<StoreServer> own;   // the board's, if an epoch's workers meet in it; or null
    std::string own_epoch;              // ... the id of that epoch
  };
  Left Close();
  const std::vector<std::string>& peers_out_of_reach() const { return told_.out_of_reach; }

 private:
  struct Told {
    BoardPlace place;
    std::optional<BoardPlace> moved;
    std::vector<std::string> out_of_reach;
    bool is_free = true;
    bool is_stopping = false;
    bool is_alone = true;
    LinkRecord link;
    bool is_fresh = false;
    bool operator==(const Told&) const = default;
  };

  BoardThread::Turn Poll(Store& store, TimePoint now);
  void TellHosts(TimePoint now);
  Told Tell(TimePoint now) const;
  Result<EpochStore> OpenEpochStore(const EpochRecord& epoch);
  Result<std::unique_ptr<StoreServer>> ServeEpoch(bool is_expected);
  bool Renew();
  void NoteNoStore(const Error& why);

  boost::asio::io_context& loop_;
  Clock& clock_;
  StoreMaker& stores_;
  const Place where_;
  std::unique_ptr<StoreServer> server_;   // only the coordinator's thread changes it
  const std::string job_;
  const Events events_;
  const std::shared_ptr<bool> alive_;   // false: what was posted to the loop comes too late

  // Only the coordinator's thread uses these.
  Coordinator coordinator_;
  const std::string generation_ = coordinator_.generation();
  std::deque<std::unique_ptr<StoreServer>> epoch_stores_;
  // The id of the epoch whose workers meet in the board's store; empty: none has.
  std::string used_by_;
  bool is_lost_ = false;   // that store: its port was taken by somebody else
  std::optional<TimePoint> no_store_since_;   // since when no epoch's store can be opened
  bool announced_ = false;
  std::optional<TimePoint> hosts_told_;
  Told last_;

  // Only the loop's thread uses this.
  Told told_;

  std::unique_ptr<BoardThread> thread_;
};

}  // namespace keel
