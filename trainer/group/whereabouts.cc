// A few values under a lock that is held only for moments.
#include "trainer/group/whereabouts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "elastic/protocol/limits.h"

namespace keel {

std::string PhaseText(Phase phase) {
  switch (phase) {
    case Phase::kMeeting: return "meeting";
    case Phase::kEvaluating: return "evaluating";
    case Phase::kSaving: return "saving";
    case Phase::kComputing: return "computing";
    case Phase::kVoting: return "voting";
    case Phase::kApplying: return "applying";
    case Phase::kParked: return "parked";
  }
  return "";
}

void Whereabouts::BeginEpoch(int64_t step, bool lacks) {
  {
    const std::lock_guard lock(mutex_);
    training_ = std::this_thread::get_id();
    position_ = {};
    phase_ = Phase::kMeeting;
    waits_.clear();   // left by threads of an earlier group
  }
  At(step, Phase::kMeeting, lacks);
}

void Whereabouts::At(int64_t step, Phase phase, bool lacks) {
  Now now;
  {
    const std::lock_guard lock(mutex_);
    Position next{step, static_cast<int>(phase), 0};
    if (next.step == position_.step && next.phase == position_.phase) {
      next.tick = position_.tick + 1;
    }
    KEEL_CHECK(next >= position_, "from step " << position_.step << ", " << PhaseText(phase_)
                                               << ", back to step " << step << ", "
                                               << PhaseText(phase));
    if (position_.step >= 0 && next.phase != position_.phase) known_.insert(phase_);
    position_ = next;
    phase_ = phase;
    lacks_ = lacks;
    place_.clear();
    now = LookLocked();
  }
  if (on_move_) on_move_(now);
}

void Whereabouts::Tick() {
  Now now;
  {
    const std::lock_guard lock(mutex_);
    ++position_.tick;
    now = LookLocked();
  }
  if (on_move_) on_move_(now);
}

void Whereabouts::Place(std::string place) {
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
}

Whereabouts::Now Whereabouts::Look() const {
  const std::lock_guard lock(mutex_);
  return LookLocked();
}

Whereabouts::Now Whereabouts::LookAgain() {
  const std::lock_guard lock(mutex_);
  const bool computes = phase_ == Phase::kComputing || phase_ == Phase::kEvaluating ||
                        phase_ == Phase::kApplying;
  if (computes && !known_.contains(phase_) && first_ticks_ * kTellPause < kStartLimit &&
      LookLocked().activity.waits_for == Activity::kNobody) {
    ++first_ticks_;
    ++position_.tick;
  }
  return LookLocked();
}

Whereabouts::Now Whereabouts::LookLocked() const {
  const auto trains = [](const Wait& one) { return one.is_training; };
  const bool handed_over = handed_over_ > 0;
  auto wait = std::find_if(waits_.rbegin(), waits_.rend(), trains);
  if (wait == waits_.rend() && handed_over) wait = waits_.rbegin();
  const bool waits = wait != waits_.rend();
  const std::string& place = handed_over && !side_place_.empty() ? side_place_ : place_;
  return {position_,
          {PhaseText(phase_) + (place.empty() ? "" : ", " + place),
           waits ? wait->rank : Activity::kNobody},
          lacks_};
}

void Whereabouts::SidePlace(std::string place) {
  const std::lock_guard lock(mutex_);
  side_place_ = std::move(place);
}

uint64_t Whereabouts::Begin(int rank) {
  const std::lock_guard lock(mutex_);
  waits_.push_back({next_wait_, std::this_thread::get_id() == training_, rank});
  return next_wait_++;
}

void Whereabouts::End(uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waits_, [&](const Wait& one) { return one.number == number; });
}

void Whereabouts::HandOver(bool over) {
  const std::lock_guard lock(mutex_);
  handed_over_ += over ? 1 : -1;
  if (!over) side_place_.clear();
}

}  // namespace keel
