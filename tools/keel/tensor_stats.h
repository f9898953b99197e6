// TensorStats: what the numbers of a tensor are like.
// Promises   looks at verified bytes only, with one frame in memory; reads the tensor twice.
// Does not   keep whole numbers beyond 2^53 exact. Of complex numbers both parts count.
// Threads    one at a time.
#pragma once

#include <array>

#include "base/json.h"
#include "tools/keel/tensor_walk.h"

namespace keel {

inline constexpr size_t kHistogramBins = 10;

struct TensorStats {
  uint64_t count = 0;  // of numbers
  uint64_t nan_count = 0;
  uint64_t inf_count = 0;
  // Of finite numbers; meaningless where there are none.
  double least = 0;
  double most = 0;
  double mean = 0;
  std::array<uint64_t, kHistogramBins> histogram{};  // equal bins from least to most

  uint64_t finite_count() const { return count - nan_count - inf_count; }
};

Result<TensorStats> ComputeStats(const Checkpoint& checkpoint, size_t tensor, Progress* progress);
Json StatsJson(const TensorStats& stats);
// The histogram as bars: "▁▃█▃▁"; empty where there are no finite numbers.
std::string HistogramText(const TensorStats& stats);

}  // namespace keel
