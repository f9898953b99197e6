// The coordinator's thread polls; what it finds is posted to the loop.
#include "elastic/board/keeper.h"

#include <boost/asio/post.hpp>

#include <utility>

#include "base/log.h"
#include "elastic/protocol/limits.h"
#include "store/host_port.h"
#include "store/reach.h"

namespace keel {
namespace {

// A worker that is being stopped may still talk to the store of the epoch before.
constexpr size_t kEpochStoresKept = 2;
// So many ports after the one that was asked for are tried before any other one.
constexpr int kPortsTried = 16;
constexpr int kPortMax = 65535;
constexpr Duration kHostsPause = std::chrono::milliseconds(500);
// A machine that is there answers at once.
constexpr Duration kLookLimit = std::chrono::milliseconds(100);

}  // namespace

BoardKeeper::BoardKeeper(boost::asio::io_context& loop, Clock& clock, StoreMaker& stores,
                         Place place, std::unique_ptr<StoreServer> server, Connect connect,
                         CoordinatorConfig config, Random random, Events events)
    : loop_(loop),
      clock_(clock),
      stores_(stores),
      where_(std::move(place)),
      server_(std::move(server)),
      job_(config.job),
      events_(std::move(events)),
      alive_(std::make_shared<bool>(true)),
      coordinator_([&] {
        config.address = AddressText(where_.own_address, where_.port);
        config.look_at = [](const std::string& peer) { return ReachOnce(peer, kLookLimit); };
        return std::move(config);
      }(),
                   std::move(random),
                   [this](const EpochRecord& epoch) { return OpenEpochStore(epoch); }) {
  last_ = told_ = Tell(clock_.Monotonic());
  thread_ = std::make_unique<BoardThread>(
      "coordinator", clock_,
      BoardThread::Work{std::move(connect),
                        [this](Store& store, TimePoint now) { return Poll(store, now); },
                        // The member's half tells the user that the store is gone.
                        [](const Status& status) {
                          if (status.ok()) return;
                          LogDebug("coordinator-stalls", {{"reason", status.error().message}});
                        }});
}

BoardKeeper::~BoardKeeper() {
  *alive_ = false;
  thread_.reset();
}

void BoardKeeper::NoteNews(int64_t slot) {
  thread_->Post([this, slot] { coordinator_.NoteNews(slot); });
}

void BoardKeeper::NoteBeat(int64_t slot, const std::string& incarnation) {
  thread_->Post([this, slot, incarnation, at = clock_.Monotonic()] {
    coordinator_.NoteBeat(slot, incarnation, at);
  }, /*hurry=*/false);
}

void BoardKeeper::PresenceOpened(int64_t slot, const std::string& incarnation) {
  thread_->Post([this, slot, incarnation] { coordinator_.PresenceOpened(slot, incarnation); });
}

void BoardKeeper::PresenceClosed(int64_t slot, const std::string& incarnation) {
  thread_->Post([this, slot, incarnation] {
    coordinator_.PresenceClosed(slot, incarnation, clock_.Monotonic());
  });
}

void BoardKeeper::Offer(const BoardPlace& place) {
  thread_->Post([this, place] { coordinator_.NoteOffer(place); });
}

void BoardKeeper::NoteLease() {
  thread_->Post([this] { coordinator_.NoteLease(); });
}

BoardKeeper::Left BoardKeeper::Close() {
  thread_.reset();
  return {std::move(epoch_stores_), used_by_.empty() ? nullptr : std::move(server_), used_by_};
}

BoardKeeper::Told BoardKeeper::Tell(TimePoint now) const {
  const bool is_needed = coordinator_.is_needed();
  return {coordinator_.place(), coordinator_.moved(), coordinator_.PeersOutOfReach(now),
          coordinator_.end() ? coordinator_.done() : !is_needed, coordinator_.is_stopping(),
          !is_needed, coordinator_.Link(), coordinator_.is_fresh()};
}

BoardThread::Turn BoardKeeper::Poll(Store& store, TimePoint now) {
  Coordinator::Step step = coordinator_.Poll(store, now);
  // This host's own member may have looked before the coordinator had opened the job.
  step.look |= step.status.ok() && !std::exchange(announced_, true);
  const BoardThread::Turn turn{step.status, false, coordinator_.NextPoll()};
  TellHosts(now);
  Told told = Tell(now);
  const bool is_new = told != last_;
  last_ = told;
  if (step.look || !step.decisions.empty() || is_new || coordinator_.end()) {
    boost::asio::post(loop_, [this, alive = alive_, step = std::move(step),
                              told = std::move(told)] {
      if (!*alive) return;
      told_ = told;
      events_.on_step(step);
    });
  }
  return turn;
}

void BoardKeeper::TellHosts(TimePoint now) {
  if (!events_.on_hosts || (hosts_told_ && now - *hosts_told_ < kHostsPause)) return;
  hosts_told_ = now;
  boost::asio::post(loop_, [this, alive = alive_, hosts = coordinator_.hosts()] {
    if (*alive) events_.on_hosts(hosts);
  });
}

// The workers of a foreign epoch get a store of their own, so that they read nothing of an attempt
// that has failed. So do all where the board is in no store of this host. Where workers expect to
// meet in the store of the board, only the first ones may, for no other one has written there.
Result<EpochStore> BoardKeeper::OpenEpochStore(const EpochRecord& epoch) {
  const bool is_expected = where_.workers_meet.has_value();
  if (epoch.kind == JobKind::kInPlace && where_.has_store && !is_lost_) {
    return EpochStore{where_.own_address, where_.port,
                      "keel/" + job_ + "/" + coordinator_.generation() + "/workers/" +
                          std::to_string(epoch.number) + "/"};
  }
  if (is_expected && (used_by_.empty() || Renew())) {
    used_by_ = epoch.id;
    return EpochStore{where_.workers_meet->host, where_.port, ""};
  }
  Result<std::unique_ptr<StoreServer>> server = ServeEpoch(is_expected);
  if (!server.ok()) {
    NoteNoStore(server.error());
    return server.error();
  }
  no_store_since_.reset();
  const EpochStore store{is_expected ? where_.workers_meet->host : where_.own_address,
                         (*server)->port(), ""};
  epoch_stores_.push_back(*std::move(server));
  if (epoch_stores_.size() > kEpochStoresKept) epoch_stores_.pop_front();
  return store;
}

// Where a port was asked for, the network may let through those that follow it, and no others,
// unless we were told which ones it does.
Result<std::unique_ptr<StoreServer>> BoardKeeper::ServeEpoch(bool is_expected) {
  const bool follows = is_expected && stores_.ports().is_any();
  for (int next = 1; follows && next <= kPortsTried; ++next) {
    const int port = where_.port + next;
    if (port > kPortMax) break;
    auto server = stores_.Serve(where_.workers_meet->bind, static_cast<uint16_t>(port));
    if (server.ok() || server.error().code != Code::kExists) return server;
  }
  return stores_.Serve(is_expected ? where_.workers_meet->bind : where_.bind, 0);
}

// Puts a fresh store in the place of the one that workers have used, if nobody else needs that.
// Somebody else may take the port in between, and give it back later.
bool BoardKeeper::Renew() {
  if (!where_.is_elsewhere) return false;
  server_.reset();
  auto fresh = stores_.Serve(where_.workers_meet->bind, where_.port);
  const bool was_lost = std::exchange(is_lost_, !fresh.ok());
  if (fresh.ok()) {
    server_ = *std::move(fresh);
    return true;
  }
  if (!was_lost) LogWarn("port-lost", {{"port", where_.port}, {"reason", fresh.error().message}});
  return false;
}

// The coordinator tries again, since descriptors or memory may be short only for a moment. But no
// worker runs meanwhile, and no limit of another part passes, so this wait is logged and has a
// limit.
void BoardKeeper::NoteNoStore(const Error& why) {
  const TimePoint now = clock_.Monotonic();
  if (!no_store_since_) {
    no_store_since_ = now;
    LogWarn("store-not-opened", {{"reason", why.message},
                                 {"tried_for", DurationText(kEpochStoreLimit)}});
  }
  if (now - *no_store_since_ < kEpochStoreLimit) return;
  no_store_since_ = now;
  boost::asio::post(loop_, [this, alive = alive_, why] {
    if (*alive) events_.on_no_store(why);
  });
}

}  // namespace keel
