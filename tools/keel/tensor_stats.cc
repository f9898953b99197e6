// One pass for the ends and the mean, one for the histogram.
#include "tools/keel/tensor_stats.h"

#include <algorithm>
#include <cmath>

#include "tools/keel/numbers.h"

namespace keel {
namespace {

template <class Use>
Status ForEachNumber(const Checkpoint& checkpoint, size_t tensor, Progress* progress,
                     const Use& use) {
  const Dtype lane = LaneDtype(checkpoint.layout().tensors()[tensor].spec.dtype);
  const size_t step = DtypeBytes(lane);
  return WalkTensor(checkpoint, tensor, progress,
                    [&](uint64_t, std::span<const std::byte> bytes) -> Status {
                      for (size_t at = 0; at < bytes.size(); at += step) {
                        use(NumberAt(lane, bytes.data() + at));
                      }
                      return Ok();
                    });
}

}  // namespace

Result<TensorStats> ComputeStats(const Checkpoint& checkpoint, size_t tensor, Progress* progress) {
  TensorStats stats;
  long double sum = 0;   // which the largest numbers of f64 do not overflow
  KEEL_TRY(ForEachNumber(checkpoint, tensor, progress, [&](double number) {
    ++stats.count;
    if (std::isnan(number)) {
      ++stats.nan_count;
    } else if (std::isinf(number)) {
      ++stats.inf_count;
    } else {
      const bool is_first = stats.finite_count() == 1;
      stats.least = is_first ? number : std::min(stats.least, number);
      stats.most = is_first ? number : std::max(stats.most, number);
      sum += number;
    }
  }));
  if (stats.finite_count() == 0) return stats;
  stats.mean = static_cast<double>(sum / static_cast<long double>(stats.finite_count()));
  // Halved, since the range of f64 may be beyond f64.
  const double half_range = stats.most / 2 - stats.least / 2;
  KEEL_TRY(ForEachNumber(checkpoint, tensor, progress, [&](double number) {
    if (!std::isfinite(number)) return;
    const double share = half_range > 0 ? (number / 2 - stats.least / 2) / half_range : 0;
    const auto bin = static_cast<size_t>(share * kHistogramBins);
    ++stats.histogram[std::min(bin, kHistogramBins - 1)];
  }));
  return stats;
}

Json StatsJson(const TensorStats& stats) {
  Json json = {{"count", stats.count}, {"nan_count", stats.nan_count},
               {"inf_count", stats.inf_count}};
  if (stats.finite_count() == 0) return json;
  json["min"] = stats.least;
  json["max"] = stats.most;
  json["mean"] = stats.mean;
  json["histogram"] = stats.histogram;
  return json;
}

std::string HistogramText(const TensorStats& stats) {
  static constexpr std::string_view kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const uint64_t highest = *std::max_element(stats.histogram.begin(), stats.histogram.end());
  if (highest == 0) return "";
  std::string text;
  for (const uint64_t count : stats.histogram) {
    // What is there is seen, however little.
    const double height = 8.0 * static_cast<double>(count) / static_cast<double>(highest);
    text += kBars[static_cast<size_t>(std::ceil(height))];
  }
  return text;
}

}  // namespace keel
