// Turns options into a TrainLogConfig, and passes reports to the log.
#include "trainer/run_logs.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/posix_files.h"
#include "trainer/log/train_log.h"

namespace keel {
namespace {

// A failed write is ignored: a lost progress line does no harm.
void DrawOnStderr(const std::string& text) {
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

// The last one stays empty: behind it some terminals begin a new row.
size_t ColumnsOfStderr() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col - size_t{1} : SIZE_MAX;
}

// The log and the disk that it writes to.
struct Logs {
  PosixFiles files = {};
  std::unique_ptr<TrainLog> log = nullptr;
};

TrainLogConfig ConfigOf(const Options& options, const TrainConfig& config) {
  TrainLogConfig log{.every = static_cast<uint64_t>(options.Integer("log-every")),
                     .steps = config.steps,
                     .samples_per_step = config.lanes * config.lane_batch,
                     .jsonl = options.Text("log-jsonl"),
                     .tensorboard = options.Text("tensorboard")};
  const std::string& progress = options.Text("progress");
  if (progress == "yes" || (progress == "auto" && ::isatty(STDERR_FILENO) == 1)) {
    log.draw = DrawOnStderr;
    log.columns = ColumnsOfStderr;
  }
  return log;
}

LoggedStep LoggedOf(const StepReport& report) {
  return {.step = report.step,
          .data_epoch = report.data_epoch,
          .loss = report.loss,
          .learning_rate = report.outcome.learning_rate,
          .rank = report.rank,
          .world = report.world,
          .times = report.times,
          .compute_ns = report.compute_ns,
          .lanes = report.lanes,
          .epoch = report.epoch};
}

}  // namespace

void AddLogOptions(OptionTable& table) {
  table.Add(Option::Integer("log-every", 10,
                            "Steps between two log entries (loss, learning rate, samples/s, where "
                            "the time went); 0: none")
                .AtLeast(0).Placeholder("N"));
  table.Add(Option::Text("log-jsonl", "",
                         "Append the log entries to this file, one JSON object per line")
                .Placeholder("FILE"));
  table.Add(Option::Text("tensorboard", "", "Write curves for TensorBoard into this directory")
                .Placeholder("DIR"));
  table.Add(Option::Choice("progress", {"auto", "yes", "no"}, "auto",
                           "Show a progress line on stderr; auto: if it is a terminal"));
}

Status CheckLogOptions(const Options& options) {
  for (const char* name : {"log-jsonl", "tensorboard"}) {
    const std::string place = options.Text(name);
    if (place.find("://") == std::string::npos) continue;
    return Error{Code::kInvalid, std::string("--") + name + " " + place +
                                     " is no file here: logs are written to this machine's disk, "
                                     "or to one that it has mounted"};
  }
  return Ok();
}

void LogRun(const Options& options, const TrainConfig& config, TrainProgram& program) {
  const auto logs = std::make_shared<Logs>();
  logs->log = std::make_unique<TrainLog>(ConfigOf(options, config), logs->files, RealClock());
  program.on_step = [logs, inner = std::move(program.on_step)](const StepReport& report) {
    logs->log->OnStep(LoggedOf(report));
    return inner ? inner(report) : Ok();
  };
  program.on_evaluation = [logs, inner = std::move(program.on_evaluation)](
                              const EvaluationReport& report) {
    logs->log->OnEvaluation({.step = report.step,
                             .value = report.value,
                             .samples = report.samples,
                             .took = report.took,
                             .rank = report.rank});
    return inner ? inner(report) : Ok();
  };
}

}  // namespace keel
