// What the status line says.
#include "elastic/report/status_line.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(StatusText, SaysWhereTheJobIs) {
  MemberRecord host;
  host.seats.resize(2);
  EXPECT_EQ(StatusText(host, std::nullopt), "waiting for the first epoch");
  EpochRecord epoch;
  epoch.number = 3;
  epoch.hosts.resize(2);
  epoch.workers.resize(4);
  EXPECT_EQ(StatusText(host, epoch), "epoch 3: 4 workers on 2 hosts");
  host.seats[1].position.step = 120;
  host.blame.exited = 1;
  EXPECT_EQ(StatusText(host, epoch), "epoch 3: 4 workers on 2 hosts, step 120, 1 failure here");
}

TEST(StatusText, SaysThatTheJobStopsAndWhy) {
  MemberRecord host;
  host.state = MemberState::kLeaving;
  host.reason = "SIG\nTERM";
  EXPECT_EQ(StatusText(host, std::nullopt), "stopping (SIG\\nTERM)");
  EpochRecord epoch;
  epoch.number = 3;
  epoch.hosts.resize(1);
  epoch.workers.resize(1);
  EXPECT_EQ(StatusText(host, epoch), "stopping (SIG\\nTERM), epoch 3: 1 worker on 1 host");
  host.reason.clear();
  EXPECT_EQ(StatusText(host, epoch), "stopping, epoch 3: 1 worker on 1 host");
}

TEST(StatusText, CountsTheFailuresFromBeforeTheHostRegisteredAnewToo) {
  MemberRecord host;
  host.deaths = 1;
  host.blame.exited = 2;
  host.blame.ended = 1;
  EpochRecord epoch;
  epoch.number = 3;
  EXPECT_EQ(StatusText(host, epoch), "epoch 3: 0 workers on 0 hosts, 3 failures here");
}

}  // namespace
}  // namespace keel
