// Prometheus' text format: every line is a comment or a series, each family is whole and told once.
#include "elastic/status/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "tests/elastic/status/some_status.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

std::string MetricsOf(const JobStatus& status) {
  return StatusMetricsText(status, kBegin + 10 * kSecondNanos);
}

void ExpectFormat(const std::string& text) {
  static const std::regex series(
      R"re(([a-z_]+)(\{([a-z_]+="([^"\\]|\\["\\n])*")(,[a-z_]+="([^"\\]|\\["\\n])*")*\})? \S+)re");
  static const std::regex comment(R"(# (HELP|TYPE) ([a-z_]+) (.*))");
  std::istringstream lines(text);
  std::set<std::string> families, seen;
  std::string line, family;
  while (std::getline(lines, line)) {
    std::smatch parts;
    if (std::regex_match(line, parts, comment)) {
      family = parts[2];
      const bool is_type = parts[3] == "gauge" || parts[3] == "counter";
      EXPECT_TRUE(parts[1] == "TYPE" ? is_type : families.insert(family).second) << line;
      continue;
    }
    ASSERT_TRUE(std::regex_match(line, parts, series)) << line;
    EXPECT_EQ(parts[1], family) << line;
    const std::string name = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(seen.insert(name).second) << "twice: " << name;
  }
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(StatusMetrics, TellsTheJobItsEpochsAndItsWorkers) {
  JobStatus status(JobOf());
  status.OnHosts({HostOf(0, 2, 40), HostOf(1, 2, 41)}, kBegin);
  status.OnEpoch(EpochOf(3, 4, 2), kBegin + kSecondNanos);
  const std::string text = MetricsOf(status);
  EXPECT_THAT(text, HasSubstr("keel_job_info{job=\"run7\",host=\"node0\",kind=\"in-place\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("keel_job_state{state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("keel_job_state{state=\"waiting\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("keel_epoch 3\n"));
  EXPECT_THAT(text, HasSubstr("keel_epoch_workers 4\n"));
  EXPECT_THAT(text, HasSubstr("keel_uptime_seconds 10\n"));
  EXPECT_THAT(text, HasSubstr("keel_step 41\n"));
  EXPECT_THAT(text, HasSubstr("keel_workers{state=\"running\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("keel_worker_step{host=\"node1\",slot=\"1\",local_rank=\"0\"} 41\n"));
  EXPECT_THAT(text, HasSubstr("keel_events_total{kind=\"host-joined\"} 2\n"));
  const std::string host = "{host=\"node1\",slot=\"1\"";
  EXPECT_THAT(text, HasSubstr("keel_host_deaths_by_cause_total" + host +
                              ",cause=\"signalled\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("keel_host_rechecks_total" + host + "} 40\n"));
  EXPECT_THAT(text, HasSubstr("keel_host_differences_total" + host + "} 3\n"));
  EXPECT_THAT(text, HasSubstr("keel_host_slow_steps_total" + host + "} 20\n"));
  EXPECT_THAT(text, HasSubstr("keel_host_healthy" + host + "} 1\n"));
  ExpectFormat(text);
}

TEST(StatusMetrics, TellsWhatWorkersTellOfThemselves) {
  JobStatus status(JobOf());
  status.OnFigures({FiguresOf(0, 10, std::nullopt), FiguresOf(1, 10, 2.0)}, SomeTime(), kBegin);
  EXPECT_THAT(MetricsOf(status), HasSubstr("keel_loss NaN\n"));
  status.OnFigures({FiguresOf(0, 20, 0.125), FiguresOf(1, 20, 0.125)}, SomeTime(),
                   kBegin + kSecondNanos);
  status.OnSaved(15, kBegin);
  const std::string text = MetricsOf(status);
  EXPECT_THAT(text, HasSubstr("keel_loss 0.125\n"));
  EXPECT_THAT(text, HasSubstr("keel_samples_per_second 640\n"));
  EXPECT_THAT(text, HasSubstr("keel_checkpoint_step 15\n"));
  EXPECT_THAT(text, HasSubstr("keel_worker_steps_total{local_rank=\"1\"} 20\n"));
  EXPECT_THAT(text, HasSubstr(
      "keel_worker_step_seconds_total{local_rank=\"0\",part=\"forward\"} 0.6\n"));
  EXPECT_THAT(text, HasSubstr("keel_worker_time_seconds_total{part=\"starting\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("keel_goodput_ratio 0.9\n"));
  ExpectFormat(text);
}

// A counter that falls looks like one that began anew.
TEST(StatusMetrics, TimeThatTurnsOutToBeAStepIsNotTakenBack) {
  JobStatus status(JobOf());
  WorkerTime time = SomeTime();
  time.beside_steps = std::chrono::seconds(20);
  status.OnFigures({FiguresOf(0, 10, 2.0)}, time, kBegin);
  time.beside_steps = std::chrono::seconds(1);
  time.steps += std::chrono::seconds(20);
  status.OnFigures({FiguresOf(0, 11, 2.0)}, time, kBegin + kSecondNanos);
  EXPECT_THAT(MetricsOf(status),
              HasSubstr("keel_worker_time_seconds_total{part=\"beside_steps\"} 20\n"));
  EXPECT_EQ(status.time().beside_steps, std::chrono::seconds(1));
}

TEST(StatusMetrics, IsWellFormedBeforeAnythingIsKnown) {
  ExpectFormat(MetricsOf(JobStatus(JobOf())));
}

TEST(StatusMetrics, LabelsAreEscaped) {
  JobStatus status(JobOf("a\"b\\c\nd\xff{}"));
  status.OnHosts({HostOf(0, 1, 1, "evil\"} 1\nkeel_step 9")}, kBegin);
  const std::string text = MetricsOf(status);
  EXPECT_THAT(text, HasSubstr("job=\"a\\\"b\\\\c\\\\nd\\\\xff{}\""));
  EXPECT_EQ(text.find("\nkeel_step 9"), std::string::npos);
  ExpectFormat(text);
}

TEST(StatusMetrics, HoldsUpWith64HostsAnd10000Events) {
  const std::string text = MetricsOf(BigStatus());
  EXPECT_LT(text.size(), 256U << 10);
  EXPECT_THAT(text, HasSubstr("keel_events_total{kind=\"death\"} 2500\n"));
  EXPECT_THAT(text, HasSubstr("keel_epochs_total 2500\n"));
  ExpectFormat(text);
}

TEST(StatusMetrics, DeathsAgreeWithTheirCausesAlsoOfAHostThatRegisteredAnew) {
  JobStatus status(JobOf());
  StatusHost host = HostOf(1, 1, 1);
  host.record.deaths = 0;
  status.OnHosts({host}, kBegin);
  const std::string text = MetricsOf(status);
  const std::string who = "{host=\"node1\",slot=\"1\"";
  EXPECT_THAT(text, HasSubstr("keel_host_deaths_by_cause_total" + who + ",cause=\"exited\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("keel_host_deaths_total" + who + "} 3\n"));
}

}  // namespace
}  // namespace keel
