// Clouds and schedulers that announce the end of a host, told to the real `keelrun` by a server of
// the test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/harness/fake_http.h"
#include "tests/tools/job_hosts.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAwsAction = "GET /latest/meta-data/spot/instance-action";
constexpr const char* kAwsHint = "GET /latest/meta-data/events/recommendations/rebalance";
constexpr const char* kTerminate = R"({"action":"terminate","time":"2026-03-01T12:02:00Z"})";
constexpr const char* kGcp = "GET /computeMetadata/v1/instance/preempted";
constexpr const char* kGcpWaits = "GET /computeMetadata/v1/instance/preempted?wait_for_change";
constexpr const char* kAzure = "GET /metadata/scheduledevents";

class KeelrunNotices : public ::testing::Test, protected JobHosts {
 protected:
  KeelrunNotices() { cloud_.Answer("PUT /latest/api/token", 200, "token"); }

  std::vector<std::string> Alone(const std::string& notice) const {
    return {"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2", "--notice=" + notice,
            "--notice-url=" + cloud_.url()};
  }
  // One host, which has counted.
  std::unique_ptr<Launched> StartCounting(const std::vector<std::string>& options,
                                          const Environment& environment = {}) {
    auto host = StartSurvivor("host", options, environment);
    host->Await("^rank 0 has counted");
    return host;
  }
  void ExpectUndisturbed(Launched& host) {
    LetFinish();
    EXPECT_EQ(host.ExitCode(), 0) << host.Output();
    EXPECT_EQ(host.Count("^epoch "), 1) << host.Output();
    EXPECT_EQ(host.Count("^stopped at"), 0) << host.Output();
  }
  static Environment SlurmUntil(int64_t seconds) {
    const int64_t end = RealClock().WallNanos() / 1'000'000'000 + seconds;
    return {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", std::to_string(end)}};
  }

  FakeHttp cloud_;
};

TEST_F(KeelrunNotices, AHostThatIsInterruptedLeavesAndTheOthersGoOn) {
  const auto first = StartSurvivor("first", {"--nnodes=1:2", "--notice=none"});
  first->Await("job-started.*hosted_here=true");
  const auto second = StartSurvivor(
      "second", {"--nnodes=1:2", "--notice=aws", "--notice-url=" + cloud_.url()});
  const std::string before = first->Await("^epoch 1 rank 0 of 2");
  second->Await("^epoch 1 rank 1 of 2");
  second->Await("notices-watched.*AWS");
  cloud_.Answer(kAwsAction, 200, kTerminate);
  EXPECT_EQ(second->ExitCode(), 75) << second->Output();
  EXPECT_EQ(second->Count("notice-obeyed .*spot interruption: terminate"), 1) << second->Output();
  EXPECT_EQ(second->Count("^  2.*epoch 1: AWS notice .*terminate.*, in 2 min"), 1)
      << second->Output();
  const std::string after = first->Await("^epoch 2 rank 0 of 1");
  EXPECT_EQ(NumberAfter(after, "pid"), NumberAfter(before, "pid"));
  EXPECT_GE(NumberAfter(after, "count"), NumberAfter(before, "count"));
  LetFinish();
  EXPECT_EQ(first->ExitCode(), 0) << first->Output();
  EXPECT_THAT(first->Output(), HasSubstr("AWS notice (spot interruption: terminate)"));
}

TEST_F(KeelrunNotices, TheOnlyHostSavesAndStopsWithTheWholeJob) {
  cloud_.Answer(kGcp, 200, "FALSE");
  cloud_.Hang(kGcpWaits);
  const auto host = StartCounting(Alone("gcp"));
  EXPECT_TRUE(cloud_.AwaitAsked(kGcpWaits, 1));
  cloud_.Answer(kGcpWaits, 200, "TRUE");
  EXPECT_EQ(host->ExitCode(), 75) << host->Output();
  EXPECT_EQ(host->Count("^stopped at"), 1) << host->Output();
  EXPECT_EQ(host->Count("notice-obeyed .*GCP notice .*left=\"30 s\" to_save=\"25 s\""), 1)
      << host->Output();
}

TEST_F(KeelrunNotices, ARebalanceRecommendationDisturbsNobody) {
  cloud_.Answer(kAwsHint, 200, R"({"noticeTime":"2026-03-01T11:59:00Z"})");
  const auto host = StartCounting(Alone("aws"));
  host->Await("notice-hint .*rebalance recommended");
  EXPECT_TRUE(cloud_.AwaitAsked(kAwsAction, 2));
  ExpectUndisturbed(*host);
}

TEST_F(KeelrunNotices, ANoticeThatIsWithdrawnInTimeDisturbsNobody) {
  // Of no time that clocks agree on: it counts as the usual 30 s.
  cloud_.Answer(kAzure, 200, R"({"Events":[{"EventType":"Preempt","NotBefore":""}]})");
  std::vector<std::string> options = Alone("azure");
  options.push_back("--notice-lead=1s");
  const auto host = StartCounting(options);
  host->Await(" notice what=.*Preempt");
  cloud_.Answer(kAzure, 200, R"({"Events":[]})");
  host->Await("notice-withdrawn");
  ExpectUndisturbed(*host);
}

TEST_F(KeelrunNotices, AServiceThatHangsDisturbsNobody) {
  cloud_.Hang("PUT /latest/api/token");
  const auto host = StartCounting(Alone("aws"));
  host->Await("notices-unreachable .*did not answer");
  EXPECT_TRUE(cloud_.AwaitAsked("PUT", 2));
  ExpectUndisturbed(*host);
}

TEST_F(KeelrunNotices, OneThatTalksNonsenseDisturbsNobody) {
  cloud_.Answer(kAwsAction, 200, "<html>terminate</html>");
  const auto host = StartCounting(Alone("aws"));
  host->Await("notices-unreachable .*makes no sense");
  cloud_.AnswerRaw(kAwsAction, std::string("\0\xff terminate\r\n\r\n", 15));
  EXPECT_TRUE(cloud_.AwaitAsked(kAwsAction, 3));
  ExpectUndisturbed(*host);
}

TEST_F(KeelrunNotices, OneThatGoesAwayInMidJobDisturbsNobody) {
  const auto host = StartCounting(Alone("aws"));
  host->Await("notices-watched");
  cloud_.Close();
  host->Await("notices-unreachable");
  ExpectUndisturbed(*host);
}

TEST_F(KeelrunNotices, TheCloudIsFoundOutByAskingWhereAUrlIsGiven) {
  cloud_.Answer("PUT /latest/api/token", 404, "");
  cloud_.Answer(kAzure, 200, R"({"Events":[]})");
  const auto host = StartCounting(Alone("auto"));
  host->Await("notices-watched of=Azure");
  cloud_.Answer(kAzure, 200, R"({"Events":[{"EventType":"Preempt"}]})");
  EXPECT_EQ(host->ExitCode(), 75) << host->Output();
}

TEST_F(KeelrunNotices, ThereIsSilenceAndNoQuestionWithoutAnythingToAsk) {
  const auto host = StartCounting({"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2",
                                   "--notice=none", "--notice-url=" + cloud_.url()});
  ExpectUndisturbed(*host);
  EXPECT_TRUE(cloud_.requests().empty());
  EXPECT_EQ(host->Count("notices-"), 0) << host->Output();
}

TEST_F(KeelrunNotices, SlurmsTimeLimitIsKnownWithoutBeingAsked) {
  const auto host = StartCounting({"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2"},
                                  SlurmUntil(30));
  EXPECT_EQ(host->ExitCode(), 75) << host->Output();
  EXPECT_EQ(host->Count("notice-obeyed .*Slurm's time limit"), 1) << host->Output();
  EXPECT_EQ(host->Count("^stopped at"), 1) << host->Output();
}

TEST_F(KeelrunNotices, SlurmsSignalLeavesTheTimeThatIsLeft) {
  const auto host = StartCounting({"--nnodes=1:2", "--rdzv-conf=last_call_timeout=0.2",
                                   "--notice=slurm", "--notice-lead=1s"},
                                  SlurmUntil(600));
  host->Signal(SIGUSR1);
  EXPECT_EQ(host->ExitCode(), 75) << host->Output();
  EXPECT_EQ(host->Count("signal=SIGUSR1 to_save=\"9 min"), 1) << host->Output();
}

}  // namespace
}  // namespace keel
