// What is held gets its beat; what is not is looked at.
#include "elastic/board/lease_hand.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace keel {
namespace {

// Between two looks while this host coordinates and holds nothing, or wants to know.
constexpr Duration kLookPause = std::chrono::milliseconds(500);
// ... and while what others want to see does not come.
constexpr Duration kLookPauseMost = std::chrono::seconds(5);

}  // namespace

LeaseHand::LeaseHand(Lease& lease, Clock& clock, std::string incarnation, Look look_at)
    : lease_(lease),
      clock_(clock),
      incarnation_(std::move(incarnation)),
      look_at_(std::move(look_at)) {}

TimePoint LeaseHand::Poll(const LeaseTask& task) {
  if (holding_ && task.own) {
    const TimePoint due = JudgeHolder(*holding_).beat_at;
    if (clock_.Monotonic() < due) return due;
    const TimePoint next = Beat();
    if (holding_) return next;
  }
  if (!task.own) holding_.reset();   // another host goes on
  if (!task.own && !task.looks) {
    pause_ = Duration(0);
    return kNever;
  }
  (void)See();   // what it finds is in the view
  if (task.own && MayGoOn(task)) (void)Claim(*task.own, watch_.sight->term);
  if (holding_) return JudgeHolder(*holding_).beat_at;
  pause_ = task.own ? kLookPause : std::clamp(2 * pause_, kLookPause, kLookPauseMost);
  return clock_.Monotonic() + pause_;
}

// The newest link is of the epoch that runs here, under a coordinator that is no more; or nobody
// has the job.
bool LeaseHand::MayGoOn(const LeaseTask& task) const {
  if (!seen_ || failure_ || holding_) return false;
  const bool is_same = !link_.epoch.empty() && link_.epoch == task.own->epoch;
  const bool is_nobodys = task.opens && task.own->epoch.empty() && IsOver();
  return is_same || is_nobodys;
}

TimePoint LeaseHand::Beat() {
  const TimePoint began = clock_.Monotonic();
  const Status status = lease_.Beat();
  holding_ = LeaseHolding{began, {}};
  failure_.reset();
  if (status.ok()) {
    seen_ = began;
  } else {
    holding_->failure = failure_ = status.error();
  }
  const HolderVerdict verdict = JudgeHolder(*holding_);
  if (!verdict.is_lost) return verdict.beat_at;
  LogInfo("lease-lost", {{"reason", verdict.detail}});
  holding_.reset();
  return clock_.Monotonic();
}

Status LeaseHand::See() {
  const TimePoint began = clock_.Monotonic();
  const Result<LeaseSight> sight = lease_.Look();
  if (!sight.ok()) {
    failure_ = sight.error();
    return sight.error();
  }
  failure_.reset();
  seen_ = began;
  if (!watch_.sight || watch_.sight->term != sight->term) link_ = LinkRecord();
  watch_ = AfterLook(watch_, *sight, began, clock_.Monotonic());
  // A claim keeps its text: what was read of it once stays known, and until then each look tries.
  if (link_ == LinkRecord()) {
    const Result<LinkRecord> link = ParseLink("term " + std::to_string(sight->term), sight->text);
    if (link.ok()) link_ = *link;
  }
  const bool is_others = !link_.peer.empty() && link_.place.by != incarnation_;
  is_dead_ = is_others && look_at_(link_.peer) == Reached::kRefused;
  is_there_ = is_others && !is_dead_ && look_at_(link_.place.address) == Reached::kListener;
  return Ok();
}

bool LeaseHand::IsOver() const {
  if (!watch_.sight || holding_) return false;
  return is_dead_ || JudgeLooker(watch_, watch_.sight->run, clock_.Monotonic()).may_claim;
}

Status LeaseHand::Claim(const LinkRecord& link, int64_t after) {
  const std::string text = LinkText(link);
  const int64_t number = after + 1;
  const TimePoint began = clock_.Monotonic();
  const Status claimed = lease_.Claim(number, text);
  const Status seen = See();
  KEEL_TRY(claimed);
  KEEL_TRY(seen);
  // An earlier claim of this host, whose outcome was unknown, may have come first.
  if (watch_.sight->term != number || watch_.sight->text != text) {
    return Error{Code::kStaleEpoch, "claim " + std::to_string(number) +
                                        " of the job's lease says something else"};
  }
  LogInfo("lease-claimed", {{"number", number},
                            {"epoch", link.epoch.empty() ? "-" : link.epoch},
                            {"board", PlaceText(link.place)}});
  holding_ = LeaseHolding{began, {}};   // a claim counts as a beat
  return Ok();
}

void LeaseHand::Release() {
  if (!holding_) return;
  holding_.reset();
  const Status released = lease_.Release();
  if (!released.ok()) LogDebug("lease-not-released", {{"reason", released.error().message}});
}

LinkView LeaseHand::View() const {
  LinkView view;
  const TimePoint now = clock_.Monotonic();
  view.is_seen = seen_ && now - *seen_ < kLeaseFormLimit && watch_.sight;
  if (!view.is_seen) {
    view.detail = failure_ ? failure_->message : "it was not looked at yet";
    return view;
  }
  view.number = watch_.sight->term;
  view.link = link_;
  view.is_ours = holding_.has_value();
  view.is_over = view.number > 0 && IsOver();
  view.is_there = is_there_;
  view.detail = watch_.sight->damage.empty()
                    ? JudgeLooker(watch_, watch_.sight->run, now).detail
                    : "its text is damaged: " + watch_.sight->damage;
  return view;
}

}  // namespace keel
