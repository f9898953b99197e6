// The JSON that programs get.
#include "elastic/status/api.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/elastic/status/some_status.h"

namespace keel {
namespace {

Json ApiOf(const JobStatus& status, int64_t now = kBegin + 10 * kSecondNanos) {
  const std::string text = StatusApiText(status, now);
  const Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << (json.ok() ? "" : json.error().message);
  return json.ok() ? *json : Json::object();
}

TEST(StatusApi, TellsMembersEpochsAndEvents) {
  JobStatus status(JobOf());
  status.OnHosts({HostOf(0, 2, 40), HostOf(1, 2, 40)}, kBegin);
  status.OnEpoch(EpochOf(1, 2, 1), kBegin + kSecondNanos);
  status.OnBreak(BreakOf(1, BreakCause::kDied, "rank 1 died"), kBegin + 2 * kSecondNanos);
  status.OnEpoch(EpochOf(2, 1, 1), kBegin + 3 * kSecondNanos);
  const Json json = ApiOf(status);
  EXPECT_EQ(json["job"], "run7");
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["kind"], "in-place");
  EXPECT_EQ(json["step"], 40);
  EXPECT_EQ(json["started"], "2026-09-21T14:13:20Z");
  EXPECT_EQ(json["epoch"]["number"], 2);
  EXPECT_TRUE(json["epoch"]["ended"].is_null());
  EXPECT_EQ(json["epochs"][0]["end"], "died");
  EXPECT_DOUBLE_EQ(json["epochs"][0]["ended_s"].get<double>() -
                       json["epochs"][0]["begun_s"].get<double>(), 1.0);
  EXPECT_EQ(json["members"][0]["workers"][1]["rank"], 1);
  EXPECT_EQ(json["members"][0]["workers"][1]["state"], "running");
  EXPECT_EQ(json["members"][1]["blame"]["deaths"]["signalled"], 2);
  EXPECT_EQ(json["members"][1]["health"], "good");
  EXPECT_EQ(json["members"][0]["health"], "");
  EXPECT_EQ(json["events_total"], 5);
  EXPECT_EQ(json["events"][3]["kind"], "break");
  EXPECT_EQ(json["events"][3]["epoch"], 1);
}

TEST(StatusApi, TellsWhatWorkersTellOfThemselves) {
  JobStatus status(JobOf());
  status.OnFigures({FiguresOf(0, 10, 2.0)}, SomeTime(), kBegin);
  status.OnFigures({FiguresOf(0, 20, 0.125)}, SomeTime(), kBegin + kSecondNanos);
  status.OnSaved(15, kBegin);
  const Json json = ApiOf(status);
  EXPECT_EQ(json["loss"], 0.125);
  EXPECT_EQ(json["samples_per_s"], 640.0);
  EXPECT_EQ(json["workers_here"][0]["steps"], 20);
  EXPECT_DOUBLE_EQ(json["workers_here"][0]["seconds_in"]["forward"].get<double>(), 0.6);
  EXPECT_DOUBLE_EQ(json["time_here"]["goodput"].get<double>(), 0.9);
  EXPECT_EQ(json["curve"].size(), 2U);
  EXPECT_EQ(json["checkpoints"][0]["step"], 15);
}

// The curve's points are far apart by then.
TEST(StatusApi, OfALongJobTooTheLossIsTheNewest) {
  JobStatus status(JobOf());
  for (int64_t i = 0; i < 10'000; ++i) {
    status.OnFigures({FiguresOf(0, i, static_cast<double>(i))}, SomeTime(),
                     kBegin + i * kSecondNanos);
  }
  EXPECT_EQ(ApiOf(status)["loss"], 9999.0);
  status.OnFigures({}, SomeTime(), kBegin + 10'000 * kSecondNanos);
  EXPECT_EQ(ApiOf(status)["loss"], 9999.0) << "nobody is there to tell another";
}

TEST(StatusApi, WhatIsNotKnownIsNull) {
  const Json json = ApiOf(JobStatus(JobOf()), kBegin);
  EXPECT_TRUE(json["step"].is_null());
  EXPECT_TRUE(json["epoch"].is_null());
  EXPECT_TRUE(json["members"].is_array());
  EXPECT_TRUE(json["epochs"].empty());
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["time_here"]["goodput"].is_null());
}

TEST(StatusApi, IsJsonWhateverOthersWrote) {
  const std::string evil("\"\\</script>\0\x1b\xff\xc3", 15);
  JobStatus status(JobOf(evil));
  status.OnEvent("death", evil, kBegin);
  StatusHost host = HostOf(0, 1, 1, evil);
  status.OnHosts({host}, kBegin);
  const Json json = ApiOf(status);
  EXPECT_EQ(json["events"].size(), 2U);
}

TEST(StatusApi, HoldsUpWith64HostsAnd10000Events) {
  const JobStatus status = BigStatus();
  const std::string text = StatusApiText(status, kBegin);
  EXPECT_LT(text.size(), 2U << 20);
  const Json json = ApiOf(status);
  EXPECT_EQ(json["members"].size(), 64U);
  EXPECT_EQ(json["events"].size(), kStatusEventsMax);
  EXPECT_EQ(json["events_total"], 10'064);
}

// Its record counts from then on only, but not its causes.
TEST(StatusApi, DeathsAgreeWithTheirCausesAlsoOfAHostThatRegisteredAnew) {
  JobStatus status(JobOf());
  StatusHost host = HostOf(1, 1, 1);
  host.record.deaths = 0;
  status.OnHosts({host}, kBegin);
  const Json json = ApiOf(status);
  EXPECT_EQ(json["members"][0]["deaths"], 3);
  EXPECT_EQ(json["members"][0]["blame"]["deaths"]["exited"], 1);
}

}  // namespace
}  // namespace keel
