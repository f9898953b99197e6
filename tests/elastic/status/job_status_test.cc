// What is kept of a job for those who watch it: the newest, and never more than so much.
#include "elastic/status/job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/status/some_status.h"

namespace keel {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(JobStatus, AnEpochRunsFromItsRecordToItsBreak) {
  JobStatus status(JobOf());
  EXPECT_EQ(status.state(), "waiting");
  EXPECT_EQ(status.running(), nullptr);
  status.OnEpoch(EpochOf(1, 6, 2), kBegin);
  ASSERT_NE(status.running(), nullptr);
  EXPECT_EQ(status.running()->workers, 6);
  EXPECT_EQ(status.running()->hosts, 2);
  EXPECT_EQ(status.state(), "running");
  status.OnBreak(BreakOf(1, BreakCause::kHostLost, "node1 is silent"), kBegin + 5);
  EXPECT_EQ(status.state(), "waiting");
  EXPECT_EQ(status.epochs().back().ended_nanos, kBegin + 5);
  EXPECT_EQ(status.epochs().back().end, "host-lost");
  EXPECT_EQ(status.epochs().back().end_reason, "node1 is silent");
}

TEST(JobStatus, AnEpochThatNobodyBrokeEndsAtABoundary) {
  JobStatus status(JobOf());
  status.OnEpoch(EpochOf(1, 2, 1), kBegin);
  status.OnEpoch(EpochOf(2, 3, 1), kBegin + 7);
  EXPECT_EQ(status.epochs().front().end, "boundary");
  EXPECT_EQ(status.epochs().front().ended_nanos, kBegin + 7);
  status.OnEvent("end", "all finished", kBegin + 9);
  EXPECT_EQ(status.epochs().back().end, "end");
  EXPECT_EQ(status.running(), nullptr);
}

TEST(JobStatus, AStoreThatComesBackNamesAnEpochThatIsKnown) {
  JobStatus status(JobOf());
  status.OnEpoch(EpochOf(4, 2, 1), kBegin);
  status.OnEpoch(EpochOf(4, 2, 1), kBegin + 7);
  EXPECT_EQ(status.epochs_total(), 1);
  EXPECT_EQ(status.running()->begun_nanos, kBegin);
}

TEST(JobStatus, HostsThatComeAndGoAreEvents) {
  JobStatus status(JobOf());
  status.OnHosts({HostOf(0, 1, 3), HostOf(1, 1, 5)}, kBegin);
  status.OnHosts({HostOf(0, 1, 3), HostOf(1, 1, 5)}, kBegin + 1);
  EXPECT_EQ(status.events_total(), 2);
  EXPECT_EQ(status.step(), 5);
  EXPECT_TRUE(status.in_place());
  StatusHost lost = HostOf(1, 1, 5);
  lost.gone = "node1 is silent";
  status.OnHosts({HostOf(0, 1, 3), lost}, kBegin + 2);
  status.OnHosts({HostOf(0, 1, 3), lost}, kBegin + 3);
  EXPECT_EQ(status.events_total(), 3);
  EXPECT_EQ(status.events().back().kind, "host-gone");
  EXPECT_EQ(status.events().back().text, "node1 is silent");
  // One that was never here while somebody looked is no news either way.
  StatusHost stranger = HostOf(2, 1, 5);
  stranger.gone = "refused";
  status.OnHosts({HostOf(0, 1, 3), lost, stranger}, kBegin + 4);
  EXPECT_EQ(status.events_total(), 3);
}

TEST(JobStatus, AHostThatLeavesMakesTheJobStopAsItSees) {
  JobStatus status(JobOf());
  status.OnEpoch(EpochOf(1, 1, 1), kBegin);
  StatusHost own = HostOf(0, 1, 3);
  own.record.state = MemberState::kLeaving;
  status.OnHosts({own}, kBegin);
  EXPECT_EQ(status.state(), "stopping");
  // It had been here before, in another slot.
  StatusHost former = HostOf(0, 1, 3);
  former.gone = "was last heard from 4 s ago";
  own.slot = 1;
  status.OnHosts({former, own}, kBegin + 1);
  EXPECT_EQ(status.state(), "stopping");
}

TEST(JobStatus, OfVeryMuchTheNewestIsKeptAndAllIsCounted) {
  const JobStatus status = BigStatus();
  EXPECT_EQ(status.events().size(), kStatusEventsMax);
  EXPECT_EQ(status.events_total(), 10'000 + 64);
  EXPECT_EQ(status.events_by_kind().at("death"), 2500);
  EXPECT_EQ(status.epochs().size(), kStatusEpochsMax);
  EXPECT_EQ(status.epochs_total(), 2500);
  EXPECT_EQ(status.epochs().back().number, 2500);
  for (const StatusEvent& event : status.events()) {
    EXPECT_LE(event.text.size(), kStatusTextMax + 3);
  }
  EXPECT_THAT(status.events().back().text, HasSubstr("a checkpoint of step 2500"));
  EXPECT_LE(status.points().size(), kStatusPointsMax);
  EXPECT_EQ(status.checkpoints().size(), kStatusCheckpointsMax);
  EXPECT_EQ(status.checkpoints_total(), 2500);
  EXPECT_THAT(status.epochs().back().reason, EndsWith("..."));
  EXPECT_LE(status.epochs().back().reason.size(), kStatusTextMax + 3);
  EXPECT_LE(status.epochs().back().end_reason.size(), kStatusTextMax + 3);
}

TEST(JobStatus, WhatIsTooLongIsCutBetweenCharacters) {
  JobStatus status(JobOf());
  EpochRecord epoch = EpochOf(1, 1, 1);
  epoch.reason = "x";
  while (epoch.reason.size() <= kStatusTextMax) epoch.reason += "\xc3\xa4";
  status.OnEpoch(epoch, kBegin);
  const std::string reason = status.epochs().back().reason;
  EXPECT_THAT(reason, EndsWith("\xc3\xa4..."));
  EXPECT_LE(reason.size(), kStatusTextMax + 3);
  EXPECT_GE(reason.size(), kStatusTextMax + 2);
}

TEST(JobStatus, FiguresMakeCurvesOfTheLowestRank) {
  JobStatus status(JobOf());
  EXPECT_EQ(status.samples_per_s(), std::nullopt);
  status.OnFigures({FiguresOf(0, 10, 2.0), FiguresOf(1, 10, 9.0)}, SomeTime(), kBegin);
  status.OnFigures({FiguresOf(0, 10, 2.0)}, SomeTime(), kBegin + kSecondNanos);   // nothing new
  status.OnFigures({FiguresOf(0, 30, std::nullopt)}, SomeTime(), kBegin + 2 * kSecondNanos);
  ASSERT_EQ(status.points().size(), 2U);
  EXPECT_EQ(status.points()[0].loss, 2.0);
  EXPECT_EQ(status.points()[0].samples_per_s, std::nullopt);
  EXPECT_EQ(status.points()[1].loss, std::nullopt);
  EXPECT_DOUBLE_EQ(*status.points()[1].samples_per_s, 20 * 64 / 2.0);
  EXPECT_DOUBLE_EQ(*status.samples_per_s(), 20 * 64 / 2.0);
  // A job that stands still makes fewer and fewer.
  status.OnFigures({FiguresOf(0, 30, 1.0)}, SomeTime(), kBegin + 4 * kSecondNanos);
  EXPECT_DOUBLE_EQ(*status.samples_per_s(), 20 * 64 / 4.0);
  // Another worker counts from its own beginning.
  status.OnFigures({FiguresOf(0, 5, 1.0, "other")}, SomeTime(), kBegin + 5 * kSecondNanos);
  EXPECT_EQ(status.points().back().samples_per_s, std::nullopt);
  EXPECT_EQ(status.samples_per_s(), std::nullopt);
}

TEST(JobStatus, StepTimesAreThoseOfTheLastWhile) {
  JobStatus status(JobOf());
  const int64_t window = kStatusWindowNanos;
  status.OnFigures({FiguresOf(0, 100, 2.0)}, SomeTime(), kBegin);
  status.OnFigures({FiguresOf(0, 200, 2.0)}, SomeTime(), kBegin + window / 2);
  EXPECT_EQ(status.trends()[0].since.steps, 100);
  status.OnFigures({FiguresOf(0, 300, 2.0)}, SomeTime(), kBegin + window);
  EXPECT_EQ(status.trends()[0].since.steps, 100);
  status.OnFigures({FiguresOf(0, 400, 2.0)}, SomeTime(), kBegin + 2 * window);
  EXPECT_EQ(status.trends()[0].since.steps, 300);
  EXPECT_EQ(status.trends()[0].now.told.steps, 400);
  status.OnFigures({}, SomeTime(), kBegin + 2 * window + 1);
  EXPECT_TRUE(status.trends().empty()) << "nobody is there";
}

TEST(JobStatus, ACheckpointIsOneHoweverManyTellOfIt) {
  JobStatus status(JobOf());
  for (const int64_t step : {50, 50, 100, 100}) status.OnSaved(step, kBegin + step);
  EXPECT_EQ(status.checkpoints_total(), 2);
  EXPECT_EQ(status.checkpoints().back().wall_nanos, kBegin + 100);
  EXPECT_EQ(status.events_by_kind().at("saved"), 2);
}

TEST(JobStatus, ALongCurveIsThinnedOutEvenly) {
  JobStatus status(JobOf());
  const int64_t ticks = 10'000;
  for (int64_t i = 0; i < ticks; ++i) {
    status.OnFigures({FiguresOf(0, i, 1.0)}, SomeTime(), kBegin + i * kSecondNanos);
  }
  const auto& points = status.points();
  EXPECT_LE(points.size(), kStatusPointsMax);
  EXPECT_GT(points.size(), kStatusPointsMax / 4);
  EXPECT_EQ(points.front().step, 0);
  EXPECT_GT(points.back().step, ticks - 100);
  int64_t widest = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    widest = std::max(widest, points[i].step - points[i - 1].step);
  }
  EXPECT_LT(widest, 4 * ticks / static_cast<int64_t>(points.size()));
}

TEST(JobStatus, OfManyHostsThatAreGoneTheNewestAreShown) {
  std::vector<HostView> views;
  for (int64_t slot = 0; slot < 1000; ++slot) {
    HostView view;
    view.slot = slot;
    view.record.incarnation = "i" + std::to_string(slot);
    view.gone = slot < 990;
    view.gone_reason = "silent";
    views.push_back(view);
  }
  const std::vector<StatusHost> hosts = StatusHostsOf(views, "i995");
  ASSERT_EQ(hosts.size(), 10 + kStatusGoneHostsMax);
  EXPECT_EQ(hosts.front().slot, 990 - static_cast<int64_t>(kStatusGoneHostsMax));
  EXPECT_EQ(hosts.front().gone, "silent");
  EXPECT_EQ(hosts.back().slot, 999);
  for (const StatusHost& host : hosts) EXPECT_EQ(host.is_here, host.slot == 995);
}

// Its slot may be the lowest of all.
TEST(JobStatus, AHostThatGoesIsToldOfHoweverManyWentBefore) {
  std::vector<HostView> views;
  for (int64_t slot = 0; slot < 100; ++slot) {
    HostView view;
    view.slot = slot;
    view.record.host = "node" + std::to_string(slot);
    view.gone = slot > 0;
    view.gone_reason = "silent";
    view.heard = TimePoint{std::chrono::seconds(slot == 0 ? 1000 : slot)};
    views.push_back(view);
  }
  JobStatus status(JobOf());
  status.OnHosts(StatusHostsOf(views, ""), kBegin);
  views[0].gone = true;
  views[0].gone_reason = "node0 is silent";
  status.OnHosts(StatusHostsOf(views, ""), kBegin + 1);
  EXPECT_EQ(status.events().back().kind, "host-gone");
  EXPECT_EQ(status.events().back().text, "node0 is silent");
  ASSERT_EQ(status.hosts().size(), kStatusGoneHostsMax);
  EXPECT_EQ(status.hosts().front().slot, 0);
  EXPECT_EQ(status.hosts().back().slot, 99);
}

TEST(JobStatus, AHostThatIsGoneIsNotAtAnyStep) {
  JobStatus status(JobOf());
  StatusHost lost = HostOf(1, 1, 9000);
  lost.gone = "node1 is silent";
  status.OnHosts({HostOf(0, 1, 3), lost}, kBegin);
  EXPECT_EQ(status.step(), 3);
}

TEST(JobStatus, NamesTheStoreThatItsHostFollowsNow) {
  JobStatus status(JobOf());
  status.OnRole(false, "10.0.0.2:31000");
  EXPECT_EQ(status.job().store, "10.0.0.2:31000");
  EXPECT_FALSE(status.job().sees_all);
}

// The new board numbers slots afresh, and only its coordinator is there at first.
TEST(JobStatus, AHostThatTakesTheRoleOverSeesNobodyJoinWhoWasThere) {
  JobStatus status(JobOf());
  status.OnRole(false, "10.0.0.0:29400");
  StatusHost own = HostOf(1, 1, 3);
  own.slot = -1;
  status.OnHosts({own}, kBegin);
  EXPECT_EQ(status.events_total(), 0) << "it has not registered yet";
  own.slot = 1;
  status.OnHosts({own}, kBegin);
  EXPECT_EQ(status.events().back().text, "node1 (slot 1)");
  EpochRecord epoch = EpochOf(1, 2, 2);
  epoch.hosts[0].incarnation = "i1";
  epoch.hosts[1].incarnation = "i2";
  status.OnEpoch(epoch, kBegin);
  const int64_t before = status.events_total();
  status.OnRole(true, "10.0.0.1:31000");
  own.slot = 0;
  status.OnHosts({own}, kBegin + 1);
  StatusHost other = HostOf(2, 1, 3);
  other.slot = 1;
  status.OnHosts({own, other}, kBegin + 2);
  EXPECT_EQ(status.events_total(), before);
  status.OnHosts({own, other, HostOf(3, 1, 3)}, kBegin + 3);
  EXPECT_EQ(status.events().back().text, "node3 (slot 3)");
  EXPECT_EQ(status.events_total(), before + 1);
  other.gone = "node2 is silent";
  status.OnHosts({own, other}, kBegin + 4);
  EXPECT_EQ(status.events().back().text, "node2 is silent");
  other.gone.clear();
  other.slot = 5;
  status.OnHosts({own, other}, kBegin + 5);
  EXPECT_EQ(status.events().back().text, "node2 (slot 5)") << "it came back";
}

// As far as the board tells them all at once.
TEST(JobStatus, WhomTheFirstListOfATakeoverNamesIsNoNews) {
  JobStatus status(JobOf());
  status.OnRole(false, "10.0.0.0:29400");
  status.OnRole(true, "10.0.0.1:31000");
  status.OnHosts({HostOf(0, 1, 3), HostOf(1, 1, 3)}, kBegin);
  EXPECT_EQ(status.events_total(), 0);
  status.OnHosts({HostOf(0, 1, 3), HostOf(1, 1, 3), HostOf(2, 1, 3)}, kBegin + 1);
  EXPECT_EQ(status.events_total(), 1);
}

}  // namespace
}  // namespace keel
