// `keel plot`: what runs have logged, as a drawing.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "tools/keel/commands.h"
#include "tools/keel/log_file.h"
#include "tools/keel/log_words.h"
#include "tools/keel/plot_run.h"
#include "tools/keel/plot_svg.h"
#include "tools/keel/value_output.h"

namespace keel {
namespace {

constexpr double kMarksFromRun = 3600;   // seconds

Result<PlotRun> ReadRun(Files& files, const std::string& path, PlotAxis axis) {
  PlotRun run(path, axis);
  LogFile file(files, path);
  for (;;) {
    KEEL_TRY_ASSIGN(const auto line, file.Next(true));
    if (!line) return run;
    run.Add(ReadLogWords(line->text));
  }
}

struct Plotted {
  std::vector<PlotRun> runs;
  std::vector<std::vector<PlacedMark>> marks;   // of each
  uint64_t marks_left_out = 0;
  uint64_t marks_without_run = 0;
};

// A launcher's log tells of epochs and deaths; its copies of steps count only where no other file
// has them.
Plotted Sort(std::vector<PlotRun> read) {
  Plotted plotted;
  const bool has_others = std::any_of(read.begin(), read.end(), [](const PlotRun& run) {
    return run.has_steps() && !run.is_launchers;
  });
  std::vector<PlotMark> marks;
  for (PlotRun& run : read) {
    marks.insert(marks.end(), run.marks.begin(), run.marks.end());
    plotted.marks_left_out += run.marks_left_out;
    if (run.has_steps() && !(run.is_launchers && has_others)) {
      plotted.runs.push_back(std::move(run));
    }
  }
  std::vector<std::vector<PlotMark>> of_runs(plotted.runs.size());
  for (PlotMark& mark : marks) {
    size_t nearest = 0;
    double distance = INFINITY;
    for (size_t run = 0; run < plotted.runs.size(); ++run) {
      const double other = plotted.runs[run].DistanceTo(mark.nanos);
      if (other < distance) nearest = run;
      distance = std::min(distance, other);
    }
    if (distance > kMarksFromRun) {
      ++plotted.marks_without_run;
    } else {
      of_runs[nearest].push_back(std::move(mark));
    }
  }
  for (size_t run = 0; run < plotted.runs.size(); ++run) {
    plotted.marks.push_back(plotted.runs[run].Place(EachEpochOnce(std::move(of_runs[run]))));
  }
  return plotted;
}

Json FactsOf(const Plotted& plotted) {
  Json json = {{"runs", Json::array()}};
  for (size_t i = 0; i < plotted.runs.size(); ++i) {
    const PlotRun& run = plotted.runs[i];
    size_t deaths = 0;
    for (const PlacedMark& placed : plotted.marks[i]) {
      if (placed.mark.kind == PlotMark::Kind::kDeath) ++deaths;
    }
    json["runs"].push_back({{"name", run.name},
                            {"entries", run.steps},
                            {"returns", run.redone},
                            {"losses_that_are_no_numbers", run.no_numbers.size()},
                            {"epochs", plotted.marks[i].size() - deaths},
                            {"deaths", deaths}});
  }
  json["marks_left_out"] = plotted.marks_left_out;
  json["marks_without_run"] = plotted.marks_without_run;
  return json;
}

Status Name(const std::vector<std::string>& names, std::vector<PlotRun>* runs) {
  if (names.empty()) return Ok();
  if (names.size() != runs->size()) {
    return Error{Code::kInvalid, "--names has " + CountText(names.size(), "name") + " for " +
                                     CountText(runs->size(), "run") + ": give one for each"};
  }
  for (size_t i = 0; i < names.size(); ++i) (*runs)[i].name = names[i];
  return Ok();
}

}  // namespace

OptionTable PlotTable() {
  OptionTable table = CommandTable(
      "plot",
      "Draws what training programs have logged (--log-jsonl FILE, or a worker's stderr.log) as "
      "SVG: loss, evaluation, the parts of a step, the number of workers; several runs in one "
      "drawing. With a launcher's log among the files (2> keelrun.log) it shows when workers died "
      "and membership epochs began, at the run whose time that was. Steps that were made once "
      "more, as after a resume from an older checkpoint, are dashed where they did not count. "
      "Long runs are thinned out to what a screen can show: the least and the greatest of each "
      "place stay. The drawing is light or dark as its reader prefers.",
      "FILE...", "");
  table.Add(Option::Text("out", "", "Write the drawing to this file, which appears only when it is "
                                    "complete; without it, to stdout").Placeholder("FILE.svg"));
  table.Add(Option::Choice("x", {"step", "time"}, "step",
                           "What goes from left to right: steps, or the time since each run "
                           "began"));
  table.Add(Option::Choice("y", {"linear", "log"}, "linear", "The scale of losses"));
  table.Add(Option::List("names", "", "What the runs are called in the drawing, in the order of "
                                      "their files; without it, by their files")
                .Placeholder("NAME,..."));
  table.AddExample("keel plot logs/train.jsonl logs/keelrun.log --out run.svg",
                   "One run, with what happened to its workers");
  table.AddExample("keel plot a/train.jsonl b/train.jsonl --names before,after --y log > two.svg",
                   "Two runs in one drawing");
  table.AddExample("keel plot logs/train.jsonl --x time --out run.svg", "How long it took");
  return table;
}

Result<Outcome> RunPlot(const World& world, const Options& options) {
  const std::string& path = options.Text("out");
  const bool is_json = options.Flag("json");
  if (path.empty() && world.prints_to_terminal && !is_json) {
    return Error{Code::kInvalid, "the drawing is SVG, which a terminal cannot show: give --out "
                                 "FILE.svg, or send stdout to a file"};
  }
  const PlotLook look{options.Text("x") == "time" ? PlotAxis::kTime : PlotAxis::kStep,
                      options.Text("y") == "log"};
  std::vector<PlotRun> read;
  for (const std::string& file : options.positionals()) {
    KEEL_TRY_ASSIGN(PlotRun run, ReadRun(world.files, file, look.axis));
    read.push_back(std::move(run));
  }
  Plotted plotted = Sort(std::move(read));
  if (plotted.runs.empty()) {
    return Error{Code::kNotFound,
                 "no steps in " + JoinList(options.positionals(), ", ") +
                     ": a training program logs them with --log-jsonl FILE, every --log-every"};
  }
  KEEL_TRY(Name(options.List("names"), &plotted.runs));
  Outcome outcome;
  outcome.json = FactsOf(plotted);
  if (path.empty() && is_json) return outcome;
  KEEL_TRY_ASSIGN(const auto output, ValueOutput::Open(world, path));
  *output->buffer() += PlotSvg(plotted.runs, plotted.marks, look);
  const Status written = output->Finish();
  if (!written.ok() && !(path.empty() && written.error().code == Code::kPeerLost)) {
    return written.error();
  }
  if (path.empty()) return Outcome{};
  outcome.json["file"] = path;
  outcome.text = path + ": " + CountText(plotted.runs.size(), "run") + "\n";
  if (plotted.marks_left_out + plotted.marks_without_run > 0) {
    outcome.text += "not drawn: " + std::to_string(plotted.marks_left_out) + " epochs and deaths "
                    "beyond " + std::to_string(kPlotMarksMost) + " of a log, " +
                    std::to_string(plotted.marks_without_run) + " of no run's time\n";
  }
  return outcome;
}

}  // namespace keel
