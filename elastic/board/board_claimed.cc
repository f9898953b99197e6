// What a Board does besides where no host keeps the boards of the job: it opens the board of the
// term that this host has claimed, and closes it once that claim is in force no more.
#include <boost/asio/post.hpp>

#include <utility>

#include "base/log.h"
#include "elastic/board/board.h"

namespace keel {

std::unique_ptr<BoardGuide> Board::MakeClaimedFinder() {
  if (where_.home == nullptr) return nullptr;
  ClaimedFinder::Events events;
  events.on_lost = [this](const std::string& coordinator, bool refused) {
    boost::asio::post(loop_, [this, coordinator, refused, promised = member_.promised()] {
      events_.on_lost(coordinator, promised, refused);
    });
  };
  events.on_turn = [this](const ClaimedFinder::Turn& turn) {
    boost::asio::post(loop_, [this, turn] { TakeRole(turn); });
  };
  events.on_role_lost = [this](int64_t term, const std::string& why) {
    boost::asio::post(loop_, [this, term, why] { LoseRole(term, why); });
  };
  return std::make_unique<ClaimedFinder>(
      ClaimedFinder::Config{job_, where_.incarnation, [this] { return peer(); }, peer_seal_},
      clock_, *where_.home, std::move(events));
}

void Board::TakeRole(const ClaimedFinder::Turn& turn) {
  if (finishing_) return;   // the claim ends with this process
  if (keeper_) CloseKeeper();
  LogInfo("board-opened", {{"term", turn.next.term},
                           {"address", where_.home->Text()},
                           {"reason", turn.why}});
  Keep(turn.next, turn.handed_over_by, presence_server_->port(), nullptr, turn.former);
  member_thread_->Wake();
}

// Nothing is written to that board any more, whatever its coordinator wants.
void Board::LoseRole(int64_t term, const std::string& why) {
  if (!keeper_ || keeper_->place().term != term) return;
  LogInfo("board-left", {{"term", term}, {"reason", why}});
  CloseKeeper();
  CheckFinished();
}

// Others may claim at once, unless the job is over.
void Board::CloseHome() {
  const bool ends_job = coordinates() && keeper_->is_stopping();
  const BoardPlace own = ends_job ? keeper_->place() : BoardPlace{};
  keeper_.reset();
  if (!ends_job) return where_.home->Release();
  where_.home->End({.term = own.term, .by = own.by, .peer = own.address});
}

}  // namespace keel
