// Panels below each other on one axis: loss, evaluation, parts of a step, workers.
#include "tools/keel/plot_svg.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "tools/keel/plot_axis.h"

namespace keel {
namespace {

constexpr double kPlotWidth = 960;
constexpr double kPlotLeft = 74;
constexpr double kPlotRight = 940;
constexpr double kPanelGap = 44;
constexpr double kLegendLine = 18;
constexpr size_t kColours = 8;
constexpr size_t kTitleMost = 400;   // bytes
constexpr int kTicksAcross = 8;
// Of the range of a panel: far enough from the ends of double for all that is computed of it.
constexpr double kGreatest = 1e300;
constexpr double kLeastOfPowers = 1e-300;

constexpr std::string_view kPlotStyle = R"css(
.paper { fill: #ffffff; } .frame { fill: none; stroke: #b9c1cc; } .grid { stroke: #e4e8ee; }
text { font: 12px system-ui, sans-serif; fill: #49525f; }
.title { font-weight: 600; fill: #1c2430; }
.right { text-anchor: end; } .middle { text-anchor: middle; }
.line { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
.redone { stroke-width: 1.2; stroke-dasharray: 4 3; opacity: .55; }
.death { stroke: #d4483b; stroke-width: 1.2; stroke-dasharray: 2 3; }
.cross { stroke: #d4483b; stroke-width: 2.2; fill: none; } .lost { fill: #d4483b; }
.epoch { stroke: #8592a5; stroke-width: 1; } .area { stroke: none; opacity: .85; }
.c0 { stroke: #2f7de1; } .c1 { stroke: #e07b1f; } .c2 { stroke: #2e9e6b; } .c3 { stroke: #b24fa0; }
.c4 { stroke: #b8920a; } .c5 { stroke: #d4483b; } .c6 { stroke: #15a0a8; } .c7 { stroke: #8a6d5a; }
.p0 { fill: #4e79a7; } .p1 { fill: #59a14f; } .p2 { fill: #8cd17d; } .p3 { fill: #f28e2b; }
.p4 { fill: #edc948; } .p5 { fill: #b07aa1; } .p6 { fill: #ff9da7; } .p7 { fill: #9c755f; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #12161d; } .frame { stroke: #46505f; } .grid { stroke: #262e39; }
  text { fill: #9aa5b5; } .title { fill: #e6eaf0; }
  .c0 { stroke: #5fa2f2; } .c1 { stroke: #f29a4a; } .c2 { stroke: #4cc38a; }
  .c3 { stroke: #d67cc5; } .c4 { stroke: #dcb93b; } .c5 { stroke: #ef7368; }
  .c6 { stroke: #3fc6ce; } .c7 { stroke: #b5947f; } .death, .cross { stroke: #f0675a; }
}
)css";

std::string Xml(std::string_view text) {
  std::string printable = Printable(Beginning(text, kTitleMost));
  for (const char* const banned : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {   // U+FFFE and U+FFFF
    for (size_t at = printable.find(banned); at != printable.npos; at = printable.find(banned)) {
      printable.replace(at, 3, "\xEF\xBF\xBD");   // U+FFFD: a replaced character
    }
  }
  std::string safe;
  for (const char c : printable) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string Place(double value) { return FixedText(value, 1); }

std::string Words(double x, double y, const std::string& of, const std::string& text) {
  return "<text class=\"" + of + "\" x=\"" + Place(x) + "\" y=\"" + Place(y) + "\">" + Xml(text) +
         "</text>\n";
}

std::string Stroke(const std::string& of, double x1, double y1, double x2, double y2,
                   const std::string& title = "") {
  const std::string start = "<line class=\"" + of + "\" x1=\"" + Place(x1) + "\" y1=\"" +
                            Place(y1) + "\" x2=\"" + Place(x2) + "\" y2=\"" + Place(y2) + "\"";
  if (title.empty()) return start + "/>\n";
  return start + "><title>" + Xml(title) + "</title></line>\n";
}

std::string ColourOf(size_t run) { return "c" + std::to_string(run % kColours); }
std::string ColourOfPart(size_t part) { return "p" + std::to_string(part % kColours); }

// The least and greatest of what was seen.
struct Span {
  double least = INFINITY;
  double most = -INFINITY;
  void Take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool any() const { return least <= most; }
};

std::string Polyline(const std::string& of, const std::vector<PlotPoint>& points, PlotAxis axis,
                     const PlotScale& x, const PlotScale& y) {
  std::string places;
  for (const PlotPoint& point : points) {
    places += (places.empty() ? "" : " ") + Place(x.At(point.X(axis))) + "," + Place(y.At(point.y));
  }
  if (points.size() == 1) {   // a line of one point would not be seen
    places += " " + Place(x.At(points[0].X(axis)) + 1.5) + "," + Place(y.At(points[0].y));
  }
  return "<polyline class=\"" + of + "\" points=\"" + places + "\"/>\n";
}

class Drawing {
 public:
  Drawing(const std::vector<PlotRun>& runs, const std::vector<std::vector<PlacedMark>>& marks,
          const PlotLook& look)
      : runs_(runs), marks_(marks), look_(look) {
    MeasureAcross();
  }

  std::string Text() {
    Legend();
    Curves("loss", &PlotRun::loss, 250, look_.has_log_scale);
    Curves("evaluation", &PlotRun::evaluation, 120, false);
    Parts();
    Workers();
    Across();
    const std::string height = Place(top_);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + Place(kPlotWidth) + " " +
           height + "\" width=\"" + Place(kPlotWidth) + "\" height=\"" + height +
           "\" role=\"img\">\n<style>" + std::string(kPlotStyle) +
           "</style>\n<rect class=\"paper\" width=\"" + Place(kPlotWidth) + "\" height=\"" +
           height + "\"/>\n" + svg_ + "</svg>\n";
  }

 private:
  void MeasureAcross() {
    Span span;
    span.Take(0);
    const auto take = [&](const std::vector<std::vector<PlotPoint>>& stretches) {
      for (const auto& stretch : stretches) {
        for (const PlotPoint& point : stretch) span.Take(point.X(look_.axis));
      }
    };
    for (const PlotRun& run : runs_) {
      for (const PlotCurve* const curve : {&run.loss, &run.evaluation}) {
        take(curve->kept.Stretches());
        take(curve->redone.Stretches());
      }
      take(run.workers.Stretches());
    }
    for (const auto& of_run : marks_) {
      for (const PlacedMark& placed : of_run) span.Take(placed.x);
    }
    x_ = {0, std::max(span.most, look_.axis == PlotAxis::kStep ? 1.0 : 0.001), kPlotLeft,
          kPlotRight, false};
  }

  std::vector<PlotTick> TicksAcross() const {
    return look_.axis == PlotAxis::kStep ? NumberTicks(x_.least, x_.most, kTicksAcross)
                                         : TimeTicks(x_.least, x_.most, kTicksAcross);
  }

  void Legend() {
    top_ = 10;
    for (size_t run = 0; run < runs_.size(); ++run) {
      const PlotRun& of = runs_[run];
      top_ += kLegendLine;
      svg_ += Stroke("line " + ColourOf(run), kPlotLeft, top_ - 4, kPlotLeft + 22, top_ - 4);
      std::string text = of.name;
      if (of.redone > 0) {
        text += "; dashed: steps that were made once more (" + CountText(of.redone, "return") + ")";
      }
      size_t deaths = 0;
      for (const PlacedMark& placed : marks_[run]) {
        if (placed.mark.kind == PlotMark::Kind::kDeath) ++deaths;
      }
      if (deaths > 0) text += "; " + CountText(deaths, "death");
      if (!of.no_numbers.empty()) text += "; red: the loss is no number";
      svg_ += Words(kPlotLeft + 30, top_, "", text);
    }
    top_ += 30;
  }

  // The frame of the next panel, and its scale.
  PlotScale Panel(const std::string& title, double height, const Span& span, bool is_log) {
    const double limit = is_log ? kLeastOfPowers : -kGreatest;
    double least = std::clamp(span.least, limit, kGreatest);
    double most = std::clamp(span.most, limit, kGreatest);
    if (is_log) {
      if (most <= least * 1.01) least /= 2, most *= 2;
    } else if (most <= least) {
      least -= std::max(std::fabs(least) * 0.05, 1e-9);
      most += std::max(std::fabs(most) * 0.05, 1e-9);
    }
    const PlotScale y{least, most, top_ + height, top_, is_log};
    svg_ += Words(kPlotLeft, top_ - 7, "title", title);
    for (const PlotTick& tick : TicksAcross()) {
      svg_ += Stroke("grid", x_.At(tick.at), top_, x_.At(tick.at), top_ + height);
    }
    const int about = std::max(2, static_cast<int>(height / 45));
    const auto ticks = is_log ? PowerTicks(least, most) : NumberTicks(least, most, about);
    for (const PlotTick& tick : ticks) {
      svg_ += Stroke("grid", kPlotLeft, y.At(tick.at), kPlotRight, y.At(tick.at));
      svg_ += Words(kPlotLeft - 7, y.At(tick.at) + 4, "right", tick.text);
    }
    svg_ += "<rect class=\"frame\" x=\"" + Place(kPlotLeft) + "\" y=\"" + Place(top_) +
            "\" width=\"" + Place(kPlotRight - kPlotLeft) + "\" height=\"" + Place(height) +
            "\"/>\n";
    return y;
  }

  // A death is a line through the panel. Of several at one place one is drawn, which tells all.
  void Deaths(double height) {
    for (const auto& of_run : marks_) {
      double last = -INFINITY;
      for (size_t i = 0; i < of_run.size(); ++i) {
        if (of_run[i].mark.kind != PlotMark::Kind::kDeath) continue;
        const double x = x_.At(of_run[i].x);
        if (x - last < 1) continue;
        last = x;
        std::string title = of_run[i].mark.text;
        for (size_t next = i + 1; next < of_run.size() && x_.At(of_run[next].x) - x < 1; ++next) {
          if (of_run[next].mark.kind != PlotMark::Kind::kDeath) continue;
          if (title.size() < kTitleMost) title += "; " + of_run[next].mark.text;
        }
        svg_ += Stroke("death", x, top_, x, top_ + height, title);
      }
    }
  }

  void Curves(const std::string& title, PlotCurve PlotRun::*curve, double height, bool wants_log) {
    Span all, positive;
    for (const PlotRun& run : runs_) {
      for (const PlotSeries* const series : {&(run.*curve).kept, &(run.*curve).redone}) {
        for (const auto& stretch : series->Stretches()) {
          for (const PlotPoint& point : stretch) {
            all.Take(point.y);
            if (point.y > 0) positive.Take(point.y);
          }
        }
      }
    }
    if (!all.any()) return;
    const bool is_log = wants_log && positive.any();
    const PlotScale y = Panel(title, height, is_log ? positive : all, is_log);
    Deaths(height);
    for (size_t run = 0; run < runs_.size(); ++run) {
      const PlotCurve& of = runs_[run].*curve;
      const std::string colour = "line " + ColourOf(run);
      for (const auto& stretch : of.redone.Stretches()) {
        svg_ += Polyline(colour + " redone", stretch, look_.axis, x_, y);
      }
      for (const auto& stretch : of.kept.Stretches()) {
        svg_ += Polyline(colour, stretch, look_.axis, x_, y);
      }
      if (curve != &PlotRun::loss) continue;
      for (const PlotPoint& point : runs_[run].no_numbers) {
        svg_ += "<circle class=\"lost\" cx=\"" + Place(x_.At(point.X(look_.axis))) + "\" cy=\"" +
                Place(top_ + 4) + "\" r=\"3\"/>\n";
      }
    }
    top_ += height + kPanelGap;
  }

  static std::vector<std::vector<PlotPoint>> Stacked(const PlotRun& run) {
    std::vector<PlotSeries> parts;
    for (const std::string& name : run.part_names) parts.push_back(run.parts.at(name));
    return StackedMeans(std::move(parts));
  }

  void Parts() {
    constexpr double kHeight = 150;
    std::vector<std::vector<std::vector<PlotPoint>>> stacked;
    Span span;
    span.Take(0);
    for (const PlotRun& run : runs_) {
      stacked.push_back(Stacked(run));
      if (stacked.back().empty()) continue;
      for (const PlotPoint& point : stacked.back().back()) span.Take(point.y);
    }
    if (span.most <= 0) return;
    const bool is_one = runs_.size() == 1;
    const PlotScale y = Panel(is_one ? "parts of a step, ms" : "a step, ms",
                              kHeight, span, false);
    if (is_one) {
      const auto& layers = stacked.front();
      for (size_t part = layers.size(); part-- > 0;) svg_ += Area(layers[part], part, y);
      double x = kPlotLeft + 190;
      for (size_t part = 0; part < layers.size(); ++part) {
        const std::string& name = runs_.front().part_names[part];
        svg_ += "<rect class=\"" + ColourOfPart(part) + "\" x=\"" + Place(x) + "\" y=\"" +
                Place(top_ - 16) + "\" width=\"10\" height=\"10\"/>\n" +
                Words(x + 14, top_ - 7, "", name);
        x += 26 + 7 * static_cast<double>(name.size());
      }
    } else {
      for (size_t run = 0; run < stacked.size(); ++run) {
        if (stacked[run].empty()) continue;
        svg_ += Polyline("line " + ColourOf(run), stacked[run].back(), look_.axis, x_, y);
      }
    }
    Deaths(kHeight);
    top_ += kHeight + kPanelGap;
  }

  std::string Area(const std::vector<PlotPoint>& top, size_t part, const PlotScale& y) const {
    if (top.empty()) return "";
    const std::string floor = Place(y.At(0));
    std::string places = Place(x_.At(top.front().X(look_.axis))) + "," + floor;
    for (const PlotPoint& point : top) {
      places += " " + Place(x_.At(point.X(look_.axis))) + "," + Place(y.At(point.y));
    }
    places += " " + Place(x_.At(top.back().X(look_.axis))) + "," + floor;
    return "<polygon class=\"area " + ColourOfPart(part) + "\" points=\"" + places + "\"/>\n";
  }

  // The number of workers over the axis: by epochs where a launcher's log tells them, else by the
  // entries of steps.
  std::vector<PlotPoint> WorkersOf(size_t run) const {
    std::vector<PlotPoint> line;
    for (const PlacedMark& placed : marks_[run]) {
      if (placed.mark.kind != PlotMark::Kind::kEpoch) continue;
      line.push_back({placed.x, placed.x, placed.mark.workers});
    }
    const auto stretches = runs_[run].workers.Stretches();
    if (!line.empty()) {
      const double end = stretches.empty() ? line.back().step
                                           : stretches.back().back().X(look_.axis);
      line.push_back({std::max(end, line.back().step), std::max(end, line.back().step),
                      line.back().y});
      return line;
    }
    for (const auto& stretch : stretches) line.insert(line.end(), stretch.begin(), stretch.end());
    return line;
  }

  void Workers() {
    constexpr double kHeight = 70;
    Span span;
    span.Take(0);
    for (size_t run = 0; run < runs_.size(); ++run) {
      for (const PlotPoint& point : WorkersOf(run)) span.Take(point.y);
    }
    if (span.most <= 0) return;
    span.most *= 1.1;
    const bool has_epochs = std::any_of(marks_.begin(), marks_.end(),
                                        [](const auto& of_run) { return !of_run.empty(); });
    const PlotScale y = Panel(has_epochs ? "workers; grey: an epoch begins, red: a worker died"
                                         : "workers",
                              kHeight, span, false);
    Deaths(kHeight);
    for (size_t run = 0; run < runs_.size(); ++run) {
      std::vector<PlotPoint> steps;
      for (const PlotPoint& point : WorkersOf(run)) {
        if (!steps.empty()) steps.push_back({point.step, point.seconds, steps.back().y});
        steps.push_back(point);
      }
      if (!steps.empty()) svg_ += Polyline("line " + ColourOf(run), steps, look_.axis, x_, y);
      MarkLine(marks_[run], kHeight);
    }
    top_ += kHeight + kPanelGap;
  }

  void MarkLine(const std::vector<PlacedMark>& marks, double height) {
    double last_epoch = -INFINITY, last_death = -INFINITY;
    const double bottom = top_ + height;
    for (const PlacedMark& placed : marks) {
      const double x = x_.At(placed.x);
      const bool is_death = placed.mark.kind == PlotMark::Kind::kDeath;
      double& last = is_death ? last_death : last_epoch;
      if (x - last < 2) continue;
      last = x;
      if (is_death) {
        svg_ += "<path class=\"cross\" d=\"M" + Place(x - 4) + " " + Place(top_ + 4) + "l8 8m0 -8" +
                "l-8 8\"><title>" + Xml(placed.mark.text) + "</title></path>\n";
      } else {
        svg_ += Stroke("epoch", x, bottom, x, bottom + 7, placed.mark.text);
      }
    }
  }

  void Across() {
    top_ -= kPanelGap - 20;
    for (const PlotTick& tick : TicksAcross()) {
      svg_ += Words(x_.At(tick.at), top_, "middle", tick.text);
    }
    top_ += 18;
    svg_ += Words((kPlotLeft + kPlotRight) / 2, top_, "middle",
                  look_.axis == PlotAxis::kStep ? "step" : "time since each run began");
    top_ += 12;
  }

  const std::vector<PlotRun>& runs_;
  const std::vector<std::vector<PlacedMark>>& marks_;
  const PlotLook look_;
  PlotScale x_;
  double top_ = 0;
  std::string svg_;
};

}  // namespace

std::string PlotSvg(const std::vector<PlotRun>& runs,
                    const std::vector<std::vector<PlacedMark>>& marks, const PlotLook& look) {
  return Drawing(runs, marks, look).Text();
}

}  // namespace keel
