// Looks for boards of the job that are ahead of the own one, and tells those that are behind.
#include <utility>

#include "base/log.h"
#include "elastic/board/finder.h"
#include "elastic/protocol/board_keys.h"

namespace keel {

std::optional<BoardPlace> BoardFinder::Scout(const BoardPlace& own,
                                             const std::vector<std::string>& peers,
                                             const CancelToken& ending) {
  std::vector<std::string> asked = EndpointAddresses();
  std::erase(asked, own.address);
  std::erase(asked, config_.own_peer());
  const size_t endpoints = asked.size();
  asked.insert(asked.end(), peers.begin(), peers.end());
  {
    const std::lock_guard lock(mutex_);
    asked.insert(asked.end(), state_.peers.begin(), state_.peers.end());
  }
  std::optional<BoardPlace> ahead;
  const std::vector<PeerAnswer> answers = AskPeers(asked, Question(), config_.ask_limit, ending);
  for (size_t i = 0; i < answers.size(); ++i) {
    const PeerAnswer& answer = answers[i];
    if (answer.kind == PeerAnswer::Kind::kSight) {
      const BoardPlace& place = answer.sight.place;
      const bool is_better = IsAhead(place, ahead.value_or(own)) && !IsSameBoard(place, own);
      if (is_better && NamesABoard(answer, ending)) ahead = place;
    } else if (answer.kind == PeerAnswer::Kind::kStore && i < endpoints) {
      const std::optional<BoardPlace> there = BoardAt(asked[i], own);
      if (there && IsAhead(*there, ahead.value_or(own))) ahead = there;
    }
  }
  return ahead;
}

// The board of a store at an endpoint. If it is behind, it is told where this one is: somebody may
// have started a launcher there, which waits for this job.
std::optional<BoardPlace> BoardFinder::BoardAt(const std::string& address, const BoardPlace& own) {
  const Result<std::optional<BoardPlace>> found = ReadBoardAt(address, own);
  if (found.ok()) return *found;
  LogDebug("endpoint-not-read", {{"reason", found.error().message}});
  return std::nullopt;
}

Result<std::optional<BoardPlace>> BoardFinder::ReadBoardAt(const std::string& address,
                                                           const BoardPlace& own) {
  KEEL_TRY_ASSIGN(const std::unique_ptr<Store> store, ConnectBriefly(address));
  KEEL_TRY_ASSIGN(const auto generation, store->Get(GenerationKey(config_.job)));
  if (!generation) return TakePost(*store, own);
  return ReadBoard(*store, *generation, address, own);
}

Result<std::unique_ptr<Store>> BoardFinder::ConnectBriefly(const std::string& address) {
  KEEL_TRY_ASSIGN(const HostPort where, ParseEndpoint(address));
  return stores_.Connect(where.host, where.port.value_or(0), config_.ask_limit);
}

Result<std::optional<BoardPlace>> BoardFinder::ReadBoard(Store& store,
                                                         const std::string& generation,
                                                         const std::string& address,
                                                         const BoardPlace& own) {
  using Found = std::optional<BoardPlace>;
  const BoardKeys keys(config_.job, generation);
  KEEL_TRY_ASSIGN(const auto text, store.Get(keys.Succession()));
  KEEL_TRY_ASSIGN(const auto epoch, store.Get(keys.NewestEpoch()));
  if (!text || !epoch) return Found();
  if (config_.seal) {   // what is there may belong to a board of the past
    KEEL_TRY_ASSIGN(const auto peer, store.Get(keys.Presence()));
    const bool is_kept = peer && Vouches(*peer, generation, *config_.seal, config_.ask_limit,
                                         CancelToken::Never());
    if (!is_kept) return Found();
  }
  KEEL_TRY_ASSIGN(const SuccessionRecord record, ParseSuccession(keys.Succession(), *text));
  KEEL_TRY_ASSIGN(const int64_t number, ParseCount(keys.NewestEpoch(), *epoch));
  const BoardPlace there{record.term, number, record.address, record.coordinator};
  if (record.coordinator == own.by || record.moved) return Found();
  if (IsAhead(there, own)) return Found(there);
  KEEL_TRY_ASSIGN(const auto offered, store.Get(keys.Offer()));
  if (offered == BoardPlaceText(own)) return Found();
  KEEL_TRY(store.Set(keys.Offer(), BoardPlaceText(own)));
  KEEL_TRY(store.Add(keys.News(), 1));
  LogInfo("endpoint-told", {{"address", address}, {"board", PlaceText(own)}});
  return Found();
}

// The store of another job names the board of ours: it is told where that is now, so that whoever
// comes to the endpoint finds it. Who opened one there has not known of this one.
Result<std::optional<BoardPlace>> BoardFinder::TakePost(Store& store, const BoardPlace& own) {
  const std::string key = BesideKey(config_.job);
  KEEL_TRY_ASSIGN(const auto keeper, store.Get(kKeeperKey));
  if (!keeper || *keeper == config_.job) return std::optional<BoardPlace>();
  KEEL_TRY_ASSIGN(const auto text, store.Get(key));
  const auto look = [&]() -> Result<std::optional<BoardPlace>> {
    KEEL_TRY_ASSIGN(const BoardPlace posted, ParseBoardPlace(key, *text));
    if (posted.address == own.address) return std::optional(own);
    KEEL_TRY_ASSIGN(const std::unique_ptr<Store> there, ConnectBriefly(posted.address));
    KEEL_TRY_ASSIGN(const auto generation, there->Get(GenerationKey(config_.job)));
    if (!generation) return std::optional<BoardPlace>();
    return ReadBoard(*there, *generation, posted.address, own);
  };
  const Result<std::optional<BoardPlace>> found = text ? look() : std::optional<BoardPlace>();
  if (found.ok() && *found) return IsSameBoard(**found, own) ? std::nullopt : *found;
  KEEL_TRY(store.CompareSet(key, text, BoardPlaceText(own)));
  return std::optional<BoardPlace>();
}

}  // namespace keel
