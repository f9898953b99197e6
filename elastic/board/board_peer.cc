// The part of Board that answers at this host's peer port, and asks at that of the coordinator
// whether a sealed board is one of today.
#include <utility>

#include "elastic/board/board.h"

namespace keel {

void Board::TellKept() { kept_->Set(keeper_ ? keeper_->generation() : ""); }

Result<std::unique_ptr<PresenceServer>> Board::OpenPeerPort(PresenceServer::Where where) {
  PresenceServer::Events seen;
  seen.on_opened = [this](int64_t slot, const std::string& incarnation) {
    if (keeper_) keeper_->PresenceOpened(slot, incarnation);
  };
  seen.on_closed = [this](int64_t slot, const std::string& incarnation) {
    if (keeper_) keeper_->PresenceClosed(slot, incarnation);
  };
  seen.on_news = [this](int64_t slot) {
    if (keeper_) keeper_->NoteNews(slot);
  };
  seen.on_beat = [this](int64_t slot, const std::string& incarnation) {
    if (keeper_) keeper_->NoteBeat(slot, incarnation);
  };
  seen.on_ask = [this](const std::string& job) { return Answer(job); };
  seen.on_vouch = [kept = kept_](const std::string& generation) {
    return kept->Is(generation);
  };
  where.seal = peer_seal_;
  return PresenceServer::Open(loop_, std::move(where), std::move(seen));
}

std::string Board::Answer(const std::string& job) const {
  return AnswerText(job == job_, guide_.Sight());
}

BoardClientConfig Board::AskingForVouchers(BoardClientConfig member) const {
  if (!IsSealed()) return member;
  member.vouches = [seal = *peer_seal_, kept = kept_](
                       const std::string& peer, const std::string& generation, Duration limit) {
    if (kept->Is(generation)) return true;   // no network is needed to know that
    return Vouches(peer, generation, seal, limit, CancelToken::Never());
  };
  return member;
}

}  // namespace keel
