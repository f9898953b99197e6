// Round numbers are 1, 2 and 5 times a power of ten; round times are what clocks show.
#include "tools/keel/plot_axis.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kTicksMost = 20;

// The number without the noise of its computation: 0.30000000000000004 is 0.3.
std::string TickText(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", std::fabs(number) < 1e-300 ? 0.0 : number);
  return text;
}

std::vector<double> Multiples(double least, double most, double of) {
  std::vector<double> values;
  for (double index = std::ceil(least / of - 1e-9);
       index * of <= most + of * 1e-9 && values.size() < kTicksMost; ++index) {
    values.push_back(index * of);
  }
  return values;
}

std::string TimeTickText(double seconds) {
  if (seconds == 0) return "0";
  struct Unit {
    double seconds;
    const char* name;
  };
  for (const Unit unit : {Unit{86400, " d"}, Unit{3600, " h"}, Unit{60, " min"}}) {
    if (std::fmod(seconds, unit.seconds) == 0) return TickText(seconds / unit.seconds) + unit.name;
  }
  return TickText(seconds) + " s";
}

}  // namespace

double PlotScale::At(double value) const {
  if (std::isnan(value)) return from;
  const double inside = std::clamp(value, least, most);
  const auto log = [](double number) { return std::log(number); };
  const double part = is_logarithmic ? (log(inside) - log(least)) / (log(most) - log(least))
                                     : (inside - least) / (most - least);
  return from + (to - from) * part;
}

std::vector<PlotTick> NumberTicks(double least, double most, int count) {
  const double wanted = (most - least) / std::max(count, 1);
  if (!(wanted > 0) || !std::isfinite(wanted)) return {{least, TickText(least)}};
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  double distance = 10 * power;
  for (const double factor : {5, 2, 1}) {
    if (factor * power >= wanted) distance = factor * power;
  }
  std::vector<PlotTick> ticks;
  for (const double value : Multiples(least, most, distance)) {
    ticks.push_back({value, TickText(value)});
  }
  return ticks;
}

std::vector<PlotTick> PowerTicks(double least, double most) {
  if (!(least > 0) || !(most >= least) || !std::isfinite(most)) return {};
  const int first = static_cast<int>(std::floor(std::log10(least)));
  const int last = static_cast<int>(std::ceil(std::log10(most)));
  const int distance = (last - first) / 10 + 1;
  const std::vector<double> factors = last - first <= 2 ? std::vector<double>{1, 2, 5}
                                                        : std::vector<double>{1};
  std::vector<PlotTick> ticks;
  for (int power = first; power <= last; power += distance) {
    for (const double factor : factors) {
      const double value = factor * std::pow(10, power);
      if (value < least || value > most) continue;
      ticks.push_back({value, TickText(value)});
    }
  }
  return ticks;
}

std::vector<PlotTick> TimeTicks(double least_seconds, double most_seconds, int count) {
  const double wanted = (most_seconds - least_seconds) / std::max(count, 1);
  double distance = 0;
  for (const double round : {1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800,
                             21600, 43200, 86400, 172800, 432000, 864000, 1728000, 8640000}) {
    if (distance == 0 && round >= wanted) distance = round;
  }
  std::vector<PlotTick> ticks;
  if (wanted < 1 || distance == 0) {
    for (const PlotTick& tick : NumberTicks(least_seconds, most_seconds, count)) {
      ticks.push_back({tick.at, tick.text + " s"});
    }
    return ticks;
  }
  for (const double value : Multiples(least_seconds, most_seconds, distance)) {
    ticks.push_back({value, TimeTickText(value)});
  }
  return ticks;
}

}  // namespace keel
