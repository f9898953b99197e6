// What the finder does where the store at an endpoint is another job's, which names our board.
#include <utility>

#include "elastic/board/finder.h"
#include "elastic/protocol/board_keys.h"

namespace keel {

// The job that keeps this store, if it is another one, and ours has no board in it. A store that
// has no job yet may be that of a launcher of ours which has not opened it yet.
Result<std::optional<std::string>> BoardFinder::OtherKeeper(Store& store) const {
  KEEL_TRY_ASSIGN(const auto found, store.Get(GenerationKey(config_.job)));
  if (found) return std::optional<std::string>();
  KEEL_TRY_ASSIGN(auto keeper, store.Get(kKeeperKey));
  if (keeper && *keeper == config_.job) keeper.reset();
  return keeper;
}

Result<std::unique_ptr<Store>> BoardFinder::ConnectBy(std::unique_ptr<Store> store,
                                                      const HostPort& endpoint,
                                                      const CancelToken& ending) {
  const std::string posted_key = BesideKey(config_.job);
  KEEL_TRY_ASSIGN(const auto keeper, OtherKeeper(*store));
  if (!keeper) return store;
  KEEL_TRY_ASSIGN(const auto text, store->Get(posted_key));
  BesideView view{config_.job, *keeper, AddressText(endpoint.host, endpoint.port.value_or(0)),
                  config_.incarnation};
  view.may_open = config_.may_open;
  view.patience = config_.fence_limit;
  {
    const std::lock_guard lock(mutex_);
    view.own = state_.own;
  }
  if (text) {
    KEEL_TRY_ASSIGN(view.posted, ParseBoardPlace(posted_key, *text));
    LookAtPosted(view, ending);
  }
  const BesideStep step = DecideBeside(view);
  switch (step.verdict) {
    case BesideStep::Verdict::kWait: break;
    case BesideStep::Verdict::kFollow:
      {
        const std::lock_guard lock(mutex_);
        state_.is_beside = true;
      }
      return Follow(step.place, step.detail, ending);
    case BesideStep::Verdict::kOpen: events_.on_turn(step.place, step.detail); break;
    case BesideStep::Verdict::kPost:
      // Others take a store without a board for somebody else's.
      KEEL_TRY_ASSIGN(const bool is_opened, HasBoard(PlaceOf(step.place), ending));
      if (is_opened) KEEL_TRY(store->CompareSet(posted_key, text, BoardPlaceText(step.place)));
      break;   // the next look tells whose it is
  }
  return Error{Code::kTimeout, step.detail};
}

// Ports change hands. Whoever answers there, and does not keep our job's board, shows that the
// board is gone; and a launcher of ours that has the port by now may know of a later one. Nothing
// is known of a process that takes connections and is silent: it may be the board's, and stand
// still.
void BoardFinder::LookAtPosted(BesideView& view, const CancelToken& ending) {
  using Kind = PeerAnswer::Kind;
  const std::string post = BoardPlaceText(*view.posted);
  const HostPort where = PlaceOf(*view.posted);
  const bool is_own_peer = view.posted->address == config_.own_peer();
  const PeerAnswer answer = is_own_peer ? PeerAnswer{Kind::kUnknown, {}} : AskAt(where, ending);
  if (answer.kind == Kind::kStore) {
    const Result<bool> is_ours = HasBoard(where, ending);
    view.is_there = is_ours.ok() && *is_ours;
    view.is_gone = is_ours.ok() && !*is_ours;
  } else if (NamesABoard(answer, ending)) {
    view.posted = answer.sight.place;
    view.is_there = true;
  } else {
    // A launcher of ours may have lost the board a moment ago, as this host has.
    view.is_gone = answer.kind != Kind::kNothing && answer.kind != Kind::kSight;
  }
  const TimePoint now = clock_.Monotonic();
  const std::lock_guard lock(mutex_);
  const bool is_silent = !view.is_there && !view.is_gone;
  if (!is_silent || state_.silent_post != post) state_.silent_since = now;
  state_.silent_post = is_silent ? post : "";
  view.silent_for = now - state_.silent_since;
}

Result<bool> BoardFinder::HasBoard(const HostPort& where, const CancelToken& ending) {
  KEEL_TRY_ASSIGN(const std::unique_ptr<Store> store, ConnectTo(where, ending));
  KEEL_TRY_ASSIGN(const auto generation, store->Get(GenerationKey(config_.job)));
  return generation.has_value();
}

// The board that the store of another job names, if that is there, and ahead of the lost one.
Result<std::optional<BoardPlace>> BoardFinder::PostedAhead(Store& store, const BoardPlace& lost,
                                                           const CancelToken& ending) {
  BesideView view;
  const std::string key = BesideKey(config_.job);
  KEEL_TRY_ASSIGN(const auto text, store.Get(key));
  if (!text) return std::optional<BoardPlace>();
  KEEL_TRY_ASSIGN(view.posted, ParseBoardPlace(key, *text));
  LookAtPosted(view, ending);
  return view.is_there && IsAhead(*view.posted, lost) ? view.posted : std::nullopt;
}

}  // namespace keel
