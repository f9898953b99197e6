// Axes of a plot: where a value is, and which values are written beside it.
// Threads    pure functions and plain values.
#pragma once

#include <string>
#include <vector>

namespace keel {

// Maps values between `least` and `most` to places between `from` and `to`; what lies outside goes
// to the nearer end. `most` is greater than `least`; both are positive where it is logarithmic.
struct PlotScale {
  double least = 0;
  double most = 1;
  double from = 0;
  double to = 1;
  bool is_logarithmic = false;

  double At(double value) const;
};

struct PlotTick {
  double at = 0;
  std::string text;
};

// About `count` round numbers within; never more than 20.
std::vector<PlotTick> NumberTicks(double least, double most, int count);
// Powers of ten, and where there are few of them, their doubles and fives; none where not both are
// positive and finite.
std::vector<PlotTick> PowerTicks(double least, double most);
// Round times: "30 s", "5 min", "2 h", "3 d".
std::vector<PlotTick> TimeTicks(double least_seconds, double most_seconds, int count);

}  // namespace keel
