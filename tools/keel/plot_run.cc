// Sorts entries by their event.
#include "tools/keel/plot_run.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kPartsMost = 32;
constexpr size_t kNoNumbersMost = 1000;
constexpr double kNanosPerSecond = 1e9;
constexpr int64_t kSameEpochNanos = 5'000'000'000;   // clocks of hosts differ

std::optional<double> NumberIn(const LogWords& words, const char* name) {
  const auto found = words.fields.find(name);
  if (found == words.fields.end() || !found->is_number()) return std::nullopt;
  const double number = found->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::string TextIn(const LogWords& words, const char* name) {
  const auto text = FieldOr<std::string>(words.fields, name, "");
  return text.ok() ? *text : "";
}

}  // namespace

std::vector<PlotMark> EachEpochOnce(std::vector<PlotMark> marks) {
  std::stable_sort(marks.begin(), marks.end(),
                   [](const PlotMark& a, const PlotMark& b) { return a.nanos < b.nanos; });
  std::map<std::string, int64_t> told;   // when, by number and reason
  std::erase_if(marks, [&](const PlotMark& mark) {
    if (mark.kind != PlotMark::Kind::kEpoch) return false;
    const auto [epoch, is_new] = told.emplace(mark.text, mark.nanos);
    if (!is_new && mark.nanos - epoch->second <= kSameEpochNanos) return true;
    epoch->second = mark.nanos;
    return false;
  });
  return marks;
}

PlotPoint PlotRun::PointAt(double step, const LogWords& words) {
  if (words.nanos) {
    last_nanos_ = *words.nanos;
    if (!begun_) begun_ = last_nanos_;
  }
  const int64_t since = begun_ ? last_nanos_ - *begun_ : 0;
  return {step, static_cast<double>(since) / kNanosPerSecond, 0};
}

void PlotRun::AddStep(const LogWords& words) {
  const auto step = NumberIn(words, "step");
  if (!step || *step < 0) return;
  ++steps;
  if (*step <= furthest_) {
    ++redone;
    loss.kept.MoveFrom(*step, &loss.redone);
    evaluation.kept.MoveFrom(*step, &evaluation.redone);
  }
  furthest_ = *step;
  PlotPoint point = PointAt(*step, words);
  const auto add = [&](PlotSeries& series, double y) {
    point.y = y;
    series.Add(point);
  };
  if (const auto value = NumberIn(words, "loss")) {
    add(loss.kept, *value);
  } else if (no_numbers.size() < kNoNumbersMost) {
    no_numbers.push_back(point);
  }
  if (const auto count = NumberIn(words, "workers")) add(workers, *count);
  for (const auto& [name, value] : words.fields.items()) {
    if (!name.ends_with("_ms") || !value.is_number()) continue;
    const std::string part = name.substr(0, name.size() - 3);
    auto place = parts.find(part);
    if (place == parts.end()) {
      if (parts.size() >= kPartsMost) continue;
      part_names.push_back(part);
      place = parts.emplace(part, PlotSeries(axis_)).first;
    }
    add(place->second, value.get<double>());
  }
}

void PlotRun::AddMark(const LogWords& words) {
  PlotMark mark;
  mark.nanos = *words.nanos;
  if (words.event == "worker-died") {
    mark.kind = PlotMark::Kind::kDeath;
    const auto step = NumberIn(words, "step");
    if (step && *step >= 0) mark.step = step;
    mark.text = "rank " + NumberText(NumberIn(words, "rank").value_or(-1)) + ": " +
                TextIn(words, "how");
  } else {
    mark.workers = NumberIn(words, "workers").value_or(0);
    mark.text = "epoch " + NumberText(NumberIn(words, "epoch").value_or(0)) + ": " +
                TextIn(words, "reason");
  }
  if (marks.size() < kPlotMarksMost) {
    marks.push_back(std::move(mark));
  } else {
    ++marks_left_out;
  }
}

void PlotRun::Add(const LogWords& words) {
  if (words.event == "step") AddStep(words);
  if (words.event == "job-started") is_launchers = true;
  if (words.event == "evaluation") {
    const auto step = NumberIn(words, "step");
    const auto value = NumberIn(words, "value");
    if (!step || !value) return;
    // Also where no step was logged between the two.
    if (*step <= evaluated_) evaluation.kept.MoveFrom(*step, &evaluation.redone);
    evaluated_ = *step;
    PlotPoint point = PointAt(*step, words);
    point.y = *value;
    evaluation.kept.Add(point);
  }
  if (words.nanos && (words.event == "worker-died" || words.event == "epoch")) {
    is_launchers = true;
    AddMark(words);
  }
}

double PlotRun::DistanceTo(int64_t nanos) const {
  if (!begun_) return INFINITY;
  const int64_t outside = std::max({int64_t{0}, *begun_ - nanos, nanos - last_nanos_});
  return static_cast<double>(outside) / kNanosPerSecond;
}

std::vector<PlacedMark> PlotRun::Place(const std::vector<PlotMark>& of) const {
  std::vector<PlacedMark> placed;
  if (!begun_) return placed;
  std::vector<PlotPoint> logged;   // by time
  for (const PlotSeries* const series : {&loss.kept, &loss.redone}) {
    for (const auto& stretch : series->Stretches()) {
      logged.insert(logged.end(), stretch.begin(), stretch.end());
    }
  }
  std::sort(logged.begin(), logged.end(),
            [](const PlotPoint& a, const PlotPoint& b) { return a.seconds < b.seconds; });
  for (const PlotMark& mark : of) {
    const double seconds = static_cast<double>(mark.nanos - *begun_) / kNanosPerSecond;
    const auto later = std::upper_bound(
        logged.begin(), logged.end(), seconds,
        [](double when, const PlotPoint& point) { return when < point.seconds; });
    const double newest = later == logged.begin() ? 0 : std::prev(later)->step;
    const double x = axis_ == PlotAxis::kTime ? std::max(seconds, 0.0) : mark.step.value_or(newest);
    placed.push_back({x, mark});
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedMark& a, const PlacedMark& b) { return a.x < b.x; });
  return placed;
}

}  // namespace keel
