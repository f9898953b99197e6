// PlotRun: what a run's log tells that can be drawn: loss, evaluation, parts of a step, workers,
// epochs, deaths.
// Promises   takes entries in the order of their file; memory does not grow with the run. Steps
//            that were made, lost and made once more are kept apart from those that count.
// Does not   read files, or draw.
// Threads    one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/keel/log_words.h"
#include "tools/keel/plot_series.h"

namespace keel {

// A membership epoch, or the death of a worker.
struct PlotMark {
  enum class Kind { kEpoch, kDeath };
  Kind kind = Kind::kEpoch;
  int64_t nanos = 0;
  std::optional<double> step;   // none: the log does not tell it
  double workers = 0;           // of an epoch
  std::string text;
};

struct PlacedMark {
  double x = 0;
  PlotMark mark;
};

inline constexpr size_t kPlotMarksMost = 20000;

// By time, and each membership epoch once: the launcher of each host logs it, at about one time.
std::vector<PlotMark> EachEpochOnce(std::vector<PlotMark> marks);

struct PlotCurve {
  explicit PlotCurve(PlotAxis axis) : kept(axis), redone(axis) {}
  PlotSeries kept;
  PlotSeries redone;   // of steps that were made once more
};

class PlotRun {
 public:
  PlotRun(std::string name, PlotAxis axis)
      : name(std::move(name)), loss(axis), evaluation(axis), workers(axis), axis_(axis) {}

  void Add(const LogWords& words);
  // Where marks, of this run's log or of another log of the same job, are on the axis; by place.
  std::vector<PlacedMark> Place(const std::vector<PlotMark>& of) const;
  // Seconds between a time and the run; 0: within it.
  double DistanceTo(int64_t nanos) const;

  bool has_steps() const { return steps > 0; }

  std::string name;
  PlotCurve loss;
  PlotCurve evaluation;
  PlotSeries workers;
  std::vector<std::string> part_names;      // in the order of the log
  std::map<std::string, PlotSeries> parts;  // milliseconds of a step
  std::vector<PlotMark> marks;
  std::vector<PlotPoint> no_numbers;        // losses that are none (NaN); `y` means nothing
  uint64_t marks_left_out = 0;
  uint64_t steps = 0;                       // entries
  uint64_t redone = 0;                      // entries of steps that the log has twice
  bool is_launchers = false;                // it tells of epochs or of the job

 private:
  void AddStep(const LogWords& words);
  void AddMark(const LogWords& words);
  PlotPoint PointAt(double step, const LogWords& words);

  const PlotAxis axis_;
  std::optional<int64_t> begun_;   // nanoseconds
  int64_t last_nanos_ = 0;
  double furthest_ = -1;           // step
  double evaluated_ = -1;          // step
};

}  // namespace keel
