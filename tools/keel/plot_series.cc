// Buckets by their number, which is halved when they become too many.
#include "tools/keel/plot_series.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace keel {
namespace {

constexpr size_t kBucketsMost = 1024;
constexpr double kLeastStep = 1;
constexpr double kLeastSeconds = 0.001;

}  // namespace

PlotSeries::PlotSeries(PlotAxis axis)
    : axis_(axis), width_(axis == PlotAxis::kStep ? kLeastStep : kLeastSeconds) {}

void PlotSeries::Add(const PlotPoint& point) {
  const double at = std::clamp(std::floor(point.X(axis_) / width_), 0.0, 1e15);
  Put({static_cast<int64_t>(at), point, point, point, point, point.step, point.y, point.X(axis_),
       1, std::exchange(is_interrupted_, false)});
}

void PlotSeries::Merge(const Bucket& from, Bucket* into) {
  into->last = from.last;
  if (from.least.y < into->least.y) into->least = from.least;
  if (from.greatest.y > into->greatest.y) into->greatest = from.greatest;
  into->step_least = std::min(into->step_least, from.step_least);
  into->sum += from.sum;
  into->sum_x += from.sum_x;
  into->count += from.count;
}

void PlotSeries::Put(Bucket bucket) {
  const auto place = std::lower_bound(
      buckets_.begin(), buckets_.end(), bucket.number,
      [](const Bucket& one, int64_t number) { return one.number < number; });
  if (place != buckets_.end() && place->number == bucket.number) {
    Merge(bucket, &*place);
  } else {
    buckets_.insert(place, bucket);
  }
  while (buckets_.size() > kBucketsMost) Widen();
}

void PlotSeries::Widen() {
  width_ *= 2;
  std::vector<Bucket> wider;
  for (Bucket& bucket : buckets_) {
    bucket.number /= 2;
    if (!wider.empty() && wider.back().number == bucket.number) {
      Merge(bucket, &wider.back());
    } else {
      wider.push_back(bucket);
    }
  }
  buckets_ = std::move(wider);
}

void PlotSeries::MoveFrom(double step, PlotSeries* to) {
  while (to->width_ < width_) to->Widen();
  const auto is_kept = [&](const Bucket& bucket) { return bucket.step_least < step; };
  const auto moved = std::stable_partition(buckets_.begin(), buckets_.end(), is_kept);
  bool is_first = true;
  for (auto bucket = moved; bucket != buckets_.end(); ++bucket) {
    Bucket copy = *bucket;
    copy.number = static_cast<int64_t>(
        std::floor(static_cast<double>(copy.number) * width_ / to->width_));
    copy.begins = std::exchange(is_first, false) || copy.begins;
    to->Put(copy);
  }
  buckets_.erase(moved, buckets_.end());
  is_interrupted_ = axis_ == PlotAxis::kTime;
}

std::vector<std::vector<PlotPoint>> PlotSeries::Stretches() const {
  std::vector<std::vector<PlotPoint>> stretches;
  for (const Bucket& bucket : buckets_) {
    if (stretches.empty() || bucket.begins) stretches.emplace_back();
    std::vector<PlotPoint> points = {bucket.first, bucket.least, bucket.greatest, bucket.last};
    std::stable_sort(points.begin(), points.end(), [&](const PlotPoint& a, const PlotPoint& b) {
      return a.X(axis_) < b.X(axis_);
    });
    for (const PlotPoint& point : points) {
      auto& stretch = stretches.back();
      if (stretch.empty() || !(stretch.back() == point)) stretch.push_back(point);
    }
  }
  return stretches;
}

std::vector<std::vector<PlotPoint>> StackedMeans(std::vector<PlotSeries> layers) {
  double width = 0;
  for (const PlotSeries& layer : layers) width = std::max(width, layer.width_);
  std::map<int64_t, PlotSeries::Bucket> fullest;   // by place
  for (PlotSeries& layer : layers) {
    while (layer.width_ < width) layer.Widen();
    for (const PlotSeries::Bucket& bucket : layer.buckets_) {
      const auto [place, is_new] = fullest.emplace(bucket.number, bucket);
      if (!is_new && bucket.count > place->second.count) place->second = bucket;
    }
  }
  std::vector<PlotPoint> sums;
  for (const auto& [number, bucket] : fullest) {
    PlotPoint& sum = sums.emplace_back(bucket.first);
    const double middle = bucket.sum_x / static_cast<double>(bucket.count);
    (layers.front().axis_ == PlotAxis::kStep ? sum.step : sum.seconds) = middle;
    sum.y = 0;
  }
  std::vector<std::vector<PlotPoint>> stacked;
  for (const PlotSeries& layer : layers) {
    auto bucket = layer.buckets_.begin();
    size_t at = 0;
    for (const auto& [number, full] : fullest) {
      if (bucket != layer.buckets_.end() && bucket->number == number) {
        sums[at].y += bucket->sum / static_cast<double>(full.count);
        ++bucket;
      }
      ++at;
    }
    stacked.push_back(sums);
  }
  return stacked;
}

}  // namespace keel
