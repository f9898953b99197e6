// Widths and heights are in units of a viewBox, which the browser stretches.
#include "elastic/status/charts.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "elastic/status/html.h"

namespace keel {
namespace {

constexpr double kWidth = 1000;
constexpr double kBarsTop = 18;
constexpr double kBarsHeight = 90;
constexpr double kMarksTop = 114;
constexpr double kMarkSize = 8;
constexpr double kAxis = 130;
constexpr double kHeight = 146;
constexpr int kTicks = 5;
constexpr size_t kBarsMax = 300;
constexpr size_t kMarksMax = 300;
constexpr size_t kTitleBytes = 160;   // for each reason

std::string Coordinate(double value) { return FixedText(value, 1); }

// Maps times to places.
struct Scale {
  int64_t begin = 0;
  int64_t end = 1;
  double X(int64_t at) const {
    const double part = static_cast<double>(at - begin) / static_cast<double>(end - begin);
    return kWidth * std::clamp(part, 0.0, 1.0);
  }
};

std::string Rect(std::string_view of, double x, double y, double width, double height,
                 const std::string& title) {
  return "<rect class=\"" + std::string(of) + "\" x=\"" + Coordinate(x) + "\" y=\"" +
         Coordinate(y) + "\" width=\"" + Coordinate(width) + "\" height=\"" + Coordinate(height) +
         "\"><title>" + title + "</title></rect>\n";
}

std::string TextAt(double x, double y, const char* of, const std::string& text) {
  return "<text class=\"" + std::string(of) + "\" x=\"" + Coordinate(x) + "\" y=\"" +
         Coordinate(y) + "\">" + text + "</text>\n";
}

// The class that gives an epoch its colour.
const char* ClassOf(const StatusEpoch& epoch) {
  if (epoch.ended_nanos == 0) return "running";
  const bool in_order = epoch.end == "boundary" || epoch.end == "end" || epoch.end == "left" ||
                        epoch.end == "joined";
  return in_order ? "ended" : "broken";
}

std::string TitleOf(const StatusEpoch& epoch, int64_t until) {
  std::string title = "epoch " + std::to_string(epoch.number) + ": " +
                      std::to_string(epoch.workers) + " workers on " +
                      std::to_string(epoch.hosts) + " hosts, from " +
                      TimeOfDayText(epoch.begun_nanos) + " for " +
                      DurationText(Duration(std::max<int64_t>(until - epoch.begun_nanos, 0))) +
                      "; " + HtmlText(epoch.reason, kTitleBytes);
  if (epoch.ended_nanos != 0) {
    title += "; ended: " + HtmlText(epoch.end + ", " + epoch.end_reason, kTitleBytes);
  }
  return title;
}

std::string Bars(const JobStatus& status, const Scale& scale, size_t first) {
  const auto& epochs = status.epochs();
  int most = 1;
  for (size_t i = first; i < epochs.size(); ++i) most = std::max(most, epochs[i].workers);
  std::string bars;
  for (size_t i = first; i < epochs.size(); ++i) {
    const StatusEpoch& epoch = epochs[i];
    const int64_t until = epoch.ended_nanos == 0 ? scale.end : epoch.ended_nanos;
    const double x = scale.X(epoch.begun_nanos);
    const double width = std::max(scale.X(until) - x, 1.0);
    const double height = kBarsHeight * epoch.workers / most;
    bars += Rect(ClassOf(epoch), x, kBarsTop + kBarsHeight - height, width, height,
                 TitleOf(epoch, until));
    const std::string name = std::to_string(epoch.number);
    const double name_width = 9.0 * static_cast<double>(name.size()) + 8;
    if (width > name_width) {
      bars += TextAt(x + width / 2, kBarsTop + kBarsHeight - 6, "inside", name);
    }
  }
  return bars + TextAt(kWidth, kBarsTop - 6, "end", std::to_string(most) + " workers");
}

// Null: such events have no mark, as the bars show them.
const char* MarkOf(const StatusEvent& event) {
  for (const char* kind : {"death", "host-gone", "stop", "saved", "notice"}) {
    if (event.kind == kind) return kind;
  }
  return nullptr;
}

std::string Marks(const JobStatus& status, const Scale& scale) {
  std::string marks;
  size_t count = 0;
  const auto& events = status.events();
  for (auto event = events.rbegin(); event != events.rend() && count < kMarksMax; ++event) {
    const char* const mark = MarkOf(*event);
    if (mark == nullptr || event->wall_nanos < scale.begin) continue;
    ++count;
    const double x = std::min(scale.X(event->wall_nanos), kWidth - kMarkSize);
    marks += Rect(mark, x, kMarksTop, kMarkSize, kMarkSize,
                  TimeOfDayText(event->wall_nanos) + " " + HtmlText(event->kind) + ": " +
                      HtmlText(event->text, kTitleBytes));
  }
  return marks;
}

std::string Axis(const Scale& scale) {
  std::string axis = "<line x1=\"0\" x2=\"1000\" y1=\"" + Coordinate(kAxis - 4) + "\" y2=\"" +
                     Coordinate(kAxis - 4) + "\"/>\n";
  for (int tick = 0; tick <= kTicks; ++tick) {
    const int64_t at = scale.begin + (scale.end - scale.begin) / kTicks * tick;
    const char* const anchor = tick == 0 ? "start" : tick == kTicks ? "end" : "middle";
    axis += TextAt(kWidth * tick / kTicks, kAxis + 10, anchor, TimeOfDayText(at));
  }
  return axis;
}

}  // namespace

// --- Curves ---

namespace {

constexpr double kCurveTop = 8;
constexpr double kCurveHeight = 100;

// One line for each stretch of points that have a value.
std::string Lines(const std::vector<StatusPoint>& points, const Scale& scale,
                  std::optional<double> StatusPoint::*value, double least, double most) {
  std::string lines;
  std::string open;
  const auto close = [&] {
    if (!open.empty()) lines += "<polyline points=\"" + open + "\"/>\n";
    open.clear();
  };
  for (const StatusPoint& point : points) {
    if (!(point.*value)) {
      close();
      continue;
    }
    const double part = most > least ? (*(point.*value) - least) / (most - least) : 0.5;
    open += (open.empty() ? "" : " ") + Coordinate(scale.X(point.wall_nanos)) + "," +
            Coordinate(kCurveTop + kCurveHeight * (1 - part));
  }
  close();
  return lines;
}

std::string Curve(const JobStatus& status, int64_t now_nanos, const char* name,
                  std::optional<double> StatusPoint::*value) {
  std::optional<double> least, most;
  for (const StatusPoint& point : status.points()) {
    if (!(point.*value)) continue;
    least = std::min(least.value_or(*(point.*value)), *(point.*value));
    most = std::max(most.value_or(*(point.*value)), *(point.*value));
  }
  const Scale scale{status.job().started_nanos,
                    std::max(now_nanos, status.job().started_nanos + 1)};
  std::string svg = "<svg class=\"curve\" viewBox=\"0 0 " + Coordinate(kWidth) + " " +
                    Coordinate(kHeight) + "\" role=\"img\" aria-label=\"" + name + "\">\n" +
                    Axis(scale);
  if (least) {
    svg += Lines(status.points(), scale, value, *least, *most) +
           TextAt(2, kCurveTop + 8, "start", ShortText(*most)) +
           TextAt(2, kCurveTop + kCurveHeight, "start", ShortText(*least));
  }
  return svg + "</svg>\n";
}

// The steps made since a while ago; if there were none, all steps.
struct NewestSteps {
  int64_t steps = 0;
  std::vector<std::pair<std::string, double>> millis;   // of one step, by part
};

NewestSteps NewestOf(const StatusTrend& trend) {
  const FiguresMessage& now = trend.now.told;
  const bool any = now.steps > trend.since.steps && now.parts.size() == trend.since.parts.size();
  NewestSteps newest{any ? now.steps - trend.since.steps : now.steps, {}};
  for (size_t i = 0; i < now.parts.size(); ++i) {
    const int64_t nanos = now.parts[i].second - (any ? trend.since.parts[i].second : 0);
    const double steps = static_cast<double>(std::max<int64_t>(newest.steps, 1));
    newest.millis.emplace_back(now.parts[i].first,
                               static_cast<double>(std::max<int64_t>(nanos, 0)) / 1e6 / steps);
  }
  return newest;
}

constexpr size_t kPartColours = 8;
std::string ClassOfPart(size_t index) { return "p" + std::to_string(index % kPartColours); }

}  // namespace

std::string LossSvg(const JobStatus& status, int64_t now_nanos) {
  return Curve(status, now_nanos, "loss", &StatusPoint::loss);
}

std::string ThroughputSvg(const JobStatus& status, int64_t now_nanos) {
  return Curve(status, now_nanos, "samples per second", &StatusPoint::samples_per_s);
}

double StepMillis(const StatusTrend& trend) {
  double sum = 0;
  for (const auto& [name, millis] : NewestOf(trend).millis) sum += millis;
  return sum;
}

std::string PartsSvg(const StatusTrend& trend, double longest_ms) {
  constexpr double kBarHeight = 18;
  std::string svg = "<svg viewBox=\"0 0 1000 18\" role=\"img\" aria-label=\"step time\">\n";
  double x = 0;
  size_t index = 0;
  for (const auto& [name, millis] : NewestOf(trend).millis) {
    const double width = longest_ms > 0 ? kWidth * millis / longest_ms : 0;
    const std::string title = HtmlText(name) + " " + FixedText(millis, 3) + " ms";
    svg += Rect(ClassOfPart(index++), x, 0, width, kBarHeight, title);
    x += width;
  }
  return svg + "</svg>";
}

std::string PartsKeySvg(const StatusTrend& trend) {
  std::string key;
  size_t index = 0;
  for (const auto& [name, nanos] : trend.now.told.parts) {
    key += "<svg class=\"key\" viewBox=\"0 0 10 10\">" +
           Rect(ClassOfPart(index++), 0, 0, 10, 10, HtmlText(name)) + "</svg>" + HtmlText(name) +
           "\n";
  }
  return key;
}

std::string TimelineSvg(const JobStatus& status, int64_t now_nanos) {
  const auto& epochs = status.epochs();
  const size_t first = epochs.size() > kBarsMax ? epochs.size() - kBarsMax : 0;
  const bool some_left_out = status.epochs_total() > static_cast<int64_t>(epochs.size() - first);
  Scale scale;
  scale.begin = some_left_out ? epochs[first].begun_nanos : status.job().started_nanos;
  scale.end = std::max(now_nanos, scale.begin + 1);
  return "<svg class=\"timeline\" viewBox=\"0 0 " + Coordinate(kWidth) + " " +
         Coordinate(kHeight) + "\" role=\"img\" aria-label=\"epochs on a time line\">\n" +
         Bars(status, scale, first) + Marks(status, scale) + Axis(scale) + "</svg>\n";
}

}  // namespace keel
