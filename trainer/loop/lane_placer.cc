// Medians over the steps of a window, so that one slow step decides nothing.
#include "trainer/loop/lane_placer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kFirstWindow = 8;
constexpr size_t kWindowMax = 128;
constexpr int kSkipped = 2;   // steps after a change, which touch memory for the first time
// In percent: what another placement must promise, and how much slower than before it may be.
constexpr int64_t kGain = 5;
constexpr int64_t kTolerance = 2;
constexpr int64_t kTimeMax = 1'000'000'000'000;   // 1000 s: others tell times, which could overflow

int64_t Median(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string Took(int64_t ns) { return DurationText(std::chrono::nanoseconds(ns)); }

}  // namespace

LanePlacer::LanePlacer(int world, int lanes, bool moves)
    : lanes_(lanes), moves_(moves), now_(EvenPlacement(world, lanes)), window_(kFirstWindow) {
  costs_.lane_ns.resize(static_cast<size_t>(world));
}

// What is known was measured in another group, and nothing is known of a newcomer. So an even split
// is no more than expected to be slower, and is measured where the other placement disappoints.
std::optional<std::string> LanePlacer::Begin(const PlacementCosts& known) {
  costs_ = known;
  if (!moves_) return std::nullopt;
  now_ = BestPlacement(lanes_, {std::vector<int64_t>(known.lane_ns.size()), 0});
  const PlacementCosts costs = Completed(known);
  const Placement best = BestPlacement(lanes_, costs);
  took_ns_ = StepTimeOf(now_, costs);
  if (!Promises(best, costs)) return std::nullopt;
  return Try(State::kSupposing, best, costs);
}

bool LanePlacer::Promises(const Placement& other, const PlacementCosts& costs) const {
  return StepTimeOf(other, costs) * 100 <= StepTimeOf(now_, costs) * (100 - kGain);
}

std::optional<std::string> LanePlacer::Note(const std::vector<int64_t>& compute_ns,
                                            const std::vector<int64_t>& exchange_ns) {
  if (skipped_ < kSkipped) {
    ++skipped_;
    return std::nullopt;
  }
  const auto known = [](std::vector<int64_t> times) {
    for (int64_t& time : times) time = std::clamp<int64_t>(time, 0, kTimeMax);
    return times;
  };
  steps_.push_back({known(compute_ns), known(exchange_ns)});
  if (steps_.size() < window_) return std::nullopt;
  Measure();
  steps_.clear();
  return moves_ && state_ != State::kSettled ? Judge() : std::nullopt;
}

// Whoever computes longest waits for nothing but the links.
void LanePlacer::Measure() {
  std::vector<int64_t> waits;
  std::vector<int64_t> whole;
  for (const Step& step : steps_) {
    int64_t wait = 0;
    int64_t slowest = 0;
    for (size_t rank = 0; rank < now_.size(); ++rank) {
      if (now_[rank].empty() || step.compute_ns[rank] < slowest) continue;
      slowest = step.compute_ns[rank];
      wait = step.exchange_ns[rank];
    }
    waits.push_back(wait);
    whole.push_back(slowest + wait);
  }
  took_ns_ = Median(whole);
  if (now_.size() > 1) {
    costs_.link_ns = Median(waits) * static_cast<int64_t>(now_.size()) / BusiestLink(now_);
  }
  for (size_t rank = 0; rank < now_.size(); ++rank) {
    if (now_[rank].empty()) continue;
    std::vector<int64_t> own;
    for (const Step& step : steps_) own.push_back(step.compute_ns[rank]);
    costs_.lane_ns[rank] = Median(own) / now_[rank].count();
  }
}

std::optional<std::string> LanePlacer::Judge() {
  if (state_ == State::kSupposing && IsSlowerThanBefore()) {
    return Change(State::kMeasuring, Placement(before_),
                  " lanes instead of " + PlacementText(now_) + ": a step took " + Took(took_ns_) +
                      ", and should take " + Took(before_took_ns_));
  }
  if (state_ == State::kTrying && IsSlowerThanBefore()) {
    return Change(State::kSettled, Placement(before_),
                  " lanes again: a step took " + Took(took_ns_) + " instead of " +
                      Took(before_took_ns_));
  }
  state_ = State::kMeasuring;
  const PlacementCosts costs = Completed(costs_);
  const Placement best = BestPlacement(lanes_, costs);
  if (Promises(best, costs)) return Try(State::kTrying, best, costs);
  window_ = std::min(window_ * 2, kWindowMax);
  return std::nullopt;
}

bool LanePlacer::IsSlowerThanBefore() const {
  return took_ns_ * 100 > before_took_ns_ * (100 + kTolerance);
}

std::string LanePlacer::Try(State state, const Placement& other, const PlacementCosts& costs) {
  return Change(state, other,
                " lanes instead of " + PlacementText(now_) + ": a step should take " +
                    Took(StepTimeOf(other, costs)) + " instead of " +
                    Took(StepTimeOf(now_, costs)));
}

std::string LanePlacer::Change(State state, const Placement& to, const std::string& why) {
  const std::string text = PlacementText(to) + why;
  state_ = state;
  before_ = std::exchange(now_, to);
  before_took_ns_ = took_ns_;
  window_ = kFirstWindow;
  skipped_ = 0;
  return text;
}

}  // namespace keel
