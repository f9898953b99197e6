// The services as state machines, and what a host makes of them, with a clock made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/notice/watch.h"
#include "tests/support/garbage.h"

namespace keel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using std::chrono::hours;
using std::chrono::seconds;
using Kind = NoticeEvent::Kind;

constexpr const char* kTerminate = R"({"action":"terminate","time":"2026-03-01T12:02:00Z"})";
constexpr const char* kFreshEvents = R"({"DocumentIncarnation":1,"Events":[]})";
// 2026-03-01T12:00:00Z
constexpr int64_t kNoon = 1772366400'000'000'000;

class Watching {
 public:
  explicit Watching(NoticePlan plan) : watch_(std::move(plan), now_, wall()) {}

  // The next question, once its time has come.
  HttpRequest Ask() {
    if (watch_.NextWake() > now_) now_ = watch_.NextWake();
    watch_.OnTime(now_);
    const auto request = watch_.Next(now_);
    EXPECT_TRUE(request.has_value());
    return request.value_or(HttpRequest());
  }
  std::vector<NoticeEvent> Answer(int status, const std::string& body,
                                  const std::string& tag = "") {
    watch_.OnReply(HttpReply{status, body, tag}, now_, wall());
    return watch_.TakeEvents();
  }
  std::vector<NoticeEvent> NoAnswer() {
    watch_.OnReply(Error{Code::kTimeout, "silent"}, now_, wall());
    return watch_.TakeEvents();
  }
  std::vector<NoticeEvent> Pass(Duration duration) {
    now_ = now_ + duration;
    watch_.OnTime(now_);
    return watch_.TakeEvents();
  }
  // AWS: the token, the action and the hint, all of them good.
  void Settle() {
    Ask();
    Answer(200, "token-1");
    Ask();
    Answer(404, "");
    Ask();
    Answer(404, "");
  }
  bool is_over() const { return watch_.NextWake() == kNever; }
  Duration pause() const { return watch_.NextWake() - now_; }
  int64_t wall() const { return kNoon + (now_ - TimePoint()).count() + skew_.count(); }

  TimePoint now_{};
  Duration skew_{0};

 private:
  NoticeWatch watch_;
};

NoticePlan PlanOf(Cloud cloud) { return {.clouds = {cloud}, .insists = true}; }

std::vector<Kind> KindsOf(const std::vector<NoticeEvent>& events) {
  std::vector<Kind> kinds;
  for (const NoticeEvent& event : events) kinds.push_back(event.kind);
  return kinds;
}

std::string HeaderOf(const HttpRequest& request, const std::string& name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(AwsWatch, AsksForATokenFirstAndThenEveryFiveSeconds) {
  Watching aws(PlanOf(Cloud::kAws));
  const HttpRequest token = aws.Ask();
  EXPECT_EQ(token.method, "PUT");
  EXPECT_EQ(token.target, "/latest/api/token");
  EXPECT_EQ(HeaderOf(token, "X-aws-ec2-metadata-token-ttl-seconds"), "21600");
  EXPECT_THAT(aws.Answer(200, "token-1"), ElementsAre());
  const HttpRequest action = aws.Ask();
  EXPECT_EQ(action.method, "GET");
  EXPECT_EQ(action.target, "/latest/meta-data/spot/instance-action");
  EXPECT_EQ(HeaderOf(action, "X-aws-ec2-metadata-token"), "token-1");
  EXPECT_THAT(KindsOf(aws.Answer(404, "")), ElementsAre(Kind::kFound));
  EXPECT_EQ(aws.Ask().target, "/latest/meta-data/events/recommendations/rebalance");
  EXPECT_THAT(aws.Answer(404, ""), ElementsAre());
  EXPECT_EQ(aws.pause(), seconds(5));
  EXPECT_EQ(aws.Ask().target, "/latest/meta-data/spot/instance-action");
}

TEST(AwsWatch, ANoticeMakesTheHostLeaveOnce) {
  Watching aws(PlanOf(Cloud::kAws));
  aws.Settle();
  aws.Ask();
  const auto events = aws.Answer(200, kTerminate);
  ASSERT_THAT(KindsOf(events), ElementsAre(Kind::kAnnounced, Kind::kLeave));
  EXPECT_EQ(events[1].left, seconds(115));
  EXPECT_EQ(events[1].text, "AWS notice (spot interruption: terminate)");
  EXPECT_TRUE(aws.is_over());
  EXPECT_THAT(aws.Pass(hours(1)), ElementsAre());
}

TEST(AwsWatch, AClockThatDiffersDoesNotEatTheNotice) {
  for (const Duration skew : {Duration(hours(1)), Duration(-hours(1))}) {
    Watching aws(PlanOf(Cloud::kAws));
    aws.Settle();
    aws.skew_ = skew;
    aws.Ask();
    const auto events = aws.Answer(200, kTerminate);
    ASSERT_THAT(KindsOf(events), ElementsAre(Kind::kAnnounced, Kind::kLeave));
    EXPECT_EQ(events[1].left, seconds(120));
  }
}

TEST(AwsWatch, ATimeThatIsNotBelievedIsToldWithTheReason) {
  const auto note = [](Duration skew) {
    Watching aws(PlanOf(Cloud::kAws));
    aws.Settle();
    aws.skew_ = skew;
    aws.Ask();
    return aws.Answer(200, kTerminate).at(0).note;
  };
  EXPECT_EQ(note(Duration(0)), "");
  EXPECT_EQ(note(-seconds(785)),   // of the 115 s that are left
            "the end it announces is 15 min 0 s ahead by this machine's clock, but AWS gives no "
            "more than 2 min 0 s of notice; assuming 2 min 0 s instead");
  EXPECT_EQ(note(seconds(175)),
            "the end it announces was 1 min 0 s ago by this machine's clock, which may be wrong; "
            "assuming 2 min 0 s instead");
}

TEST(AwsWatch, ARebalanceRecommendationIsToldOnceAndEndsNothing) {
  Watching aws(PlanOf(Cloud::kAws));
  int hints = 0;
  for (int question = 0; question < 60; ++question) {
    const HttpRequest request = aws.Ask();
    const bool is_token = request.method == "PUT";
    const bool is_hint = request.target.ends_with("rebalance");
    const auto events = is_hint ? aws.Answer(200, R"({"noticeTime":"2026-03-01T11:59:00Z"})")
                                : aws.Answer(is_token ? 200 : 404, "token");
    for (const NoticeEvent& event : events) {
      EXPECT_TRUE(event.kind == Kind::kHint || event.kind == Kind::kFound);
      hints += event.kind == Kind::kHint ? 1 : 0;
    }
  }
  EXPECT_EQ(hints, 1);
  EXPECT_FALSE(aws.is_over());
}

TEST(AwsWatch, TheTokenIsRenewedAndARefusedOneIsReplacedAtOnce) {
  Watching aws(PlanOf(Cloud::kAws));
  aws.Settle();
  aws.Pass(hours(4));
  EXPECT_EQ(aws.Ask().method, "PUT");
  aws.Answer(500, "");   // the old one has two hours left
  EXPECT_EQ(HeaderOf(aws.Ask(), "X-aws-ec2-metadata-token"), "token-1");
  aws.Answer(404, "");
  aws.Pass(seconds(60));
  EXPECT_EQ(aws.Ask().method, "PUT");
  aws.Answer(200, "token-2");
  EXPECT_EQ(HeaderOf(aws.Ask(), "X-aws-ec2-metadata-token"), "token-2");
  aws.Answer(401, "");
  EXPECT_EQ(aws.Ask().method, "PUT");
  aws.Answer(200, "two words");
  EXPECT_EQ(aws.Ask().method, "PUT");
}

TEST(AwsWatch, AnOutageIsToldOnceAndAskedThrough) {
  Watching aws(PlanOf(Cloud::kAws));
  aws.Settle();
  aws.Ask();
  EXPECT_THAT(KindsOf(aws.NoAnswer()), ElementsAre(Kind::kUnreachable));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(aws.pause(), seconds(5));
    aws.Ask();
    EXPECT_THAT(i % 2 == 0 ? aws.NoAnswer() : aws.Answer(302, "elsewhere"), ElementsAre());
  }
  aws.Ask();
  EXPECT_THAT(KindsOf(aws.Answer(404, "")), ElementsAre(Kind::kReached));
}

TEST(GcpWatch, WaitsForAChangeOfWhatItWasToldFirst) {
  Watching gcp(PlanOf(Cloud::kGcp));
  const HttpRequest first = gcp.Ask();
  EXPECT_EQ(first.target, "/computeMetadata/v1/instance/preempted");
  EXPECT_EQ(HeaderOf(first, "Metadata-Flavor"), "Google");
  EXPECT_THAT(KindsOf(gcp.Answer(200, "FALSE", "1a2b")), ElementsAre(Kind::kFound));
  const HttpRequest second = gcp.Ask();
  EXPECT_THAT(second.target, HasSubstr("?wait_for_change=true&timeout_sec=20&last_etag=1a2b"));
  EXPECT_GT(second.limit, seconds(20));
  gcp.Pass(seconds(20));
  EXPECT_THAT(gcp.Answer(200, "FALSE", "1a2b"), ElementsAre());
  EXPECT_EQ(gcp.pause(), seconds(0));
  gcp.Ask();
  gcp.Pass(seconds(7));
  const auto events = gcp.Answer(200, "TRUE", "3c");
  ASSERT_THAT(KindsOf(events), ElementsAre(Kind::kAnnounced, Kind::kLeave));
  EXPECT_EQ(events[1].left, seconds(30));
}

TEST(GcpWatch, AServiceThatDoesNotWaitIsNotAskedWithoutAPause) {
  Watching gcp(PlanOf(Cloud::kGcp));
  gcp.Ask();
  gcp.Answer(200, "FALSE", "bad tag\r\nX: y");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(gcp.Ask().target.find("last_etag"), std::string::npos);
    gcp.Answer(200, "FALSE");
    EXPECT_EQ(gcp.pause(), seconds(5));
  }
}

TEST(AzureWatch, WhatIsFarAheadMayBeWithdrawn) {
  Watching azure(PlanOf(Cloud::kAzure));
  EXPECT_THAT(azure.Ask().target, HasSubstr("compute/name"));
  EXPECT_THAT(azure.Answer(200, "host_3"), ElementsAre());
  const HttpRequest request = azure.Ask();
  EXPECT_EQ(request.target, "/metadata/scheduledevents?api-version=2020-07-01");
  EXPECT_EQ(HeaderOf(request, "Metadata"), "true");
  EXPECT_THAT(KindsOf(azure.Answer(200, kFreshEvents)), ElementsAre(Kind::kFound));
  const std::string reboot =
      R"({"Events":[{"EventType":"Reboot","Resources":["host_3"],)"
      R"("NotBefore":"Sun, 01 Mar 2026 12:10:00 GMT"}]})";
  azure.Ask();
  EXPECT_THAT(KindsOf(azure.Answer(200, reboot)), ElementsAre(Kind::kAnnounced));
  azure.Pass(seconds(60));
  azure.Ask();
  EXPECT_THAT(azure.Answer(200, reboot), ElementsAre());   // told once
  azure.Ask();
  EXPECT_THAT(KindsOf(azure.Answer(200, kFreshEvents)), ElementsAre(Kind::kWithdrawn));
  EXPECT_THAT(azure.Pass(hours(1)), ElementsAre());
  EXPECT_FALSE(azure.is_over());
}

TEST(AzureWatch, WhatIsFarAheadIsLeftForInTimeEvenIfTheServiceIsGone) {
  Watching azure(PlanOf(Cloud::kAzure));
  azure.Ask();
  azure.Answer(404, "");
  azure.Ask();
  const std::string end = R"({"Events":[{"EventType":"Terminate",)"
                          R"("NotBefore":"Sun, 01 Mar 2026 12:10:00 GMT"}]})";
  EXPECT_THAT(KindsOf(azure.Answer(200, end)), ElementsAre(Kind::kFound, Kind::kAnnounced));
  azure.Ask();
  EXPECT_THAT(KindsOf(azure.NoAnswer()), ElementsAre(Kind::kUnreachable));
  EXPECT_THAT(azure.Pass(seconds(470)), ElementsAre());
  const auto events = azure.Pass(seconds(10));
  ASSERT_THAT(KindsOf(events), ElementsAre(Kind::kLeave));
  EXPECT_NEAR(events[0].left / seconds(1), 120, 3);
}

TEST(AzureWatch, APreemptionOfAnotherMachineIsNotOurs) {
  Watching azure(PlanOf(Cloud::kAzure));
  azure.Ask();
  azure.Answer(200, "host_4\n");
  azure.Ask();
  EXPECT_THAT(KindsOf(azure.Answer(
                  200, R"({"Events":[{"EventType":"Preempt","Resources":["host_3"]}]})")),
              ElementsAre(Kind::kFound));
}

// Scheduled events are switched on by the first request for them, whose answer may take minutes.
TEST(AzureWatch, OfAMachineThatIsAzuresTheFirstListIsWaitedFor) {
  Watching azure({.clouds = {Cloud::kAzure}, .is_sure = true});
  azure.Ask();
  azure.Answer(200, "spot7");
  for (int attempt = 1; attempt <= 6; ++attempt) {
    EXPECT_EQ(azure.Ask().limit, seconds(130));
    const std::vector<Kind> told(attempt == 3 ? 1 : 0, Kind::kUnreachable);
    EXPECT_EQ(KindsOf(azure.NoAnswer()), told) << attempt;
  }
  EXPECT_EQ(azure.pause(), seconds(30));
  azure.Ask();
  EXPECT_THAT(KindsOf(azure.Answer(200, kFreshEvents)), ElementsAre(Kind::kFound, Kind::kReached));
  EXPECT_EQ(azure.Ask().limit, seconds(10));
}

TEST(Watch, OneThatNobodyNamedIsGivenUpQuietly) {
  Watching watch({.clouds = {Cloud::kAws}});
  std::vector<Kind> kinds;
  for (int i = 0; i < 3; ++i) {
    watch.Ask();
    for (const Kind kind : KindsOf(watch.NoAnswer())) kinds.push_back(kind);
  }
  EXPECT_THAT(kinds, ElementsAre(Kind::kGaveUp));
  EXPECT_TRUE(watch.is_over());
}

TEST(Watch, OneThatWasNamedIsAskedForEverWithGrowingPauses) {
  Watching watch(PlanOf(Cloud::kGcp));
  watch.Ask();
  EXPECT_THAT(KindsOf(watch.NoAnswer()), ElementsAre(Kind::kUnreachable));
  for (int i = 0; i < 30; ++i) {
    watch.Ask();
    // That it answers after all, but not as one of ours, is told once, too.
    const auto events = watch.Answer(404, "nothing here");
    EXPECT_EQ(events.size(), i == 0 ? 1u : 0u);
  }
  EXPECT_EQ(watch.pause(), seconds(60));
}

TEST(Watch, NonsenseIsToldOfAlsoWhereNobodyAnsweredBefore) {
  Watching watch(PlanOf(Cloud::kGcp));
  watch.Ask();
  EXPECT_THAT(KindsOf(watch.NoAnswer()), ElementsAre(Kind::kUnreachable));
  watch.Ask();
  const auto events = watch.Answer(200, "<html>");
  ASSERT_THAT(KindsOf(events), ElementsAre(Kind::kUnreachable));
  EXPECT_THAT(events[0].text, HasSubstr("GCP: "));
  for (int i = 0; i < 3; ++i) {   // each is told once
    watch.Ask();
    EXPECT_THAT(watch.NoAnswer(), ElementsAre());
    watch.Ask();
    EXPECT_THAT(watch.Answer(500, ""), ElementsAre());
  }
  watch.Ask();
  EXPECT_THAT(KindsOf(watch.Answer(200, "FALSE")), ElementsAre(Kind::kFound, Kind::kReached));
  watch.Ask();
  EXPECT_THAT(KindsOf(watch.Answer(200, "<html>")), ElementsAre(Kind::kUnreachable));
}

TEST(Watch, TheFirstCloudThatAnswersAsOneIsTaken) {
  Watching watch({.clouds = {Cloud::kAws, Cloud::kGcp, Cloud::kAzure}});
  watch.Ask();
  EXPECT_THAT(watch.Answer(404, ""), ElementsAre());
  EXPECT_THAT(watch.Ask().target, HasSubstr("computeMetadata"));
  const auto events = watch.Answer(200, "FALSE");
  ASSERT_THAT(KindsOf(events), ElementsAre(Kind::kFound));
  EXPECT_EQ(events[0].text, "GCP");
  watch.Ask();
  EXPECT_THAT(KindsOf(watch.NoAnswer()), ElementsAre(Kind::kUnreachable));
  EXPECT_THAT(watch.Ask().target, HasSubstr("computeMetadata"));
}

TEST(Watch, AnEndThatIsKnownFromTheStartNeedsNoService) {
  Watching slurm({.known_end = kNoon + 3600'000'000'000, .known_end_text = "time limit"});
  EXPECT_EQ(slurm.pause(), seconds(3480));
  EXPECT_THAT(slurm.Pass(seconds(3479)), ElementsAre());
  const auto events = slurm.Pass(seconds(1));
  ASSERT_THAT(KindsOf(events), ElementsAre(Kind::kLeave));
  EXPECT_EQ(events[0].text, "time limit");
  EXPECT_EQ(events[0].left, seconds(120));
  Watching brief({.known_end = kNoon + 60'000'000'000, .known_end_text = "time limit"});
  EXPECT_EQ(brief.pause(), seconds(30)) << "half of it is for the work";
  Watching past({.known_end = kNoon - 1, .known_end_text = "time limit"});
  EXPECT_TRUE(past.is_over());
}

// Any replies in any order: the job is only ever left for a whole notice.
TEST(Watch, GarbageNeverMakesAHostLeave) {
  Garbage garbage(20261122);
  const std::vector<std::string> bodies = {
      "", "FALSE", "TRUE!", "null", "{}", kFreshEvents, "{\"action\":\"terminate\"",
      "{\"noticeTime\":\"x\"}", "token", "{\"Events\":[{\"EventType\":\"Freeze\"}]}"};
  for (int round = 0; round < 300; ++round) {
    NoticePlan plan{.clouds = {Cloud::kAws, Cloud::kGcp, Cloud::kAzure},
                    .insists = garbage.Below(2) == 0};
    if (garbage.Below(2) == 0) plan.clouds = {garbage.OneOf(plan.clouds)};
    Watching watch(plan);
    for (int question = 0; question < 100 && !watch.is_over(); ++question) {
      watch.Ask();
      const std::string body =
          garbage.Below(3) == 0 ? garbage.Bytes(64) : garbage.OneOf(bodies);
      const int status = garbage.OneOf<int>({200, 200, 200, 404, 401, 302, 500, 0});
      const auto events = garbage.Below(5) == 0 ? watch.NoAnswer() : watch.Answer(status, body);
      for (const NoticeEvent& event : events) {
        EXPECT_TRUE(event.kind != Kind::kLeave && event.kind != Kind::kAnnounced)
            << garbage.Where(round) << ": " << event.text << " for " << body;
      }
      EXPECT_TRUE(watch.is_over() || watch.pause() <= seconds(60));
    }
  }
}

TEST(Watch, WorkersGetAllButTheTimeToSayGoodbye) {
  EXPECT_EQ(TimeToSave(seconds(120)), seconds(115));
  EXPECT_EQ(TimeToSave(seconds(10)), seconds(8));
  EXPECT_GT(TimeToSave(seconds(0)), seconds(0));
}

// Its reply is the whole list, of which only the worst entry counts.
TEST(AzureWatch, AHintThatIsLeftInTheListDoesNotKeepAWithdrawnNotice) {
  Watching azure(PlanOf(Cloud::kAzure));
  azure.Ask();
  azure.Answer(404, "");
  azure.Ask();
  const std::string freeze = R"({"EventType":"Freeze"})";
  const std::string end = R"({"EventType":"Terminate",)"
                          R"("NotBefore":"Sun, 01 Mar 2026 12:10:00 GMT"})";
  EXPECT_THAT(KindsOf(azure.Answer(200, R"({"Events":[)" + end + "," + freeze + "]}")),
              ElementsAre(Kind::kFound, Kind::kAnnounced));
  azure.Ask();
  EXPECT_THAT(KindsOf(azure.Answer(200, R"({"Events":[)" + freeze + "]}")),
              ElementsAre(Kind::kWithdrawn, Kind::kHint));
  EXPECT_THAT(azure.Pass(hours(1)), ElementsAre());
  EXPECT_FALSE(azure.is_over());
}

TEST(AwsWatch, ARebalanceRecommendationWithdrawsNoInterruption) {
  Watching aws({.clouds = {Cloud::kAws}, .insists = true, .lead = seconds(10)});
  aws.Ask();
  aws.Answer(200, "token-1");
  aws.Ask();
  EXPECT_THAT(KindsOf(aws.Answer(200, kTerminate)), ElementsAre(Kind::kFound, Kind::kAnnounced));
  EXPECT_THAT(aws.Ask().target, HasSubstr("rebalance"));
  EXPECT_THAT(KindsOf(aws.Answer(200, R"({"noticeTime":"2026-03-01T11:59:00Z"})")),
              ElementsAre(Kind::kHint));
  EXPECT_THAT(KindsOf(aws.Pass(seconds(120))), ElementsAre(Kind::kLeave));
}

}  // namespace
}  // namespace keel
