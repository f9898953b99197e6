// Shun: whom the job leaves out, and whom it keeps although something speaks against it.
#include "elastic/decisions/shun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;


constexpr TimePoint kShunNow{10000s};

class Shun : public testing::Test {
 protected:
  Shun() {
    policy_.shun_after = 3;
    policy_.restarts.window = 10min;
    view_.kind = JobKind::kInPlace;
    view_.epoch.emplace();
  }

  HostView& Add(int deaths, Duration ago = 5s) {
    HostView host;
    host.slot = static_cast<int64_t>(view_.hosts.size());
    const std::string number = std::to_string(host.slot);
    host.record.incarnation = "i" + number;
    host.record.host = "h" + number;
    host.record.machine = "m" + number;
    host.record.epoch.number = 4;
    host.record.deaths = deaths;
    host.incidents.assign(static_cast<size_t>(deaths), kShunNow - ago);
    host.record.seats = {{"w", SeatState::kDead, 4, 0, {}, false, "killed by signal 9"}};
    view_.epoch->record.hosts.push_back({host.slot, host.record.incarnation, 0});
    view_.hosts.push_back(host);
    return view_.hosts.back();
  }

  std::optional<Decision> Decide() { return DecideShun(view_, policy_, kShunNow); }

  JobView view_;
  JobPolicy policy_;
};

TEST_F(Shun, AHostOfWhichThreeWorkersDiedIsLeftOut) {
  Add(0);
  HostView& bad = Add(2);
  EXPECT_FALSE(Decide());
  bad.incidents.push_back(kShunNow);
  const auto decision = Decide();
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->verdict, Decision::Verdict::kShun);
  EXPECT_EQ(decision->reason, Reason::kUnfit);
  EXPECT_EQ(decision->slot, 1);
  EXPECT_EQ(decision->detail,
            "h1 (slot 1): its workers died 3 times within 10 min 0 s; the last one 'killed by "
            "signal 9'");
  view_.shunned.Add({"i1", "h1", "m1", decision->detail});
  EXPECT_FALSE(Decide()) << "it is said once";
}

TEST_F(Shun, DeathsBeforeTheWindowDoNotCount) {
  Add(0);
  Add(3, 10min);
  EXPECT_FALSE(Decide());
  policy_.restarts.window = Duration(0);
  ASSERT_TRUE(Decide());
  EXPECT_THAT(Decide()->detail, HasSubstr("its workers died 3 times within 1 h 0 min; the"));
  view_.hosts[1].incidents[0] = kShunNow - 1h;
  EXPECT_FALSE(Decide());
}

TEST_F(Shun, WhereWorkersOfMostHostsDieItIsTheProgram) {
  Add(3);
  Add(6);
  EXPECT_FALSE(Decide());
  Add(0);
  EXPECT_FALSE(Decide());
  Add(2);
  ASSERT_TRUE(Decide()) << "two of four are sound";
  EXPECT_EQ(Decide()->slot, 1) << "and this one died three times more often than the one between";
  view_.shunned.Add({"i8", "h8", "m8", "before"});
  EXPECT_FALSE(Decide()) << "two of five";
}

// Or a program that fails now and then would lose one host after the other.
TEST_F(Shun, WhoDiesAsOftenAsOthersIsNotLeftOut) {
  for (int host = 0; host < 6; ++host) Add(2);
  Add(3);
  Add(4);
  EXPECT_FALSE(Decide());
  Add(5);
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->slot, 8);
}

TEST_F(Shun, MoreThanCanBeRememberedWaitUntilTheOthersHaveLeft) {
  for (int host = 0; host < 100; ++host) Add(host < 40 ? 3 : 0);
  for (size_t left = 0; left < kShunnedMax; ++left) {
    const auto decision = Decide();
    ASSERT_TRUE(decision);
    const MemberRecord& record = view_.hosts[static_cast<size_t>(decision->slot)].record;
    view_.shunned.Add({record.incarnation, record.host, record.machine, "it dies"});
  }
  EXPECT_FALSE(Decide());
  view_.hosts[0].gone = true;
  EXPECT_TRUE(Decide());
}

TEST_F(Shun, WhoRegistersAnewAfterItWasLeftOutIsRefused) {
  Add(0);
  HostView& back = Add(0);
  view_.shunned.Add({"i1", "h1", "m1", "it died"});
  EXPECT_FALSE(Decide()) << "it is about to leave";
  back.record.epoch.number = 0;
  back.record.forgiven = true;
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kShunnedBefore);
  // Another launcher there was missed for a moment.
  HostView& beside = Add(0);
  beside.record.machine = "m1";
  beside.record.epoch.number = 0;
  beside.record.seen.met = "e3";
  view_.hosts[1].gone = true;
  EXPECT_FALSE(Decide());
}

TEST_F(Shun, ANewcomerThatIsNotReadyTakesNobodysPlace) {
  policy_.hosts_min = 2;
  Add(0);
  Add(3);
  HostView& newcomer = Add(0);
  newcomer.record.epoch.number = 0;
  view_.epoch->record.hosts.pop_back();
  newcomer.record.seats[0].state = SeatState::kStarting;
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded);
  newcomer.record.seats[0].state = SeatState::kReady;
  EXPECT_EQ(Decide()->reason, Reason::kUnfit);
}

TEST_F(Shun, NobodyIsLeftOutWhoAloneHasTheState) {
  Add(3);
  HostView& newcomer = Add(0);
  newcomer.record.epoch.number = 0;
  newcomer.record.seats[0].state = SeatState::kReady;
  view_.epoch->record.hosts.pop_back();
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded);
  EXPECT_THAT(Decide()->detail, HasSubstr("nobody else has what the job has made so far"));
  view_.epoch->record.hosts.push_back({1, "i1", 1});
  view_.hosts[1].record.seats[0].lacks = true;   // it catches up in its first epoch
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded);
  view_.hosts[1].record.seats[0].lacks = false;
  EXPECT_EQ(Decide()->reason, Reason::kUnfit);
}

// Its worker dies as it starts, and the others have formed an epoch without it.
TEST_F(Shun, AHostThatIsInNoEpochAnyMoreIsLeftOut) {
  Add(0);
  Add(0);
  Add(3);
  view_.epoch->record.hosts.pop_back();
  policy_.hosts_min = 2;
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kUnfit);
}

TEST_F(Shun, NobodyIsLeftOutOfWhomTheJobNeedsButThatIsSaidForEachDeath) {
  policy_.hosts_min = 2;
  Add(0);
  HostView& bad = Add(3);
  auto decision = Decide();
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->reason, Reason::kUnfitNeeded);
  EXPECT_THAT(decision->detail, HasSubstr("It stays, since the job needs 2 hosts"));
  bad.blamed_when_needed = 3;
  EXPECT_FALSE(Decide());
  bad.incidents.push_back(kShunNow);
  ++bad.record.deaths;
  EXPECT_TRUE(Decide());
  Add(0);
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kUnfit) << "somebody came who can take its place";
}

TEST_F(Shun, WhoWasShownToComputeWronglyIsLeftOutAtOnce) {
  Add(2);
  Add(2);
  Add(2);
  view_.hosts[2].record.unfit = "step 40, lane 3: rank 2 computes other bits";
  const auto decision = Decide();
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->slot, 2);
  EXPECT_THAT(decision->detail, HasSubstr("computes other bits"));
  policy_.shun_after = 0;
  EXPECT_FALSE(Decide());
}

// Or a program that comes to another result now and then would lose all of its machines.
TEST_F(Shun, WhereMostHostsAreShownToComputeWronglyItIsTheProgram) {
  for (int host = 0; host < 4; ++host) Add(0);
  view_.hosts[0].record.unfit = "lane 3";
  view_.hosts[0].record.deaths = 1;
  view_.shunned.Add({"i8", "h8", "m8", "lane 4"});
  EXPECT_EQ(Decide()->reason, Reason::kUnfit) << "three of five are sound";
  view_.shunned.Add({"i9", "h9", "m9", "lane 4"});
  view_.shunned.Add({"i7", "h7", "m7", "lane 4"});
  auto decision = Decide();
  ASSERT_TRUE(decision) << "three of seven";
  EXPECT_EQ(decision->reason, Reason::kUnfitNeeded);
  EXPECT_THAT(decision->detail, HasSubstr("lane 3. It stays, since more than half of all hosts"));
  view_.hosts[0].blamed_when_needed = 1;
  EXPECT_FALSE(Decide()) << "it was said";
}

TEST_F(Shun, AForgivenMachineDoesNotCountAsLeftOut) {
  Add(0).record.forgiven = true;
  HostView& bad = Add(0);
  bad.record.unfit = "lane 3";
  bad.record.deaths = 1;
  view_.shunned.Add({"i8", "h0", "m0", "lane 4"});
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kUnfit) << "one of two is sound";
  view_.hosts[0].record.forgiven = false;
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded) << "another one of the same machine";
}

TEST_F(Shun, TheCoordinatorStaysWhereNobodyCanTakeItsRole) {
  Add(3);
  Add(0);
  view_.coordinator = "i0";
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded);
  EXPECT_THAT(Decide()->detail, HasSubstr("it coordinates, and nobody can take that over"));
  view_.hosts[1].record.peer = "10.0.0.2:1";
  EXPECT_EQ(Decide()->reason, Reason::kUnfit);
  view_.hosts[0].record.fingerprint = "avx512";
  view_.hosts[1].record.fingerprint = "avx2";
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded);
}

TEST_F(Shun, AnotherLauncherOfItsHostIsRefusedUnlessItIsForgiven) {
  Add(0);
  Add(0).record.host = "h7";   // its name may be another one's, as that of a pod
  view_.hosts[1].record.epoch.number = 0;
  EXPECT_FALSE(Decide());
  view_.shunned.Add({"i9", "h7", "m9", "it died"});
  EXPECT_FALSE(Decide());
  view_.shunned.Add({"i9", "h9", "m1", "it died"});
  const auto decision = Decide();
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->verdict, Decision::Verdict::kRefuse);
  EXPECT_EQ(decision->reason, Reason::kShunnedBefore);
  EXPECT_EQ(decision->slot, 1);
  EXPECT_EQ(decision->detail,
            "h7 (slot 1) was left out of this job before (it died). If its machine is sound now, "
            "start it with --forgive");
  view_.hosts[1].record.epoch.number = 3;
  EXPECT_FALSE(Decide()) << "it was with the job all the time, and comes from another board";
  view_.hosts[1].record.epoch.number = 0;
  view_.hosts[1].record.forgiven = true;
  EXPECT_FALSE(Decide());
}

// Such workers die of each other; and who stops leaves anyway.
TEST_F(Shun, NobodyIsLeftOutOfAForeignJobOrOneThatStops) {
  Add(0);
  Add(3);
  ASSERT_TRUE(Decide());
  view_.kind = JobKind::kForeign;
  EXPECT_FALSE(Decide());
  view_.kind = JobKind::kInPlace;
  view_.stop.emplace();
  EXPECT_FALSE(Decide());
  view_.stop.reset();
  view_.hosts[1].record.state = MemberState::kLeaving;
  EXPECT_FALSE(Decide());
}

TEST_F(Shun, AMachineThatWasLeftOutTwiceCountsOnce) {
  Add(0);
  Add(0);
  Add(0).record.unfit = "lane 3";
  view_.hosts[2].record.deaths = 1;
  for (const char* launcher : {"i7", "i8", "i9"}) {
    view_.shunned.Add({launcher, "h9", "m9", "lane 4"});
  }
  ASSERT_TRUE(Decide());
  EXPECT_EQ(Decide()->reason, Reason::kUnfit) << "two of four are sound";
  view_.shunned.Add({"i5", "h5", "", "lane 4"});
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded) << "it may be of any machine";
}

// Or the job would refuse it next, and be over with nothing saved.
TEST_F(Shun, AnotherLauncherOfItsMachineIsNobodyWhoStays) {
  Add(3);
  HostView& beside = Add(0);
  beside.record.machine = "m0";
  beside.record.epoch.number = 0;
  auto decision = Decide();
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->reason, Reason::kUnfitNeeded);
  EXPECT_THAT(decision->detail, HasSubstr("the job needs 1 host: add another machine"));
  HostView& newcomer = Add(0);
  newcomer.record.epoch.number = 0;
  newcomer.record.seats[0].state = SeatState::kReady;
  view_.epoch->record.hosts.pop_back();
  EXPECT_THAT(Decide()->detail, HasSubstr("nobody else has what the job has made so far"));
  HostView& with_state = view_.hosts[1];   // Add() may have moved it
  with_state.record.forgiven = true;
  EXPECT_EQ(Decide()->reason, Reason::kUnfit);
  with_state.record.forgiven = false;
  with_state.record.seen.met = "e3";
  EXPECT_EQ(Decide()->reason, Reason::kUnfit) << "it was in an epoch, and is not refused";
}

TEST_F(Shun, TheRoleGoesToNobodyWhoIsRefusedNext) {
  Add(3);
  Add(0);
  Add(0);
  view_.coordinator = "i0";
  view_.hosts[1].record.machine = "m0";
  view_.hosts[1].record.epoch.number = 0;
  view_.hosts[1].record.peer = "10.0.0.1:2";
  ASSERT_TRUE(Decide());
  EXPECT_THAT(Decide()->detail, HasSubstr("it coordinates, and nobody can take that over"));
  view_.hosts[2].record.peer = "10.0.0.2:1";
  EXPECT_EQ(Decide()->reason, Reason::kUnfit);
  // The launcher beside it coordinates, and would be refused itself.
  view_.coordinator = "i1";
  view_.hosts[2].record.peer.clear();
  EXPECT_EQ(Decide()->reason, Reason::kUnfitNeeded);
}

}  // namespace
}  // namespace keel
