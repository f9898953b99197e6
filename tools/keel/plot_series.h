// PlotSeries: a curve of any length in bounded memory, as fine as a screen can show it.
// Promises   keeps at most 1024 buckets of equal width, and of each the first, last, least and
//            greatest point: no peak is lost, and a curve of fewer points is kept whole as far as
//            they lie in different buckets. Widths double as the curve grows.
// Does not   keep what lies left of its origin apart: that is in the first bucket.
// Threads    one at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace keel {

enum class PlotAxis { kStep, kTime };

struct PlotPoint {
  double step = 0;
  double seconds = 0;   // since the run began
  double y = 0;
  double X(PlotAxis axis) const { return axis == PlotAxis::kStep ? step : seconds; }
  bool operator==(const PlotPoint&) const = default;
};

class PlotSeries {
 public:
  explicit PlotSeries(PlotAxis axis);

  void Add(const PlotPoint& point);
  // Moves all buckets that hold only steps from `step` on: they were made once more.
  void MoveFrom(double step, PlotSeries* to);

  bool empty() const { return buckets_.empty(); }
  // By x; a new stretch begins where the curve was interrupted.
  std::vector<std::vector<PlotPoint>> Stretches() const;
  // Of each layer what it and those before it add up to: means of buckets, at the middle points of
  // the fullest ones. What an entry lacks is 0, so each layer has all places.
  friend std::vector<std::vector<PlotPoint>> StackedMeans(std::vector<PlotSeries> layers);

 private:
  struct Bucket {
    int64_t number = 0;         // its place on the axis, in widths
    PlotPoint first, last, least, greatest;
    double step_least = 0;
    double sum = 0;
    double sum_x = 0;
    uint64_t count = 0;
    bool begins = false;        // nothing leads here from the bucket before it
  };
  static void Merge(const Bucket& from, Bucket* into);
  void Put(Bucket bucket);
  void Widen();

  PlotAxis axis_;
  double width_;
  bool is_interrupted_ = false;
  std::vector<Bucket> buckets_;   // by number; none is empty
};

std::vector<std::vector<PlotPoint>> StackedMeans(std::vector<PlotSeries> layers);

}  // namespace keel
