// Parts of `keel plot`: long curves in bounded memory, axes, what counts of a run, the drawing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tools/keel/plot_axis.h"
#include "tools/keel/plot_run.h"
#include "tools/keel/plot_series.h"
#include "tools/keel/plot_svg.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<double> Heights(const PlotSeries& series) {
  std::vector<double> heights;
  for (const auto& stretch : series.Stretches()) {
    for (const PlotPoint& point : stretch) heights.push_back(point.y);
  }
  return heights;
}

// --- curves ---

TEST(PlotSeries, AShortCurveIsKeptWhole) {
  PlotSeries series(PlotAxis::kStep);
  for (int step = 0; step < 500; ++step) series.Add({double(step), step * 0.1, step * 2.0});
  const auto stretches = series.Stretches();
  ASSERT_EQ(stretches.size(), 1u);
  ASSERT_EQ(stretches[0].size(), 500u);
  EXPECT_EQ(stretches[0][77], (PlotPoint{77, 7.7, 154}));
}

TEST(PlotSeries, OfALongCurveEveryPeakStaysAndItsSizeHasALimit) {
  PlotSeries series(PlotAxis::kStep);
  for (int step = 0; step < 1'000'000; ++step) {
    series.Add({double(step), 0, step == 123'456 ? 99.0 : step == 777'777 ? -99.0 : 1.0});
  }
  const std::vector<double> heights = Heights(series);
  EXPECT_LE(heights.size(), 4u * 1024);
  EXPECT_EQ(*std::max_element(heights.begin(), heights.end()), 99);
  EXPECT_EQ(*std::min_element(heights.begin(), heights.end()), -99);
  const auto points = series.Stretches().front();
  EXPECT_EQ(points.front().step, 0);
  EXPECT_EQ(points.back().step, 999'999);
}

TEST(PlotSeries, StepsThatAreMadeOnceMoreMoveAway) {
  PlotSeries kept(PlotAxis::kStep), redone(PlotAxis::kStep);
  for (const double step : {1, 2, 3, 4}) kept.Add({step, step, step});
  kept.MoveFrom(3, &redone);
  for (const double step : {3, 4, 5}) kept.Add({step, step + 10, step * 10});
  EXPECT_THAT(Heights(kept), ElementsAre(1, 2, 30, 40, 50));
  EXPECT_THAT(Heights(redone), ElementsAre(3, 4));
}

TEST(PlotSeries, WhatWasLostTwiceIsTwoStretches) {
  PlotSeries kept(PlotAxis::kStep), redone(PlotAxis::kStep);
  for (const double step : {1, 2, 3, 2, 3, 4, 5, 6, 6}) {
    kept.MoveFrom(step, &redone);
    kept.Add({step, 0, step});
  }
  EXPECT_THAT(Heights(kept), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_EQ(redone.Stretches().size(), 2u);
  EXPECT_EQ(redone.Stretches()[1].front().step, 6);
}

TEST(PlotSeries, MeansAreOfAllPointsOfAPlace) {
  PlotSeries series(PlotAxis::kTime);
  series.Add({1, 0.0001, 10});
  series.Add({2, 0.0003, 20});
  const auto means = StackedMeans({series});
  ASSERT_EQ(means.size(), 1u);
  ASSERT_EQ(means[0].size(), 1u);
  EXPECT_DOUBLE_EQ(means[0][0].y, 15);
  EXPECT_DOUBLE_EQ(means[0][0].seconds, 0.0002);
}

TEST(PlotSeries, WhatSomeEntriesLackCountsAsNothingInAStack) {
  PlotSeries always(PlotAxis::kStep), rarely(PlotAxis::kStep), late(PlotAxis::kStep);
  for (int step = 0; step < 4096; ++step) {
    always.Add({double(step), 0, 10});
    if (step % 8 == 0) rarely.Add({double(step), 0, 16});
    if (step >= 4000) late.Add({double(step), 0, 5});
  }
  const auto stacked = StackedMeans({rarely, always, late});
  ASSERT_EQ(stacked.size(), 3u);
  for (const auto& layer : stacked) ASSERT_EQ(layer.size(), stacked[1].size());
  double sum = 0;
  for (const PlotPoint& point : stacked[0]) sum += point.y;
  EXPECT_DOUBLE_EQ(sum / double(stacked[0].size()), 2);
  EXPECT_EQ(stacked[2].back().y - stacked[1].back().y, 5);
  EXPECT_EQ(stacked[2][100], stacked[1][100]);
  EXPECT_GT(stacked[0].back().step, 4090);
}

// --- axes ---

std::string Texts(const std::vector<PlotTick>& ticks) {
  std::string texts;
  for (const PlotTick& tick : ticks) texts += (texts.empty() ? "" : " ") + tick.text;
  return texts;
}

TEST(PlotAxis, TicksAreRound) {
  EXPECT_EQ(Texts(NumberTicks(0, 1, 5)), "0 0.2 0.4 0.6 0.8 1");
  EXPECT_EQ(Texts(NumberTicks(-3, 7, 5)), "-2 0 2 4 6");
  EXPECT_EQ(Texts(NumberTicks(5, 5, 5)), "5");
  EXPECT_EQ(Texts(PowerTicks(0.0003, 20)), "0.001 0.01 0.1 1 10");
  EXPECT_EQ(Texts(PowerTicks(0.9, 6)), "1 2 5");
  EXPECT_EQ(Texts(TimeTicks(0, 7500, 4)), "0 1 h 2 h");
  EXPECT_EQ(Texts(TimeTicks(0, 0.2, 2)), "0 s 0.1 s 0.2 s");
  EXPECT_LE(NumberTicks(0, 1e300, 8).size(), 20u);
  EXPECT_LE(PowerTicks(1e-300, 1e300).size(), 20u);
  EXPECT_EQ(Texts(PowerTicks(0, 1)), "");
}

TEST(PlotAxis, AScaleKeepsWhatLiesOutsideAtItsEnds) {
  const PlotScale linear{0, 10, 100, 0};
  EXPECT_EQ(linear.At(5), 50);
  EXPECT_EQ(linear.At(-5), 100);
  const PlotScale logarithmic{1, 100, 0, 10, true};
  EXPECT_DOUBLE_EQ(logarithmic.At(10), 5);
  EXPECT_EQ(logarithmic.At(0), 0);
  const PlotScale widest{1e-300, 1e300, 0, 10, true};
  EXPECT_NEAR(widest.At(1), 5, 1e-9);
  EXPECT_EQ(widest.At(NAN), 0);
}

// --- runs ---

std::string StepLine(int step, const std::string& loss, int64_t seconds) {
  return "{\"event\":\"step\",\"step\":" + std::to_string(step) + ",\"loss\":" + loss +
         ",\"workers\":3,\"wall_ns\":" + std::to_string((1'795'915'900 + seconds) * 1'000'000'000) +
         ",\"ms\":{\"data\":1,\"forward\":2.5}}";
}

PlotRun RunOf(const std::vector<std::string>& lines, PlotAxis axis = PlotAxis::kStep) {
  PlotRun run("<run>", axis);
  for (const std::string& line : lines) run.Add(ReadLogWords(line));
  return run;
}

TEST(PlotRun, TellsWhatCountsFromWhatWasLost) {
  const PlotRun run = RunOf({StepLine(10, "3", 0), StepLine(20, "2", 10), StepLine(30, "9", 20),
                             StepLine(20, "2", 30), StepLine(30, "1", 40), "torn {"});
  EXPECT_EQ(run.steps, 5u);
  EXPECT_EQ(run.redone, 1u);
  EXPECT_THAT(Heights(run.loss.kept), ElementsAre(3, 2, 1));
  EXPECT_THAT(Heights(run.loss.redone), ElementsAre(2, 9));
  EXPECT_THAT(run.part_names, ElementsAre("data", "forward"));
}

// A job that was started again may evaluate before its next step is logged.
TEST(PlotRun, AnEvaluationThatWasMadeOnceMoreCountsOnce) {
  const auto evaluation = [](int step, const std::string& value) {
    return "{\"event\":\"evaluation\",\"step\":" + std::to_string(step) + ",\"value\":" + value +
           "}";
  };
  const PlotRun run = RunOf({StepLine(20, "2", 0), evaluation(25, "5"), evaluation(28, "4"),
                             evaluation(25, "6"), evaluation(28, "3"), StepLine(30, "1", 9)});
  EXPECT_THAT(Heights(run.evaluation.kept), ElementsAre(6, 3));
  EXPECT_THAT(Heights(run.evaluation.redone), ElementsAre(5, 4));
}

TEST(PlotRun, ALossThatIsNoNumberIsNotDrawnAsOne) {
  const PlotRun run = RunOf({StepLine(1, "3", 0), StepLine(2, "null", 1), StepLine(3, "1", 2)});
  EXPECT_THAT(Heights(run.loss.kept), ElementsAre(3, 1));
  ASSERT_EQ(run.no_numbers.size(), 1u);
  EXPECT_EQ(run.no_numbers[0].step, 2);
}

const std::vector<std::string> kLauncher = {
    "2026-11-29T01:31:40.000Z info epoch epoch=1 workers=3 hosts=1 reason=begin",
    "2026-11-29T01:31:55.000Z error worker-died rank=2 local_rank=2 how=\"killed <b>\" step=15",
    "2026-11-29T01:31:56.000Z info epoch epoch=2 workers=2 hosts=1 reason=\"after & so\""};

TEST(PlotRun, MarksStandAtTheirStepOrWhereTrainingWasByThen) {
  const PlotRun run = RunOf({StepLine(10, "3", 0), StepLine(20, "2", 18), StepLine(30, "1", 30)});
  const PlotRun launcher = RunOf(kLauncher);
  EXPECT_TRUE(launcher.is_launchers);
  EXPECT_FALSE(launcher.has_steps());
  ASSERT_EQ(launcher.marks.size(), 3u);
  EXPECT_EQ(run.DistanceTo(launcher.marks[1].nanos), 0);
  EXPECT_EQ(run.DistanceTo(launcher.marks[1].nanos - 20'000'000'000), 5);
  std::vector<double> places;
  for (const PlacedMark& placed : run.Place(launcher.marks)) places.push_back(placed.x);
  EXPECT_THAT(places, ElementsAre(10, 10, 15));

  const PlotRun by_time = RunOf({StepLine(10, "3", 0), StepLine(20, "2", 18)}, PlotAxis::kTime);
  EXPECT_EQ(by_time.Place(launcher.marks)[1].x, 15);
}

// --- the drawing ---

TEST(PlotSvg, ShowsDeathsAndEscapesTheTextsOfOthers) {
  std::vector<PlotRun> runs;
  runs.push_back(RunOf({StepLine(10, "3", 0), StepLine(20, "2", 18), StepLine(10, "4", 40)}));
  const std::string svg = PlotSvg(runs, {runs[0].Place(RunOf(kLauncher).marks)}, {});
  EXPECT_THAT(svg, HasSubstr("&lt;run&gt;; dashed: steps that were made once more (1 return)"));
  EXPECT_THAT(svg, HasSubstr("rank 2: killed &lt;b&gt;"));
  EXPECT_THAT(svg, HasSubstr("class=\"line c0 redone\""));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("NaN")), Not(HasSubstr("Inf"))));
}

TEST(PlotSvg, IsDrawnOfWhateverARunHolds) {
  for (const std::string loss : {"0", "-1", "1e308", "-1e308", "null", "5e-324"}) {
    for (const bool is_log : {false, true}) {
      std::vector<PlotRun> runs;
      runs.push_back(RunOf({StepLine(0, loss, 0), StepLine(5, loss, 0)}));
      runs.push_back(RunOf({StepLine(7, loss, 0)}));
      runs.push_back(RunOf({StepLine(8, loss, 0), StepLine(9, "1e308", 0)}));
      const std::string svg = PlotSvg(runs, {{}, {}, {}}, {PlotAxis::kStep, is_log});
      EXPECT_THAT(svg, HasSubstr("</svg>"));
      EXPECT_THAT(svg, AllOf(Not(HasSubstr("NaN")), Not(HasSubstr("Inf")))) << loss;
    }
  }
}

TEST(PlotSvg, HasNoCharacterThatXmlForbids) {
  std::vector<PlotRun> runs;
  runs.emplace_back("a\xEF\xBF\xBE\xEF\xBF\xBF", PlotAxis::kStep);
  runs[0].Add(ReadLogWords(StepLine(1, "1", 0)));
  EXPECT_THAT(PlotSvg(runs, {{}}, {}), HasSubstr(">a\xEF\xBF\xBD\xEF\xBF\xBD</text>"));
}

// As in one log of each host's launcher.
TEST(PlotRun, AnEpochIsOneHoweverManyLaunchersLoggedIt) {
  std::vector<PlotMark> marks;
  for (const char* second : {"40.000", "40.120", "39.700", "55.000"}) {
    const std::string at = "2026-11-29T01:31:" + std::string(second) + "Z ";
    const PlotRun launcher =
        RunOf({at + "info epoch epoch=1 workers=3 hosts=3 reason=begin",
               at + "error worker-died rank=2 local_rank=2 how=killed step=15"});
    marks.insert(marks.end(), launcher.marks.begin(), launcher.marks.end());
  }
  const std::vector<PlotMark> once = EachEpochOnce(marks);
  const auto is_epoch = [](const PlotMark& mark) { return mark.kind == PlotMark::Kind::kEpoch; };
  EXPECT_EQ(std::count_if(once.begin(), once.end(), is_epoch), 2) << "one is of another time";
  EXPECT_EQ(once.size(), 6u) << "and each death is one";
}

}  // namespace
}  // namespace keel
