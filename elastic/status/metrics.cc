// Writes one family after the other: its two comments, then its series.
#include "elastic/status/metrics.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

#include "base/text.h"
#include "elastic/report/blame_words.h"

namespace keel {
namespace {

double Seconds(int64_t nanos) { return static_cast<double>(nanos) / 1e9; }

using Labels = std::vector<std::pair<const char*, std::string>>;

// Printable() leaves no line feed, but writes a backslash for one.
std::string LabelText(const std::string& value) {
  std::string text;
  for (const char c : Printable(value)) {
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

class Metrics {
 public:
  void Family(const std::string& name, const char* type, const char* help) {
    name_ = "keel_" + name;
    text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
  }
  void Add(double value, const Labels& labels = {}) {
    text_ += name_;
    const char* between = "{";
    for (const auto& [label, of] : labels) {
      text_ += between + std::string(label) + "=\"" + LabelText(of) + "\"";
      between = ",";
    }
    const std::string number = std::isnan(value) ? "NaN" : NumberText(value);
    text_ += (labels.size() > 0 ? "} " : " ") + number + "\n";
  }
  void One(const std::string& name, const char* type, const char* help, double value) {
    Family(name, type, help);
    Add(value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

void AddJob(Metrics& metrics, const JobStatus& status, int64_t now_nanos) {
  const StatusJob& job = status.job();
  metrics.Family("job_info", "gauge", "The job that is watched, in the labels; always 1.");
  metrics.Add(1, {{"job", job.name},
                  {"host", job.host},
                  {"kind", std::string(JobKindName(status.in_place() ? JobKind::kInPlace
                                                                     : JobKind::kForeign))}});
  metrics.One("start_time_seconds", "gauge", "When this launcher started, in seconds since 1970.",
              Seconds(job.started_nanos));
  metrics.One("uptime_seconds", "gauge", "How long this launcher has been running.",
              Seconds(now_nanos - job.started_nanos));
  metrics.Family("job_state", "gauge", "1 for the state that the job is in, as this host sees it.");
  for (const char* state : {"running", "waiting", "stopping"}) {
    metrics.Add(status.state() == state ? 1 : 0, {{"state", state}});
  }
}

void AddEpochs(Metrics& metrics, const JobStatus& status) {
  const StatusEpoch* const running = status.running();
  metrics.One("epoch", "gauge", "Number of the newest epoch.",
              status.epochs().empty() ? 0 : static_cast<double>(status.epochs().back().number));
  metrics.One("epochs_total", "counter", "Epochs that this host has seen.",
              static_cast<double>(status.epochs_total()));
  metrics.One("epoch_workers", "gauge", "Workers of the epoch that runs.",
              running == nullptr ? 0 : running->workers);
  metrics.One("epoch_hosts", "gauge", "Hosts of the epoch that runs.",
              running == nullptr ? 0 : running->hosts);
  if (status.step() >= 0) {
    metrics.One("step", "gauge", "The furthest step that a worker has reported.",
                static_cast<double>(status.step()));
  }
  metrics.Family("events_total", "counter", "Events so far, by kind.");
  for (const auto& [kind, count] : status.events_by_kind()) {
    metrics.Add(static_cast<double>(count), {{"kind", kind}});
  }
}

// What speaks for and against each host.
void AddBlame(Metrics& metrics, const JobStatus& status) {
  const auto each = [&](const auto& add) {
    for (const StatusHost& host : status.hosts()) {
      if (!host.gone.empty()) continue;
      add(host.record, Labels{{"host", host.record.host}, {"slot", std::to_string(host.slot)}});
    }
  };
  metrics.Family("host_deaths_by_cause_total", "counter",
                 "Workers that ended without success, by host and cause.");
  each([&](const MemberRecord& record, Labels labels) {
    labels.emplace_back("cause", "");
    for (const DeathCause& cause : kDeathCauses) {
      labels.back().second = cause.name;
      metrics.Add(static_cast<double>(record.blame.*cause.count), labels);
    }
  });
  const auto checks = [&](const char* name, const char* what, int64_t WorkerChecks::*count) {
    metrics.Family(name, "counter", what);
    each([&](const MemberRecord& record, const Labels& labels) {
      metrics.Add(static_cast<double>(record.blame.checks.*count), labels);
    });
  };
  checks("host_rechecks_total",
         "Lanes and sums of workers of the host that were compared with those of others.",
         &WorkerChecks::rechecks);
  checks("host_differences_total", "Of these, what came out differently.",
         &WorkerChecks::differences);
  checks("host_slow_steps_total", "Steps in which a worker of the host was much slower than most.",
         &WorkerChecks::slow_steps);
  metrics.Family("host_healthy", "gauge",
                 "Whether the host's last health check found it fit; absent: there was none.");
  each([&](const MemberRecord& record, const Labels& labels) {
    if (!record.health.empty()) metrics.Add(record.health == kHealthGood ? 1 : 0, labels);
  });
}

void AddHosts(Metrics& metrics, const JobStatus& status) {
  std::map<std::string, int64_t> workers;
  metrics.Family("host_deaths_total", "counter", "Workers that ended without success, by host.");
  for (const StatusHost& host : status.hosts()) {
    if (!host.gone.empty()) continue;
    metrics.Add(static_cast<double>(DeathCount(host.record.blame)),
                {{"host", host.record.host}, {"slot", std::to_string(host.slot)}});
    for (const SeatRecord& seat : host.record.seats) {
      ++workers[std::string(SeatStateName(seat.state))];
    }
  }
  AddBlame(metrics, status);
  metrics.Family("workers", "gauge", "Seats by the state of their workers.");
  for (const auto& [state, count] : workers) {
    metrics.Add(static_cast<double>(count), {{"state", state}});
  }
  metrics.Family("worker_step", "gauge", "The step that a worker is at.");
  for (const StatusHost& host : status.hosts()) {
    for (size_t index = 0; host.gone.empty() && index < host.record.seats.size(); ++index) {
      const SeatRecord& seat = host.record.seats[index];
      if (!HasProcess(seat.state) || seat.position.step < 0) continue;
      metrics.Add(static_cast<double>(seat.position.step),
                  {{"host", host.record.host},
                   {"slot", std::to_string(host.slot)},
                   {"local_rank", std::to_string(index)}});
    }
  }
}

// The figures of this host.
void AddFigures(Metrics& metrics, const JobStatus& status) {
  if (status.newest()) {
    metrics.One("loss", "gauge", "Loss of the newest step that was reported.",
                status.newest()->loss.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  if (const auto rate = status.samples_per_s()) {
    metrics.One("samples_per_second", "gauge", "Samples per second of all workers, lately.", *rate);
  }
  if (!status.checkpoints().empty()) {
    const StatusCheckpoint& saved = status.checkpoints().back();
    metrics.One("checkpoint_step", "gauge", "Step of the newest checkpoint.",
                static_cast<double>(saved.step));
    metrics.One("checkpoint_time_seconds", "gauge",
                "When the newest checkpoint was reported, in seconds since 1970.",
                Seconds(saved.wall_nanos));
  }
  metrics.Family("worker_steps_total", "counter",
                 "Steps that counted, of each worker of this host since that worker started.");
  for (const StatusTrend& trend : status.trends()) {
    metrics.Add(static_cast<double>(trend.now.told.steps),
                {{"local_rank", std::to_string(trend.now.index)}});
  }
  metrics.Family("worker_step_seconds_total", "counter",
                 "Time that these steps took, by what it was spent on.");
  for (const StatusTrend& trend : status.trends()) {
    for (const auto& [part, nanos] : trend.now.told.parts) {
      metrics.Add(Seconds(nanos),
                  {{"local_rank", std::to_string(trend.now.index)}, {"part", part}});
    }
  }
  metrics.Family("worker_time_seconds_total", "counter",
                 "Time of all seats of this host, by what it was spent on.");
  for (const TimePart& each : kTimeParts) {
    metrics.Add(Seconds((status.risen_time().*each.part).count()),
                {{"part", std::string(each.name)}});
  }
  if (status.time().knows_steps) {
    metrics.One("goodput_ratio", "gauge",
                "Part of the time of all seats that went into steps that counted.",
                status.time().Goodput());
  }
}

}  // namespace

std::string StatusMetricsText(const JobStatus& status, int64_t now_nanos) {
  Metrics metrics;
  AddJob(metrics, status, now_nanos);
  AddEpochs(metrics, status);
  AddHosts(metrics, status);
  AddFigures(metrics, status);
  return metrics.Take();
}

}  // namespace keel
