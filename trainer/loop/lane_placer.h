// LanePlacer: decides at the steps of an epoch who computes which lanes, from what the members'
// votes say that their parts took.
//
// | it is | after so many steps | it becomes |
// |---|---|---|
// | new | none: by what is known, another placement promises 5 % or more | supposing that one |
// | new | none: it does not | measuring |
// | supposing | a step took longer than one of an even split should | measuring an even split |
// | supposing | it did not | measuring |
// | measuring | another placement promises 5 % or more | trying that one |
// | measuring | none does | measuring, over twice as many steps |
// | trying | that was slower than the one before | settled, with the one before |
// | trying | it was not | measuring |
// | settled | | settled, until the epoch ends |
//
// Promises   all members that are told the same times decide the same, at the same steps. The first
//            steps after a change do not count.
// Does not   move anything: lanes are computed anew in each step.
// Threads    one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/numerics/placement.h"

namespace keel {

class LanePlacer {
 public:
  enum class State { kSupposing, kMeasuring, kTrying, kSettled };

  // `moves`: false keeps an even split.
  LanePlacer(int world, int lanes, bool moves);

  // What is known from epochs before. Returns why the placement is no even split, if it is none.
  std::optional<std::string> Begin(const PlacementCosts& known);

  const Placement& now() const { return now_; }
  State state() const { return state_; }

  // By rank, of a step: what the lanes took, and how long the others' were waited for. Returns why
  // the placement changes, if it does.
  std::optional<std::string> Note(const std::vector<int64_t>& compute_ns,
                                  const std::vector<int64_t>& exchange_ns);
  // As measured last; 0 where nothing was.
  const PlacementCosts& costs() const { return costs_; }

 private:
  struct Step {
    std::vector<int64_t> compute_ns;
    std::vector<int64_t> exchange_ns;
  };

  bool Promises(const Placement& other, const PlacementCosts& costs) const;
  void Measure();
  std::optional<std::string> Judge();
  bool IsSlowerThanBefore() const;
  std::string Try(State state, const Placement& other, const PlacementCosts& costs);
  std::string Change(State state, const Placement& to, const std::string& why);

  const int lanes_;
  const bool moves_;
  Placement now_;
  State state_ = State::kMeasuring;
  size_t window_;                // steps from which the next decision is made
  int skipped_ = 0;              // of those that do not count
  std::vector<Step> steps_;
  PlacementCosts costs_;
  int64_t took_ns_ = 0;          // a step, in the last window; at first, what it should take
  Placement before_;             // while supposing or trying
  int64_t before_took_ns_ = 0;
};

}  // namespace keel
