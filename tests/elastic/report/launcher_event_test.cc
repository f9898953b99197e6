// Where each event of a launcher is told: in the log, on the status page, in the summary.
#include "elastic/report/launcher_event.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "elastic/report/event_log.h"
#include "elastic/report/job_story.h"
#include "elastic/status/event_words.h"
#include "elastic/status/job_status.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

// Each row: an event, its lines in the log behind their time, what the status page says of it, and
// what the summary has of it.
struct Row {
  LauncherEvent event;
  std::vector<std::string> log;
  std::string page;
  std::string summary;
};

std::vector<Row> Rows() {
  EpochRecord epoch;
  epoch.number = 3;
  epoch.reason = "n1 came";
  epoch.hosts.resize(2);
  epoch.workers.resize(4);
  BreakRecord broken;
  broken.epoch = 3;
  broken.cause = BreakCause::kHostLost;
  broken.reason = "n1 is silent";
  StopRecord stop;
  stop.reason = "n0 leaves";
  WorkerFailure failure;
  failure.rank = 3;
  failure.local_rank = 1;
  failure.pid = 47;
  return {
      {Registered{5}, {"info registered slot=5"}, "", ""},
      {EpochSeen{epoch}, {"info epoch epoch=3 workers=4 hosts=2 reason=\"n1 came\""},
       "epoch: epoch 3 of 4 workers on 2 hosts: n1 came", ""},
      {BreakSeen{broken},
       {"warn epoch-broken epoch=3 cause=host-lost reason=\"n1 is silent\""},
       "break: host-lost: n1 is silent", "host-lost: n1 is silent"},
      {StopSeen{stop}, {"info job-stops reason=\"n0 leaves\""}, "stop: n0 leaves",
       "stop: n0 leaves"},
      {StoreLost{"reset"}, {"warn store-unreachable reason=reset"}, "store-lost: reset", ""},
      {StoreReached{}, {"info store-reached"}, "store-reached: ", ""},
      {NoStore{"no LibTorch"}, {}, "no-store: no LibTorch", ""},
      {JobWaits{"1 of 2 hosts"}, {}, "waiting: 1 of 2 hosts", ""},
      {HostWaits{"the store", 30s, 90s, "start its host"},
       {"warn still-waiting for=\"the store\" waited=\"30 s\" left=\"1 min 30 s\" "
        "cure=\"start its host\""},
       "waiting: the store", ""},
      {HostWaits{"an epoch", 30s, {}, "look there"},
       {"warn still-waiting for=\"an epoch\" waited=\"30 s\" left=\"no limit\" "
        "cure=\"look there\""},
       "waiting: an epoch", ""},
      {WorkerFailed{"rank 3 on n0", "exited with 1", failure, 3, 40, true},
       {"error worker-died rank=3 local_rank=1 pid=47 how=\"exited with 1\" error=\"\" step=40"},
       "death: rank 3 on n0 exited with 1", "died: rank 3 on n0 exited with 1"},
      {WorkerFailed{"rank 3 on n0", "exited with 1", failure, 3, 0, false},
       {"error worker-died rank=3 local_rank=1 pid=47 how=\"exited with 1\" error=\"\" step=0"},
       "death: rank 3 on n0 exited with 1", ""},
      {WorkerEnded{"rank 3 on n0", "exited with 0", 3, 47},
       {"info worker-ended rank=3 pid=47 how=\"exited with 0\""},
       "worker-ended: rank 3 on n0 exited with 0", ""},
      {CheckpointSaved{40}, {}, "saved: a checkpoint of step 40", ""},
      {SaveAsked{"SIGUSR2"}, {"info save-wanted signal=SIGUSR2"}, "save-wanted: SIGUSR2", ""},
      {StopAsked{"SIGTERM to n0"}, {}, "stop: SIGTERM to n0", "stop: SIGTERM to n0"},
      {KilledByUser{"interrupted twice"}, {"warn killing-all reason=\"interrupted twice\""}, "",
       "stop: interrupted twice"},
      {RegistersAnew{"taken for dead"}, {"warn registering-anew reason=\"taken for dead\""},
       "registering-anew: taken for dead", ""},
      {HostShunned{"n1", "it dies", false}, {"warn host-shunned host=n1 reason=\"it dies\""},
       "host-shunned: it dies", ""},
      {HostShunned{"n0", "it dies", true}, {"warn host-shunned host=n0 reason=\"it dies\""},
       "host-shunned: it dies", "stop: this host is left out: it dies"},
      {HealthChecked{true, "", 5ms}, {"info healthy took=\"5 ms\""}, "", ""},
      {HealthChecked{false, "it is hot", 5ms},
       {"error not-healthy reason=\"it is hot\" took=\"5 ms\""}, "not-healthy: it is hot",
       "stop: it is hot"},
      {LauncherEnds{75, "stopped"}, {}, "end: stopped (exit code 75)", ""},
  };
}

std::vector<Row> NoticeRows() {
  using Kind = NoticeEvent::Kind;
  return {
      {NoticeEvent{Kind::kFound, "AWS"}, {"info notices-watched of=AWS"},
       "notice: watching the notices of AWS", ""},
      {NoticeEvent{Kind::kHint, "soon"}, {"info notice-hint what=soon"}, "notice: hint: soon", ""},
      {NoticeEvent{Kind::kAnnounced, "ends", 90s, "in 1970"},
       {"warn notice what=ends left=\"1 min 30 s\"",
        "warn notice-time-doubted reason=\"in 1970\""},
       "notice: announced: ends", ""},
      {NoticeEvent{Kind::kWithdrawn, "ends"}, {"info notice-withdrawn what=ends"},
       "notice: withdrawn: ends", ""},
      {NoticeEvent{Kind::kUnreachable, "AWS"}, {"warn notices-unreachable reason=AWS"},
       "notice: unreachable: AWS", ""},
      {NoticeEvent{Kind::kReached, "AWS"}, {"info notices-reached of=AWS"},
       "notice: reached again: AWS", ""},
      {NoticeEvent{Kind::kGaveUp, "silent"}, {"info notices-not-watched reason=silent"},
       "notice: no service is asked any more: silent", ""},
      {NoticeObeyed{"ends", 90s, 85s, "ends, to n0"},
       {"warn notice-obeyed what=ends left=\"1 min 30 s\" to_save=\"1 min 25 s\""},
       "notice: obeyed: ends", "stop: ends, to n0"},
  };
}

TEST(LauncherEvent, EachIsToldWhereItsReadersLook) {
  std::vector<std::string> lines;
  LogToCallback([&](std::string_view line) { lines.emplace_back(line); });
  std::vector<bool> is_tried(std::variant_size_v<LauncherEvent>);
  std::vector<Row> rows = Rows();
  for (Row& row : NoticeRows()) rows.push_back(std::move(row));
  for (const Row& row : rows) {
    SCOPED_TRACE(row.page);
    is_tried[row.event.index()] = true;
    lines.clear();
    LogEvent(row.event);
    ASSERT_EQ(lines.size(), row.log.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_TRUE(lines[i].ends_with("Z " + row.log[i] + "\n")) << lines[i];
    }
    JobStatus status(StatusJob{});
    status.On(row.event, 1);
    ASSERT_EQ(status.events().size(), row.page.empty() ? 0u : 1u);
    if (!row.page.empty()) {
      EXPECT_EQ(status.events()[0].kind + ": " + status.events()[0].text, row.page);
    }
    JobStory story("job", 0);
    story.On(row.event, 1);
    const std::vector<JobEvent>& events = story.summary().events;
    ASSERT_EQ(events.size(), row.summary.empty() ? 0u : 1u);
    if (!row.summary.empty()) {
      EXPECT_EQ(events[0].what + ": " + events[0].why, row.summary);
    }
  }
  LogToStderr();
  EXPECT_EQ(std::count(is_tried.begin(), is_tried.end(), false), 0);
}

TEST(LauncherEvent, TheSummaryHasTheFailureAndTheEnd) {
  JobStory story("job", 0);
  WorkerFailure failure;
  failure.rank = 3;
  story.On(WorkerFailed{"rank 3", "exited with 1", failure, 1, 0, false}, 1);
  story.On(LauncherEnds{1, "failed"}, 2);
  ASSERT_EQ(story.failures().size(), 1u);
  EXPECT_EQ(story.failures()[0].rank, 3);
  EXPECT_EQ(story.summary().exit_code, 1);
  EXPECT_EQ(story.summary().outcome, "failed");
}

// As in torchrun's report, where they have exit code -15.
TEST(LauncherEvent, WhoWasStoppedBecauseOfAFailureIsInItsReport) {
  JobStory story("job", 0);
  WorkerFailure failure;
  WorkerEnded stopped{"rank 4", "killed by signal 15 (SIGTERM)", 4, 47, WorkerFailure(), 1};
  stopped.stopped->rank = 4;
  story.On(stopped, 1);
  EXPECT_TRUE(story.failures().empty()) << "nobody has failed";
  story.On(WorkerFailed{"rank 3", "exited with 1", failure, 1, 0, false}, 2);
  story.On(WorkerEnded{"rank 5", "exited with 0", 5, 48, {}, 1}, 3);
  story.On(stopped, 3);
  ASSERT_EQ(story.failures().size(), 2u);
  EXPECT_EQ(story.failures()[1].rank, 4);
  stopped.epoch = 2;
  story.On(stopped, 4);
  EXPECT_EQ(story.failures().size(), 2u) << "it is of another attempt";
}

TEST(LauncherEvent, OfAVeryLongErrorTheLogHasSomeAndSaysWhereAllOfItIs) {
  std::string line;
  LogToCallback([&](std::string_view told) { line = told; });
  WorkerFailure failure;
  failure.error_file = "/logs/error.json";
  failure.error = WorkerError{"Boom " + std::string(2'000'000, 'x') + " on Friday", "", 0, "{}"};
  LogEvent(WorkerFailed{"rank 3", "exited with 1", failure, 1, 0, false});
  LogToStderr();
  EXPECT_LT(line.size(), 8192u);
  for (const char* part : {"error=\"Boom xxx", "xxx on Friday\" step=0", "1.9 MiB left out here; "
                           "all of it is in /logs/error.json"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace keel
