// What is kept of a job for those who watch it: the newest, and never more than so much.
#include "elastic/job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/some_status.h"

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
    EXPECT_THAT(event.text, EndsWith("..."));
  }
  EXPECT_LE(status.epochs().back().reason.size(), kStatusTextMax + 3);
  EXPECT_LE(status.epochs().back().end_reason.size(), kStatusTextMax + 3);
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

}  // namespace
}  // namespace keel
