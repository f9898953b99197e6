// Makes one entry every so many steps, in every form that was asked for.
#include "trainer/log/train_log.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr Duration kDrawInterval = std::chrono::milliseconds(200);

double Seconds(Duration duration) { return static_cast<double>(duration.count()) * 1e-9; }

double PerSecond(uint64_t count, Duration duration) {
  return duration.count() <= 0 ? 0 : static_cast<double>(count) / Seconds(duration);
}

// Milliseconds of a step's part, with as many digits as are meaningful.
double Millis(Duration total, uint64_t steps) {
  const double micros = static_cast<double>(total.count()) / 1000 / static_cast<double>(steps);
  return static_cast<double>(static_cast<int64_t>(micros + 0.5)) / 1000;
}

// The short form that people would write for this float: 0.1 instead of 0.10000000149.
double Readable(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  double readable = value;
  std::from_chars(text, end.ptr, readable);
  return readable;
}

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

double RunTally::SamplesPerSecond() const { return PerSecond(samples, wall); }

double RunTally::Goodput() const {
  return wall.count() <= 0 ? 0 : std::min(1.0, Seconds(times.Total()) / Seconds(wall));
}

namespace {

// ", 5.1 steps/s, 1 min 34 s left"
std::string RateText(uint64_t left, uint64_t made, Duration elapsed) {
  const double rate = PerSecond(made, elapsed);
  if (rate <= 0) return "";
  const std::string text = ", " + Short(rate) + " steps/s";
  if (left == 0) return text;
  const double time = static_cast<double>(left) / rate;
  const auto seconds = std::max<int64_t>(1, static_cast<int64_t>(time + 0.5));
  return text + ", " + DurationText(std::chrono::seconds(seconds)) + " left";
}

}  // namespace

std::string ProgressLine(uint64_t step, uint64_t steps, float loss, uint64_t made,
                         Duration elapsed, size_t columns) {
  constexpr uint64_t kBar = 20;
  const uint64_t filled = steps == 0 ? 0 : std::min(kBar, kBar * step / steps);
  const std::string begin = "step " + std::to_string(step) + " of " + std::to_string(steps);
  const std::string bar = " [" + std::string(filled, '=') + std::string(kBar - filled, ' ') + "]";
  const std::string end =
      " loss " + Short(loss) + RateText(steps - std::min(step, steps), made, elapsed);
  const bool has_room = begin.size() + bar.size() + end.size() <= columns;
  return (begin + (has_room ? bar : ",") + end).substr(0, columns);
}

// --- What happened since the last entry ---

struct TrainLog::Window {
  TimePoint begun;
  uint64_t steps = 0;
  StepTimes times = {};
};

// --- JSON lines ---

// Writes one object per line, at the end of a file that another process may have begun.
class TrainLog::JsonLines {
 public:
  JsonLines(Files& files, std::string path) : files_(files), path_(std::move(path)) {}

  bool open() const { return file_ != nullptr; }
  Status Append(const Json& object) {
    if (lost_) return Ok();
    const Status status = Write(DumpJson(object) + "\n");
    lost_ = !status.ok();
    return status;
  }

 private:
  Status Write(std::string line) {
    if (!file_) {
      KEEL_TRY(MakeDirs(files_, ParentDir(path_)));
      KEEL_TRY_ASSIGN(file_, files_.Open(path_, {.write = true, .create = true}));
    }
    KEEL_TRY_ASSIGN(const uint64_t size, file_->Size());
    KEEL_TRY_ASSIGN(const bool torn, EndsTorn(size));
    if (torn) line.insert(line.begin(), '\n');
    return file_->WriteAt(size, BytesOf(line));
  }
  // The process that wrote before us may have been killed within a line.
  Result<bool> EndsTorn(uint64_t size) {
    if (size == 0) return false;
    std::byte last{};
    KEEL_TRY(file_->ReadAt(size - 1, {&last, 1}));
    return last != std::byte{'\n'};
  }

  Files& files_;
  const std::string path_;
  std::unique_ptr<File> file_;
  bool lost_ = false;
};

// --- The log ---

TrainLog::TrainLog(TrainLogConfig config, Files& files, Clock& clock)
    : config_(std::move(config)),
      files_(files),
      clock_(clock),
      begun_(clock.Monotonic()),
      window_(std::make_unique<Window>(Window{begun_})),
      stragglers_(config_.stragglers) {
  if (!config_.jsonl.empty()) json_ = std::make_unique<JsonLines>(files_, config_.jsonl);
}

TrainLog::~TrainLog() {
  if (!first_rank_) return;
  WipeProgress();
  if (config_.every > 0) Summary();
}

RunTally TrainLog::tally() const {
  RunTally tally = tally_;
  tally.wall = clock_.Monotonic() - begun_;
  return tally;
}

void TrainLog::OnStep(const LoggedStep& step) {
  ++tally_.steps;
  tally_.samples += config_.samples_per_step;
  tally_.times += step.times;
  ++window_->steps;
  window_->times += step.times;
  first_rank_ = step.rank == 0;
  if (step.epoch != epoch_) {
    epoch_ = step.epoch;
    stragglers_.Clear();
    named_.clear();
  }
  if (!step.compute_ns.empty()) stragglers_.Add(step.compute_ns, step.lanes);
  const bool due = config_.every > 0 && (step.step % config_.every == 0);
  if (first_rank_) Draw(step);
  if (!due) return;
  if (first_rank_) {
    Write(step);
    NameStragglers(step);
  }
  *window_ = Window{clock_.Monotonic()};
}

void TrainLog::Write(const LoggedStep& step) {
  WipeProgress();
  const uint64_t steps = window_->steps;
  const Duration passed = clock_.Monotonic() - window_->begun;
  const double rate = PerSecond(steps * config_.samples_per_step, passed);
  const auto part = [&](Duration StepTimes::*each) { return Millis(window_->times.*each, steps); };
  LogInfo("step", {{"step", step.step},
                   {"data_epoch", step.data_epoch},
                   {"loss", Readable(step.loss)},
                   {"lr", step.learning_rate},
                   {"samples_per_s", Short(rate)},
                   {"workers", step.world},
                   {"data_ms", part(&StepTimes::data)},
                   {"forward_ms", part(&StepTimes::forward)},
                   {"backward_ms", part(&StepTimes::backward)},
                   {"exchange_ms", part(&StepTimes::exchange)},
                   {"vote_ms", part(&StepTimes::vote)},
                   {"optimizer_ms", part(&StepTimes::optimizer)},
                   {"recheck_ms", part(&StepTimes::recheck)},
                   {"save_ms", part(&StepTimes::save)}});
  if (json_) {
    Json times;
    for (const StepPart& each : kStepParts) times[std::string(each.name)] = part(each.part);
    const Status status = json_->Append({{"event", "step"},
                                         {"step", step.step},
                                         {"data_epoch", step.data_epoch},
                                         {"loss", Readable(step.loss)},
                                         {"lr", step.learning_rate},
                                         {"samples_per_s", rate},
                                         {"workers", step.world},
                                         {"wall_ns", clock_.WallNanos()},
                                         {"ms", std::move(times)}});
    if (!status.ok()) Lost("jsonl", status.error());
  }
  std::vector<EventScalar> scalars = {{"train/loss", step.loss},
                                      {"train/lr", step.learning_rate},
                                      {"train/samples_per_s", rate},
                                      {"train/workers", static_cast<double>(step.world)}};
  for (const StepPart& each : kStepParts) {
    scalars.push_back({"ms/" + std::string(each.name), part(each.part)});
  }
  Curves(step.step, scalars);
}

void TrainLog::NameStragglers(const LoggedStep& step) {
  if (!stragglers_.full()) return;   // nothing is known yet
  StragglerDecision decision = stragglers_.Decide();
  if (decision.ranks == named_) return;
  named_ = std::move(decision.ranks);
  if (named_.empty()) {
    LogInfo("no-straggler", {{"step", step.step}});
  } else {
    LogWarn("straggler", {{"step", step.step}, {"detail", decision.detail}});
  }
}

void TrainLog::OnEvaluation(const LoggedEvaluation& evaluation) {
  tally_.evaluating += evaluation.took;
  first_rank_ = evaluation.rank == 0;
  if (!first_rank_) return;
  WipeProgress();
  LogInfo("evaluation", {{"step", evaluation.step},
                         {"value", evaluation.value},
                         {"samples", evaluation.samples},
                         {"took", DurationText(evaluation.took)}});
  if (json_) {
    const Status status = json_->Append({{"event", "evaluation"},
                                         {"step", evaluation.step},
                                         {"value", evaluation.value},
                                         {"samples", evaluation.samples},
                                         {"wall_ns", clock_.WallNanos()}});
    if (!status.ok()) Lost("jsonl", status.error());
  }
  Curves(evaluation.step, {{"evaluation/value", evaluation.value}});
}

void TrainLog::Curves(uint64_t step, const std::vector<EventScalar>& scalars) {
  if (config_.tensorboard.empty() || events_lost_) return;
  const auto add = [&]() -> Status {
    if (!events_) {
      KEEL_TRY_ASSIGN(events_,
                      EventFile::Create(files_, config_.tensorboard, clock_.WallNanos()));
    }
    return events_->Add(clock_.WallNanos(), step, scalars);
  };
  const Status status = add();
  if (status.ok()) return;
  events_lost_ = true;
  Lost("tensorboard", status.error());
}

void TrainLog::Draw(const LoggedStep& step) {
  if (!config_.draw) return;
  const TimePoint now = clock_.Monotonic();
  if (drawn_ && now - *drawn_ < kDrawInterval) return;
  drawn_ = now;
  const size_t columns = config_.columns ? config_.columns() : SIZE_MAX;
  config_.draw("\r\x1b[K" + ProgressLine(step.step, config_.steps, step.loss, tally_.steps,
                                         now - begun_, columns));
}

void TrainLog::WipeProgress() {
  if (drawn_) config_.draw("\r\x1b[K");
  drawn_.reset();
}

void TrainLog::Lost(const char* what, const Error& error) {
  LogWarn("training-log-lost", {{"what", what}, {"reason", error.message}});
}

void TrainLog::Summary() {
  const RunTally tally = this->tally();
  LogInfo("summary", {{"steps", tally.steps},
                      {"took", DurationText(tally.wall)},
                      {"samples_per_s", Short(tally.SamplesPerSecond())},
                      {"goodput", Short(tally.Goodput())},
                      {"evaluating", DurationText(tally.evaluating)}});
  if (!json_ || !json_->open()) return;
  Json seconds;
  for (const StepPart& each : kStepParts) {
    seconds[std::string(each.name)] = Seconds(tally.times.*each.part);
  }
  const Status status = json_->Append({{"event", "summary"},
                                       {"wall_ns", clock_.WallNanos()},
                                       {"steps", tally.steps},
                                       {"seconds", Seconds(tally.wall)},
                                       {"samples_per_s", tally.SamplesPerSecond()},
                                       {"goodput", tally.Goodput()},
                                       {"seconds_in", std::move(seconds)}});
  if (!status.ok()) Lost("jsonl", status.error());
}

}  // namespace keel
