// BoardFinder: connects a supervisor's member to the board of its job, wherever that is by now.
// Promises   a board that was lost is tried again, and everybody who may know is asked at the same
//            time; what is done then is decided by elastic/decisions/follow.h, and told before it
//            is done. Each attempt ends within some seconds, or when it is cancelled.
// Does not   pause between attempts, or open boards.
// Threads    any; Connect() in one at a time, from which the events are called as well.
// Errors     of Connect(): why there is no connection yet. kExists: there will be none, since the
//            endpoint belongs to another job.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/board/ask.h"
#include "elastic/board/guide.h"
#include "elastic/decisions/beside.h"
#include "elastic/decisions/follow.h"
#include "elastic/decisions/lease_rule.h"
#include "store/cancel.h"
#include "store/host_port.h"
#include "store/reach.h"
#include "store/store_maker.h"

namespace keel {

class BoardFinder : public BoardGuide {
 public:
  struct Config {
    std::string job;
    std::string incarnation;
    // Names or numbers; each with a port. None: hosts meet by the job's lease.
    std::vector<HostPort> endpoints;
    std::function<std::string()> own_peer;   // where this host answers such questions itself
    std::function<std::optional<LinkView>()> lease;   // nothing: the job has none
    bool is_ours = false;              // the first board is this host's, at the first of them
    bool may_open = false;             // a first board beside the store of another job
    Duration beat_limit = kBeatLimit;
    Duration fence_limit = kFenceLimit;   // with a board beside that is silent
    Duration ask_limit = kAskLimit;    // for those that are asked, all at once
    std::optional<Seal> seal = {};     // of the job's token, for them
  };
  struct Events {
    // The board of that coordinator, which was reached before, is lost. It may be told again, once
    // its machine refuses.
    std::function<void(const std::string& coordinator, bool refused)> on_lost;
    std::function<void(const BoardPlace& place, const std::string& why)> on_follow;
    // It is for this host to open a board of that term, from that epoch on, and to tell its place
    // to SetOwn().
    std::function<void(const BoardPlace& place, const std::string& why)> on_turn;
  };

  BoardFinder(Config config, Clock& clock, StoreMaker& stores, Events events)
      : config_(std::move(config)), clock_(clock), stores_(stores), events_(std::move(events)) {}

  Result<std::unique_ptr<Store>> Connect(const CancelToken& ending) override;
  bool NoteSuccession(const SuccessionRecord& record) override;
  void NoteEpoch(int64_t newest) override;
  void NoteHosts(int64_t hosts) override;
  void NoteContact(TimePoint beat) override;
  int64_t newest_epoch() const override;
  void SetOwn(const std::optional<BoardPlace>& own) override;
  std::optional<PeerSight> Sight() const override;
  std::string Target() const override;
  // Whether the first board that was found is not at the endpoint, which was another job's then.
  bool is_beside() const;

  // Looks for boards of this job that are ahead of `own`, at the endpoints and at `peers`, and
  // tells those that are behind at the endpoints where `own` is. Returns the one that is furthest
  // ahead. It may be called beside Connect().
  std::optional<BoardPlace> Scout(const BoardPlace& own, const std::vector<std::string>& peers,
                                  const CancelToken& ending);

 private:
  PeerQuestion Question() const { return {config_.job, config_.seal}; }
  std::optional<Error> WhyClosed(const std::vector<PeerAnswer>& answers, const HostPort& endpoint);
  struct State {
    std::optional<BoardPlace> place;      // the board that is followed; nothing: none was reached
    std::optional<BoardPlace> read;       // the last one that has told of itself
    int64_t epoch = 0;                    // the newest that any board named
    std::optional<HostPort> target;       // where it was reached; nothing: one of the endpoints
    std::vector<Heir> heirs;
    std::vector<std::string> peers;       // of all heirs that were ever named, the newest last
    std::optional<BoardPlace> own;
    TimePoint heard;                      // from the board, or that it is there
    std::optional<TimePoint> lost_at;
    int turns = 0;                        // since then
    int64_t hosts = 0;                    // of the newest epoch
    bool refused = false;
    bool is_reached = false;              // it has told of itself
    bool is_first_left = false;           // the own first board was
    bool is_beside = false;
    std::optional<TimePoint> closed_since;   // since when the endpoint has another token
    std::string silent_post;              // what is posted beside, where that is silent
    TimePoint silent_since;
  };

  Result<std::unique_ptr<Store>> ConnectFirst(const CancelToken& ending);
  Result<std::unique_ptr<Store>> ConnectByLease(const CancelToken& ending);
  Result<std::optional<std::string>> OtherKeeper(Store& store) const;
  Result<std::optional<BoardPlace>> PostedAhead(Store& store, const BoardPlace& lost,
                                                const CancelToken& ending);
  // `store`: the one at that endpoint, which may be another job's.
  Result<std::unique_ptr<Store>> ConnectBy(std::unique_ptr<Store> store, const HostPort& endpoint,
                                           const CancelToken& ending);
  void LookAtPosted(BesideView& view, const CancelToken& ending);
  Result<bool> HasBoard(const HostPort& where, const CancelToken& ending);
  Result<std::unique_ptr<Store>> ConnectAgain(State state, const CancelToken& ending);
  Result<std::unique_ptr<Store>> ConnectTo(const HostPort& where, const CancelToken& ending);
  Result<std::unique_ptr<Store>> Follow(const BoardPlace& place, const std::string& why,
                                        const CancelToken& ending);
  bool NamesABoard(const PeerAnswer& answer, const CancelToken& ending) const;
  std::vector<PeerSight> SightsThatCount(const FollowView& view,
                                         const std::vector<PeerAnswer>& answers,
                                         const std::vector<Heir>& heirs,
                                         const CancelToken& ending) const;
  bool AwaitTurn(const State& state, const CancelToken& ending);
  HostPort WhereLost(const State& state) const;
  PeerAnswer AskAt(const HostPort& where, const CancelToken& ending) const;
  Reached Look(const HostPort& where, const CancelToken& ending) const;
  std::vector<std::string> EndpointAddresses() const;
  std::optional<BoardPlace> BoardAt(const std::string& address, const BoardPlace& own);
  Result<std::optional<BoardPlace>> ReadBoardAt(const std::string& address, const BoardPlace& own);
  Result<std::unique_ptr<Store>> ConnectBriefly(const std::string& address);
  Result<std::optional<BoardPlace>> ReadBoard(Store& store, const std::string& generation,
                                              const std::string& address, const BoardPlace& own);
  Result<std::optional<BoardPlace>> TakePost(Store& store, const BoardPlace& own);

  static HostPort PlaceOf(const BoardPlace& place);

  const Config config_;
  Clock& clock_;
  StoreMaker& stores_;
  const Events events_;
  mutable std::mutex mutex_;
  State state_;   // mutex_ guards it
};

}  // namespace keel
