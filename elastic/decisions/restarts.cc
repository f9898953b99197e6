// Counts failures in a sliding window; doubles the delay of a seat that fails at once.
#include "elastic/decisions/restarts.h"

#include <algorithm>
#include <vector>

namespace keel {
namespace {

constexpr Duration kDelayFirst = std::chrono::milliseconds(100);
constexpr Duration kDelayMax = std::chrono::seconds(5);

}  // namespace

RestartDecision DecideRestart(std::span<const TimePoint> failures, const RestartPolicy& policy,
                              TimePoint now) {
  std::vector<TimePoint> counted;
  for (const TimePoint failure : failures) {
    if (policy.window == Duration(0) || now - failure < policy.window) counted.push_back(failure);
  }
  std::sort(counted.begin(), counted.end());
  RestartDecision decision;
  decision.spent = static_cast<int>(counted.size());
  decision.go_on = decision.spent <= policy.restarts_max;
  if (!decision.go_on && policy.window > Duration(0)) {
    // Once this failure is forgotten, no more than restarts_max are left.
    decision.again = counted[decision.spent - policy.restarts_max - 1] + policy.window;
  }
  decision.reason = std::to_string(decision.spent) +
                    (decision.spent == 1 ? " failure" : " failures") +
                    (policy.window > Duration(0) ? " in the last " + DurationText(policy.window)
                                                 : std::string()) +
                    ", " + std::to_string(policy.restarts_max) + " allowed";
  return decision;
}

Duration RestartDelay(int failures_in_a_row) {
  Duration delay{0};
  for (int i = 1; i < failures_in_a_row && delay < kDelayMax; ++i) {
    delay = i == 1 ? kDelayFirst : std::min(2 * delay, kDelayMax);
  }
  return delay;
}

}  // namespace keel
