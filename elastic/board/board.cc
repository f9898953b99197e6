// The threads poll. What they find is posted to the loop; what the loop wants is posted to them.
#include "elastic/board/board.h"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "elastic/decisions/follow.h"
#include "elastic/protocol/limits.h"
#include "store/host_port.h"

namespace keel {
namespace {

// The limit for a connection to the own store, and for each operation on it.
constexpr Duration kOwnStoreLimit = std::chrono::seconds(5);
constexpr Duration kSearchPause = std::chrono::milliseconds(200);  // for the board, at most
// How often a board that nobody has opened yet is looked at, and, where a host keeps it, how long.
constexpr Duration kOpeningPause = std::chrono::milliseconds(50);
constexpr Duration kOpeningTime = std::chrono::seconds(2);
// A board that this host opened is closed again once it has followed another one for so long, and
// nobody has come.
constexpr Duration kNeedlessBoardTime = kBeatLimit;
// A board that was left is kept for so long for those who have not read it yet.
constexpr Duration kLeftBoardTime = std::chrono::seconds(1);
// For one attempt to reach the launcher that holds the job's lease.
constexpr Duration kPeerLookLimit = std::chrono::milliseconds(300);
// How long the last word may take to get to the board, and, if this host has decided the end, how
// long the other hosts may take to read it.
constexpr Duration kFinishLimit = std::chrono::seconds(3);
constexpr Duration kEndReadLimit = kCloseLimit + std::chrono::seconds(5);

}  // namespace

Result<std::unique_ptr<Board>> Board::Open(boost::asio::io_context& loop, Clock& clock,
                                           StoreMaker& stores, Where where,
                                           BoardClientConfig member, JobPolicy policy,
                                           Random random, Events events) {
  std::unique_ptr<StoreServer> server = std::move(where.server);
  std::unique_ptr<Lease> lease = std::move(where.lease);
  const bool is_first = server != nullptr || where.is_alone;
  std::unique_ptr<Board> board(new Board(loop, clock, stores, std::move(where), is_first,
                                         std::move(member), std::move(policy), std::move(random),
                                         std::move(events)));
  if (!board->where_.is_alone) {
    KEEL_TRY_ASSIGN(board->presence_server_,
                    board->OpenPeerPort({.bind = board->where_.bind,
                                         .port = board->where_.peer_port,
                                         .ports = stores.ports()}));
  }
  if (lease) board->OpenLease(std::move(lease));
  if (is_first) {
    const uint16_t port = board->where_.endpoints.front().port.value_or(0);
    board->Keep({.term = 1}, "", port, std::move(server));
  }
  board->StartMember();
  return board;
}

Board::Board(boost::asio::io_context& loop, Clock& clock, StoreMaker& stores, Where where,
             bool is_first, BoardClientConfig member, JobPolicy policy, Random random,
             Events events)
    : loop_(loop),
      clock_(clock),
      stores_(stores),
      where_(std::move(where)),
      is_first_(is_first),
      job_(member.job),
      peer_seal_(where_.seal ? std::optional(where_.seal->For({"peer"})) : std::nullopt),
      policy_(std::move(policy)),
      random_(std::move(random)),
      events_(std::move(events)),
      alone_(clock),
      finder_({job_, where_.incarnation, where_.endpoints, [this] { return peer(); },
               [this] { return lease_ ? std::optional(lease_->View()) : std::nullopt; },
               is_first_, where_.may_open, policy_.beat_limit, policy_.fence_limit, kAskLimit,
               peer_seal_},
              clock, stores,
              {[this](const std::string& coordinator, bool refused) {
                 boost::asio::post(loop_, [this, coordinator, refused,
                                           promised = member_.promised()] {
                   is_lost_ = true;
                   TellLease();
                   events_.on_lost(coordinator, promised, refused);
                 });
               },
               [](const BoardPlace& place, const std::string& why) {
                 LogInfo("board-followed", {{"board", PlaceText(place)}, {"reason", why}});
               },
               [this](const BoardPlace& place, const std::string& why) {
                 boost::asio::post(loop_, [this, place, why] { OpenNext(place, "", why); });
               }}),
      claimed_(MakeClaimedFinder()),
      guide_(claimed_ ? *claimed_ : finder_),
      member_(AskingForVouchers(std::move(member))),
      follows_own_(is_first_),
      finish_limit_(loop),
      left_timer_(loop),
      presence_client_(
          loop, [this] { member_thread_->Wake(); },
          [this] {
            guide_.NotePresenceLost();
            member_thread_->Wake();   // which finds the board gone, or goes on as before
          },
          peer_seal_) {}

Board::~Board() {
  member_thread_.reset();
  scout_.reset();
  const bool is_last = keeps() && keeper_->is_free();
  if (claimed_) CloseHome();
  keeper_.reset();
  if (lease_ && is_last) lease_->Release();
}

std::string Board::peer() const {
  return presence_server_ ? AddressText(where_.own_address, presence_server_->port()) : "";
}

// --- The board that this host keeps ---

void Board::Keep(const BoardPlace& next, const std::string& handed_over_by, uint16_t port,
                 std::unique_ptr<StoreServer> server, std::optional<EpochRecord> former) {
  opened_term_ = std::max(opened_term_, next.term);
  CoordinatorConfig config;
  config.job = job_;
  config.incarnation = where_.incarnation;
  config.presence = peer();
  config.policy = policy_;
  config.term = next.term;
  config.epoch = next.epoch;
  config.shunned = shunned_;
  config.is_sealed = IsSealed();
  config.handed_over_by = handed_over_by;
  if (lease_) {
    config.lease = [this] { return lease_->View(); };
    config.claim = [this](const LinkRecord& link, int64_t after) {
      return lease_->Claim(link, after);
    };
  }
  config.former = std::move(former);
  BoardKeeper::Events events;
  events.on_step = [this](const Coordinator::Step& step) { OnKeeperStep(step); };
  events.on_no_store = events_.on_no_store;
  events.on_hosts = events_.on_hosts;
  const std::string store = where_.bind.empty() ? "127.0.0.1" : where_.bind;
  const auto connect = [this, store, port, term = next.term](
                           const CancelToken& ending) -> Result<std::unique_ptr<Store>> {
    if (where_.home != nullptr) return where_.home->ConnectCoordinatorUntil(term, ending);
    if (where_.is_alone) return alone_.Connect("");
    return stores_.Connect(store, port, kOwnStoreLimit, ending);
  };
  // Workers were told of the first board alone; a later one may have its port by chance.
  const bool is_told = is_first_ && opened_ == 0;
  // This host may open several boards of one term, and no id may be drawn twice.
  const Random random = random_.Fork("board " + std::to_string(++opened_));
  keeper_ = std::make_unique<BoardKeeper>(
      loop_, clock_, stores_,
      BoardKeeper::Place{where_.own_address, where_.bind, port, !claimed_,
                         is_told ? where_.workers_meet : std::nullopt, where_.is_alone},
      std::move(server), connect, std::move(config), random, std::move(events));
  TellKept();
  guide_.SetOwn(keeper_->place());
  TellLease();
}

// The next board, on a socket of its own: whoever comes to it never meets the former one.
void Board::OpenNext(BoardPlace next, const std::string& handed_over_by, const std::string& why) {
  if (finishing_ || (keeper_ && keeper_->place().term >= next.term)) return;
  next.term = NextTerm(next.term - 1, opened_term_);
  Result<std::unique_ptr<StoreServer>> server = stores_.Serve(where_.bind, 0);
  if (!server.ok()) {
    return LogWarn("board-not-opened", {{"term", next.term}, {"reason", server.error().message}});
  }
  LogInfo("board-opened", {{"term", next.term},
                           {"address", AddressText(where_.own_address, (*server)->port())},
                           {"reason", why}});
  left_timer_.cancel();
  is_left_ = false;
  const uint16_t port = (*server)->port();
  Keep(next, handed_over_by, port, *std::move(server));
  member_thread_->Wake();
}

void Board::OnKeeperStep(const Coordinator::Step& step) {
  if (step.look) {
    if (presence_server_) presence_server_->Look();
    member_thread_->Wake();
  }
  // What a board that nobody follows waits for is no news; what was done on it is, also where this
  // host's own member has not read yet that it follows it.
  for (const Decision& decision : step.decisions) {
    if (coordinates() || decision.verdict != Decision::Verdict::kWait) {
      events_.on_decision(decision);
    }
  }
  const bool has_more_time = std::exchange(ends_with_job_, keeper_->is_stopping());
  if (finishing_ && ends_with_job_ && !has_more_time) LimitFinish(kEndReadLimit);
  ScoutOrNot();
  TellLease();
  if (keeper_->moved()) OnMoved();
  CheckFinished();
}

// Those who have not read yet that this board was left have a moment to do so.
void Board::OnMoved() {
  if (std::exchange(is_left_, true)) return;
  LogInfo("board-left", {{"board", PlaceText(*keeper_->moved())}});
  guide_.SetOwn(std::nullopt);
  left_timer_.expires_after(kLeftBoardTime);
  left_timer_.async_wait([this](const boost::system::error_code& failure) {
    if (failure || !is_left_) return;
    is_first_left_ |= is_first_ && keeper_->place().term == 1 && !where_.endpoints.empty();
    CloseKeeper();
    ListenAtEndpoint();
    CheckFinished();
  });
}

void Board::CloseKeeper() {
  BoardKeeper::Left left = keeper_->Close();
  for (auto& store : left.stores) former_stores_.push_back(std::move(store));
  if (left.own) {
    first_store_ = std::move(left.own);
    first_store_epoch_ = left.own_epoch;
    is_first_store_read_ = newest_epoch_ == first_store_epoch_;
  }
  keeper_.reset();
  TellKept();
  is_left_ = false;
  guide_.SetOwn(std::nullopt);
  ScoutOrNot();
}

// An heir may have opened a board although the coordinator came back, or another heir was faster.
void Board::CloseIfNeedless(TimePoint now) {
  if (follows_own_ || !keeps()) {
    elsewhere_since_.reset();
    return;
  }
  if (!elsewhere_since_) elsewhere_since_ = now;
  if (now - *elsewhere_since_ < kNeedlessBoardTime || !keeper_->is_alone()) return;
  LogInfo("board-closed", {{"board", PlaceText(keeper_->place())},
                           {"reason", "nobody came to it, and this host follows another one"}});
  elsewhere_since_.reset();
  CloseKeeper();
}

// A first board may be one that came up where the job had begun before; a later one may not be the
// only one.
void Board::ScoutOrNot() {
  if (where_.is_alone || claimed_) return;
  if (!coordinates()) return scout_ ? scout_->Look(std::nullopt) : void();
  const BoardPlace& own = keeper_->place();
  const bool may_be_late = own.epoch == 0 && where_.endpoints.size() > 1;
  const bool is_due = own.term > 1 || may_be_late || finder_.is_beside() ||
                      !keeper_->peers_out_of_reach().empty();
  if (is_due && !scout_) {
    scout_ = std::make_unique<Scout>(finder_, [this](const BoardPlace& ahead) {
      boost::asio::post(loop_, [this, ahead] {
        if (coordinates()) keeper_->Offer(ahead);
      });
    });
  }
  if (!scout_) return;
  using Task = std::optional<Scout::Task>;
  scout_->Look(is_due ? Task({own, keeper_->peers_out_of_reach()}) : Task());
}

// Once there is a newer epoch, no worker is inside the one whose workers met in the first store.
void Board::NoteEpoch(const std::string& id) {
  newest_epoch_ = id;
  if (id == first_store_epoch_) {
    is_first_store_read_ = true;
  } else if (is_first_store_read_) {
    first_store_.reset();
  }
}

// Newcomers that look for the job at its endpoint are told where it is: by whoever kept the first
// board there, or, where another job did, on the endpoint's own machine once that has ended. While
// workers need the store of the first board, it tells so itself.
void Board::ListenAtEndpoint() {
  const bool is_asked_there = is_first_left_ || (where_.peer_port == 0 && finder_.is_beside());
  if (!is_asked_there || endpoint_server_ || first_store_ || finishing_) return;
  const HostPort& endpoint = where_.endpoints.front();
  const bool is_bound = endpoint.host == where_.bind || !is_first_left_;
  auto server = OpenPeerPort({.bind = is_bound ? where_.bind : "",
                              .port = endpoint.port.value_or(0),
                              .is_only = true});
  if (server.ok()) endpoint_server_ = *std::move(server);
}

// --- The job's lease ---

void Board::OpenLease(std::unique_ptr<Lease> lease) {
  const auto look_at = [](const std::string& peer) { return ReachOnce(peer, kPeerLookLimit); };
  lease_ = std::make_unique<LeaseThread>(
      std::move(lease), clock_, where_.incarnation, look_at, [this](const LinkView& view) {
        boost::asio::post(loop_, [this, view] { OnLink(view); });
      });
  TellLease();
}

void Board::OnLink(const LinkView& view) {
  newest_link_ = view.link.epoch;
  if (keeper_) keeper_->NoteLease();
  events_.on_member_event(LinkSeen{view.link.epoch});
  TellLease();
}

void Board::TellLease() {
  if (!lease_) return;
  LeaseTask task;
  if (coordinates()) task.own = keeper_->link();
  task.opens = where_.endpoints.empty() && coordinates() && keeper_->is_fresh();
  task.looks = is_lost_ || !has_board_ || newest_epoch_ != newest_link_;
  lease_->SetTask(std::move(task));
}

// --- The member's half ---

Result<std::unique_ptr<Store>> Board::Connect(const CancelToken& ending) {
  member_.NoteConnection();
  if (where_.is_alone) return alone_.Connect("");
  return guide_.Connect(ending);
}

void Board::StartMember() {
  BoardThread::Work work;
  work.connect = [this](const CancelToken& ending) { return Connect(ending); };
  work.poll = [this](Store& store, TimePoint now) { return PollMember(store, now); };
  work.on_trouble = [this](const Status& status) {
    boost::asio::post(loop_, [this, status] { OnMemberTrouble(status); });
  };
  work.on_reason = [this](const Error& reason) {
    boost::asio::post(loop_, [this, reason] { OnMemberReason(reason); });
  };
  work.pause_most = kSearchPause;
  member_thread_ = std::make_unique<BoardThread>("board", clock_, std::move(work));
}

BoardThread::Turn Board::PollMember(Store& store, TimePoint now) {
  BoardClient::Step step = member_.Poll(store, now);
  if (step.status.ok()) guide_.NoteEpoch(member_.newest_epoch());
  if (step.beat) guide_.NoteContact(now);
  bool has_moved = NoteSuccession(step);
  if (!has_moved && step.status.ok()) has_moved = guide_.IsOver();
  BoardThread::Turn turn{step.status, has_moved, member_.NextPoll()};
  // Whoever coordinates next opens its board in a moment, and cannot tell us so yet.
  const std::optional<TimePoint> since = member_.unopened_since();
  const bool is_opening = since && (claimed_ || now - *since < kOpeningTime);
  if (is_opening) turn.next = std::min(turn.next, now + kOpeningPause);
  boost::asio::post(loop_, [this, now, has_moved, step = std::move(step), taken = taken_,
                            settled = member_.settled() || member_.is_unknown()] {
    if (settled) settled_ = taken;
    has_moved_ |= has_moved;
    if (has_moved) settled_ = -1;   // the last word belongs on the next board
    OnMemberStep(step, now);
  });
  return turn;
}

// A board that was opened in a hurry may know less than the one before it.
void Board::NoteShunned(const ShunnedRecord& record) {
  for (const ShunnedHost& one : record.hosts) {
    if (shunned_.FindLauncher(one.incarnation) == nullptr) shunned_.Add(one);
  }
}

// Returns whether the board was left for another one.
bool Board::NoteSuccession(const BoardClient::Step& step) {
  bool has_moved = false;
  for (const MemberEvent& event : step.events) {
    if (const auto* const seen = std::get_if<EpochSeen>(&event)) {
      guide_.NoteHosts(static_cast<int64_t>(seen->epoch.hosts.size()));
    }
    if (const auto* const seen = std::get_if<SuccessionSeen>(&event)) {
      has_moved = guide_.NoteSuccession(seen->record);
    }
  }
  return has_moved && !where_.is_alone;
}

void Board::OnMemberStep(const BoardClient::Step& step, TimePoint polled) {
  if (step.news) {
    if (follows_own_ && keeper_) {
      keeper_->NoteNews(slot_);
    } else {
      presence_client_.News();
    }
  }
  WarnIfUnknown(step, polled);
  for (const MemberEvent& event : step.events) {
    if (const auto* const seen = std::get_if<EpochSeen>(&event)) NoteEpoch(seen->epoch.id);
    if (const auto* const seen = std::get_if<SuccessionSeen>(&event)) OnSuccession(seen->record);
    if (const auto* const seen = std::get_if<ShunnedSeen>(&event)) NoteShunned(seen->record);
    if (const auto* const seen = std::get_if<PresenceSeen>(&event)) {
      follows_own_ = seen->address == peer();
      presence_client_.SetServer(follows_own_ ? "" : seen->address);
      ScoutOrNot();
    }
    if (const auto* const given = std::get_if<Registered>(&event)) {
      slot_ = given->slot;
      presence_client_.SetSelf(given->slot, where_.incarnation);
    }
    events_.on_member_event(event);
  }
  if (step.beat) {
    is_lost_ = false;
    has_board_ = true;
    events_.on_contact(polled);
    presence_client_.Beat();
    CloseIfNeedless(polled);
    ListenAtEndpoint();
  }
  TellLease();
  CheckFinished();
}

void Board::OnSuccession(const SuccessionRecord& record) {
  if (!record.shared.empty() && std::exchange(shared_epoch_, record.shared) != record.shared) {
    LogInfo("lease-shared", {{"epoch", record.shared},
                             {"meaning", "all hosts of the epoch have found it in the job's lease, "
                                         "so that any of them may go on"}});
  }
  if (claimed_) return;   // which claims the role itself
  if (record.chosen != where_.incarnation || record.moved) return;
  OpenNext({.term = record.term + 1, .epoch = guide_.newest_epoch()}, record.coordinator,
           "the coordinator leaves, and asks this host");
  if (!keeps() || keeper_->place().term <= record.term) return;
  TellMember([this, place = keeper_->place()] { member_.Offer(place); });
}

void Board::TellMember(std::function<void()> job, bool hurry) {
  ++told_;
  const auto take = [this, job = std::move(job)] {
    job();
    ++taken_;
  };
  member_thread_->Post(take, hurry);
}

// An epoch's id says who is in it, so that long lists are handed over only once.
void Board::Publish(MemberRecord record, const std::vector<CountedEpoch>& counted, bool hurry) {
  record.peer = peer();
  std::vector<std::string> ids;
  for (const CountedEpoch& epoch : counted) ids.push_back(epoch.id);
  CountedEpochs given;
  if (std::exchange(counted_, ids) != ids) given = std::make_shared<CountedEpochList>(counted);
  TellMember([this, record = std::move(record), given] { member_.Publish(record, given); }, hurry);
}

void Board::ReportBreak(const BreakRecord& record) {
  TellMember([this, record] { member_.ReportBreak(record); });
}

void Board::RegisterAnew() {
  TellMember([this] { member_.RegisterAnew(); });
}

// --- The end ---

void Board::Finish(bool at_once) {
  finishing_ = true;
  guide_.NoteFinishing();
  const bool is_stopping = keeper_ && keeper_->is_stopping();
  const Duration needed = is_stopping ? kEndReadLimit : kHandOverLimit;
  const bool leads = coordinates() && (is_stopping || !is_cut_off());
  LimitFinish(at_once ? Duration(0) : leads ? needed : kFinishLimit);
  member_thread_->Wake();
  if (keeper_) keeper_->Wake();
  CheckFinished();
}

void Board::LimitFinish(Duration limit) {
  const TimePoint end = clock_.Monotonic() + limit;
  if (limit > Duration(0) && end <= finish_by_) return;   // it has more time already
  finish_by_ = end;
  finish_limit_.expires_after(limit);
  finish_limit_.async_wait([this](const boost::system::error_code& failure) {
    if (failure) return;
    if (std::exchange(finishing_, false)) events_.on_finished();
  });
}

void Board::CheckFinished() {
  if (!finishing_ || settled_ != told_) return;
  // A board that was left still has its readers; one that nobody else needs has none.
  if (keeper_ && (is_left_ || (coordinates() && !keeper_->is_free()))) return;
  finishing_ = false;
  events_.on_finished();
}

}  // namespace keel
