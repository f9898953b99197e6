// The threads poll. What they find is posted to the loop; what the loop wants is posted to them.
#include "elastic/board/board.h"

#include <boost/asio/post.hpp>

#include <utility>

#include "base/log.h"
#include "elastic/protocol/limits.h"
#include "store/host_port.h"

namespace keel {
namespace {

// The limit for making a connection to the store, and for each operation on it.
constexpr Duration kStoreOperationLimit = std::chrono::seconds(5);
// A worker that is being stopped may still talk to the store of the epoch before.
constexpr size_t kEpochStoresKept = 2;
constexpr Duration kHostsPause = std::chrono::milliseconds(500);
// A store may answer for a moment before its coordinator has opened the job. Only a job that is
// missing for longer is told to the user.
constexpr Duration kUnknownTime = std::chrono::seconds(5);

}  // namespace

Result<std::unique_ptr<Board>> Board::Open(boost::asio::io_context& loop, Clock& clock,
                                           StoreMaker& stores, Where where,
                                           BoardClientConfig member, JobPolicy policy,
                                           Random random, Events events) {
  std::unique_ptr<Board> board(
      new Board(loop, clock, stores, std::move(where), std::move(member), std::move(events)));
  if (board->where_.is_ours) {
    KEEL_TRY(board->StartCoordinator(std::move(policy), std::move(random)));
  }
  board->StartMember();
  return board;
}

Board::Board(boost::asio::io_context& loop, Clock& clock, StoreMaker& stores, Where where,
             BoardClientConfig member, Events events)
    : loop_(loop),
      clock_(clock),
      stores_(stores),
      where_(std::move(where)),
      job_(member.job),
      events_(std::move(events)),
      alone_(clock),
      member_(std::move(member)),
      finish_limit_(loop),
      presence_client_(loop, [this] { member_thread_->Wake(); }) {}

Board::~Board() {
  member_thread_.reset();
  coordinator_thread_.reset();
}

Result<std::unique_ptr<Store>> Board::Connect(const CancelToken& ending) {
  if (where_.is_alone) return alone_.Connect("");
  return stores_.Connect(where_.host, where_.port, kStoreOperationLimit, ending);
}

// --- The coordinator's half ---

Status Board::StartCoordinator(JobPolicy policy, Random random) {
  PresenceServer::Events seen;
  seen.on_opened = [this](int64_t slot, const std::string& incarnation) {
    coordinator_thread_->Post([this, slot, incarnation] {
      coordinator_->PresenceOpened(slot, incarnation);
    });
  };
  seen.on_closed = [this](int64_t slot, const std::string& incarnation) {
    coordinator_thread_->Post([this, slot, incarnation] {
      coordinator_->PresenceClosed(slot, incarnation, clock_.Monotonic());
    });
  };
  seen.on_news = [this] { coordinator_thread_->Wake(); };
  KEEL_TRY_ASSIGN(presence_server_, PresenceServer::Open(loop_, std::move(seen)));
  CoordinatorConfig config;
  config.job = job_;
  config.incarnation = where_.incarnation;
  config.presence = AddressText(where_.own_address, presence_server_->port());
  config.policy = std::move(policy);
  coordinator_.emplace(std::move(config), std::move(random),
                       [this](const EpochRecord& epoch) { return OpenEpochStore(epoch); });
  coordinator_thread_ = std::make_unique<BoardThread>(
      "coordinator", clock_,
      BoardThread::Work{[this](const CancelToken& ending) { return Connect(ending); },
                        [this](Store& store, TimePoint now) { return PollCoordinator(store, now); },
                        // The member's half tells the user that the store is gone.
                        [](const Status& status) {
                          if (status.ok()) return;
                          LogDebug("coordinator-stalls", {{"reason", status.error().message}});
                        }});
  return Ok();
}

BoardThread::Turn Board::PollCoordinator(Store& store, TimePoint now) {
  Coordinator::Step step = coordinator_->Poll(store, now);
  // This host's own member may have looked before the coordinator had opened the job.
  step.look |= step.status.ok() && !std::exchange(announced_, true);
  const BoardThread::Turn turn{step.status, coordinator_->NextPoll()};
  const bool done = !coordinator_->end() || coordinator_->done();
  TellHosts(now);
  if (step.look || !step.decisions.empty() || coordinator_->end()) {
    boost::asio::post(loop_, [this, step = std::move(step), done] {
      coordinator_done_ = done;
      OnCoordinatorStep(step);
    });
  }
  return turn;
}

void Board::TellHosts(TimePoint now) {
  if (!events_.on_hosts || (hosts_told_ && now - *hosts_told_ < kHostsPause)) return;
  hosts_told_ = now;
  boost::asio::post(loop_, [this, hosts = coordinator_->hosts()] { events_.on_hosts(hosts); });
}

void Board::OnCoordinatorStep(const Coordinator::Step& step) {
  if (step.look) {
    presence_server_->Look();
    member_thread_->Wake();
  }
  for (const Decision& decision : step.decisions) events_.on_decision(decision);
  CheckFinished();
}

// The workers of a foreign epoch get a store of their own, so that they read nothing of an attempt
// that has failed.
Result<EpochStore> Board::OpenEpochStore(const EpochRecord& epoch) {
  if (epoch.kind == JobKind::kInPlace) {
    return EpochStore{where_.own_address, where_.port,
                      "keel/" + job_ + "/" + coordinator_->generation() + "/workers/" +
                          std::to_string(epoch.number) + "/"};
  }
  Result<std::unique_ptr<StoreServer>> server = stores_.Serve(0);
  if (!server.ok()) {
    NoteNoStore(server.error());
    return server.error();
  }
  no_store_since_.reset();
  const EpochStore store{where_.own_address, (*server)->port(), ""};
  epoch_stores_.push_back(*std::move(server));
  if (epoch_stores_.size() > kEpochStoresKept) epoch_stores_.pop_front();
  return store;
}

// The coordinator tries again, since descriptors or memory may be short only for a moment. But no
// worker runs meanwhile, and no limit of another part passes, so this wait is logged and has a
// limit.
void Board::NoteNoStore(const Error& why) {
  const TimePoint now = clock_.Monotonic();
  if (!no_store_since_) {
    no_store_since_ = now;
    LogWarn("store-not-opened", {{"reason", why.message},
                                 {"tried_for", DurationText(kEpochStoreLimit)}});
  }
  if (now - *no_store_since_ < kEpochStoreLimit) return;
  no_store_since_ = now;
  boost::asio::post(loop_, [this, why] { events_.on_no_store(why); });
}

// --- The member's half ---

void Board::StartMember() {
  member_thread_ = std::make_unique<BoardThread>(
      "board", clock_,
      BoardThread::Work{[this](const CancelToken& ending) { return Connect(ending); },
                        [this](Store& store, TimePoint now) { return PollMember(store, now); },
                        [this](const Status& status) {
                          boost::asio::post(loop_, [this, status] { OnMemberTrouble(status); });
                        }});
}

BoardThread::Turn Board::PollMember(Store& store, TimePoint now) {
  BoardClient::Step step = member_.Poll(store, now);
  const BoardThread::Turn turn{step.status, member_.NextPoll()};
  boost::asio::post(loop_, [this, now, step = std::move(step), taken = taken_,
                            settled = member_.settled() || !member_.slot()] {
    if (settled) settled_ = taken;
    OnMemberStep(step, now);
  });
  return turn;
}

void Board::OnMemberStep(const BoardClient::Step& step, TimePoint polled) {
  if (step.news) {
    if (coordinator_thread_) {
      coordinator_thread_->Wake();
    } else {
      presence_client_.News();
    }
  }
  if (step.beat) events_.on_contact(polled);
  WarnIfUnknown(step, polled);
  for (const MemberEvent& event : step.events) {
    if (!where_.is_ours) {
      if (const auto* seen = std::get_if<PresenceSeen>(&event)) {
        presence_client_.SetServer(seen->address);
      }
      if (const auto* given = std::get_if<Registered>(&event)) {
        presence_client_.SetSelf(given->slot, where_.incarnation);
      }
    }
    events_.on_member_event(event);
  }
  CheckFinished();
}

// Warns once if a store answers, but no coordinator has opened this job there.
void Board::WarnIfUnknown(const BoardClient::Step& step, TimePoint polled) {
  if (!step.status.ok() || is_known_) return;
  is_known_ = !step.events.empty();
  if (!answered_) answered_ = polled;
  if (is_known_ || polled - *answered_ < kUnknownTime) return;
  is_known_ = true;   // so that it is told only once
  events_.on_trouble(Error{Code::kNotFound,
                           "the store at " + AddressText(where_.host, where_.port) +
                               " has no job '" + job_ + "': does the host that keeps the store "
                               "run this job, with the same --rdzv-id?"});
}

void Board::OnMemberTrouble(const Status& status) {
  events_.on_trouble(status);
  if (!status.ok() && finishing_) finish_limit_.expires_after(Duration(0));
}

void Board::TellMember(std::function<void()> job, bool hurry) {
  ++told_;
  const auto take = [this, job = std::move(job)] {
    job();
    ++taken_;
  };
  member_thread_->Post(take, hurry);
}

void Board::Publish(const MemberRecord& record, bool hurry) {
  TellMember([this, record] { member_.Publish(record); }, hurry);
}

void Board::ReportBreak(const BreakRecord& record) {
  TellMember([this, record] { member_.ReportBreak(record); });
}

void Board::RegisterAnew() {
  TellMember([this] { member_.RegisterAnew(); });
}

// --- The end ---

void Board::Finish(Duration limit) {
  finishing_ = true;
  finish_limit_.expires_after(limit);
  finish_limit_.async_wait([this](const boost::system::error_code&) {
    if (std::exchange(finishing_, false)) events_.on_finished();
  });
  member_thread_->Wake();
  if (coordinator_thread_) coordinator_thread_->Wake();
  CheckFinished();
}

void Board::CheckFinished() {
  if (!finishing_ || settled_ != told_) return;
  if (coordinator_thread_ && !coordinator_done_) return;
  finishing_ = false;
  events_.on_finished();
}

}  // namespace keel
