// Host: what a supervisor does about its workers and about itself, moment by moment.
#include "elastic/decisions/host_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "elastic/decisions/hangs.h"
#include "elastic/protocol/exit_codes.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class HostTest : public testing::Test {
 protected:
  HostTest() : HostTest(Config()) {}
  explicit HostTest(const HostConfig& config) : host_(config, Random(1), now_) {}

  static HostConfig Config() {
    HostConfig config;
    config.incarnation = "me";
    config.host = "h0";
    config.restarts.restarts_max = 10;
    return config;
  }

  // Of the actions since the last call.
  template <class T>
  std::vector<T> Take() {
    std::vector<T> taken;
    for (const HostAction& action : host_.TakeActions()) {
      if (const T* const one = std::get_if<T>(&action.what)) taken.push_back(*one);
    }
    return taken;
  }

  // What the worker is told, other than that its supervisor is there.
  std::vector<SupervisorMessage> TakeWishes() {
    std::vector<SupervisorMessage> wishes;
    for (const SendToWorker& sent : Take<SendToWorker>()) {
      if (!std::holds_alternative<AliveMessage>(sent.message)) wishes.push_back(sent.message);
    }
    return wishes;
  }

  // Since the last call, with this code.
  void ExpectExit(int code) {
    const auto exits = Take<ExitHost>();
    ASSERT_EQ(exits.size(), 1u);
    EXPECT_EQ(exits[0].code, code);
  }

  // Registered, in an epoch, its one worker inside.
  void EnterFirstEpoch() {
    host_.OnMemberEvent(Registered{0}, now_);
    host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
    host_.OnTime(now_);
    const auto starts = Take<StartWorker>();
    ASSERT_EQ(starts.size(), 1u);
    worker_ = starts[0].worker;
    host_.OnWorkerMessage(0, HelloMessage{}, now_);
    host_.OnWorkerMessage(0, ReadyMessage{}, now_);
    ASSERT_EQ(Take<EnterEpoch>().size(), 1u);
  }

  void JoinsWithoutState() {
    host_.OnMemberEvent(Registered{1}, now_);
    host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
    host_.OnTime(now_);
    const std::string worker = host_.record().seats[0].worker;
    host_.OnWorkerMessage(0, HelloMessage{}, now_);
    host_.OnWorkerMessage(0, ReadyMessage{}, now_);
    EpochRecord epoch = Epoch(7, worker);
    epoch.hosts = {{0, "other", 0}, {1, "me", 0}};
    epoch.workers = {{0, 0, 0, "w"}, {1, 1, 0, worker}};
    host_.OnMemberEvent(EpochSeen{epoch}, now_);
    host_.TakeActions();
  }

  // It says that it is there, and upon a stop that it leaves with the state of that step; -1: none.
  void LeavesUnsaved(int64_t at, int64_t held) {
    host_.OnWorkerMessage(0, AtMessage{{at, 0}}, now_);
    host_.OnStopAsked("SIGTERM", 30s, now_);
    host_.OnWorkerMessage(0, LeavingMessage{held}, now_);
    host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  }

  static EpochRecord Epoch(int64_t number, const std::string& worker) {
    EpochRecord epoch;
    epoch.number = number;
    epoch.id = "id" + std::to_string(number);
    epoch.hosts = {{0, "me", 0}};
    epoch.workers = {{0, 0, 0, worker}};
    return epoch;
  }

  void Pass(Duration duration) {
    now_ = now_ + duration;
    host_.OnTime(now_);
  }

  TimePoint now_{10s};
  HostMachine host_;
  std::string worker_;
};

// Or a loss of the store would charge the job with restarts of days ago.
TEST(HostWithAWindow, ForgetsWhichRestartsWereRecentOnceTheWindowHasPassed) {
  HostConfig config;
  config.incarnation = "me";
  config.restarts = {10, 60s};
  TimePoint now{10s};
  HostMachine host(config, Random(1), now);
  host.OnMemberEvent(Registered{0}, now);
  EpochRecord epoch;
  epoch.number = 1;
  epoch.id = "id";
  epoch.hosts = {{0, "me", 0}};
  epoch.restarts = 7;
  epoch.restarts_recent = 2;
  host.OnMemberEvent(EpochSeen{epoch}, now);
  EXPECT_EQ(host.record().epoch.restarts_recent, 2);
  now = now + 59s;
  host.OnContact(now);
  host.OnTime(now);
  EXPECT_EQ(host.record().epoch.restarts_recent, 2);
  now = now + 1s;
  host.OnTime(now);
  EXPECT_EQ(host.record().epoch.restarts_recent, 0);
  EXPECT_EQ(host.record().epoch.restarts, 7);
}

// The kind of the job is not known yet, and the worker takes its signal for a wish to stop.
TEST_F(HostTest, AWorkerThatIsStoppedBeforeItsHelloIsReplacedAndDoesNotMakeItsHostLeave) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  host_.OnTime(now_);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  host_.OnMemberEvent(BreakSeen{{1, "id1", BreakCause::kHostLost, "other", "h1 lost", {}}}, now_);
  ASSERT_EQ(Take<SignalWorker>().size(), 1u);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  host_.OnWorkerMessage(0, LeavingMessage{-1}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  EXPECT_EQ(host_.record().state, MemberState::kMember);
  EXPECT_EQ(Take<StartWorker>().size(), 1u);
  EXPECT_EQ(host_.record().deaths, 0);
}

// It would take the processors from them, and they gain nothing by its haste.
TEST(HostWithTwoSeats, StartsAReplacementThatIsPoliteToWhoTrains) {
  HostConfig config;
  config.incarnation = "me";
  config.seats = 2;
  config.restarts.restarts_max = 10;
  TimePoint now{10s};
  HostMachine host(config, Random(1), now);
  std::vector<StartWorker> starts;
  const auto take = [&] {
    starts.clear();
    for (const HostAction& action : host.TakeActions()) {
      if (const auto* const start = std::get_if<StartWorker>(&action.what)) {
        starts.push_back(*start);
      }
    }
  };
  host.OnMemberEvent(Registered{0}, now);
  host.OnMemberEvent(KindKnown{JobKind::kInPlace}, now);
  host.OnTime(now);
  take();
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_FALSE(starts[0].polite || starts[1].polite) << "nobody trains yet";
  EpochRecord epoch;
  epoch.number = 1;
  epoch.id = "id1";
  epoch.hosts = {{0, "me", 0}};
  for (int seat = 0; seat < 2; ++seat) {
    host.OnWorkerMessage(seat, HelloMessage{}, now);
    host.OnWorkerMessage(seat, ReadyMessage{}, now);
    epoch.workers.push_back({seat, 0, seat, starts[seat].worker});
  }
  host.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now);
  now = now + 6s;   // the longest delay
  host.OnTime(now);
  take();
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_FALSE(starts[0].polite) << "the other one waits for it";
  host.OnWorkerMessage(0, HelloMessage{}, now);
  host.OnWorkerMessage(0, ReadyMessage{}, now);
  epoch.workers[0].worker = starts[0].worker;
  host.OnMemberEvent(EpochSeen{epoch}, now);
  host.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now);
  now = now + 6s;
  host.OnTime(now);
  take();
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_TRUE(starts[0].polite);
}

// Nobody waits for long once the lease's beat stands still, and a suspended supervisor breaks none.
TEST_F(HostTest, WorkersOfAnEpochWithoutAQuorumSoonMissTheirSupervisor) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, true}, now_);
  Take<SendToWorker>();
  Pass(1s);
  EXPECT_TRUE(Take<SendToWorker>().empty());
  EpochRecord epoch = Epoch(2, worker_);
  epoch.by_lease = true;
  host_.OnMemberEvent(EpochSeen{epoch}, now_);
  const auto soon = SupervisorMessage(AliveMessage{2000});
  const auto told = Take<SendToWorker>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].message, soon) << "with the epoch, not when the longer limit is due";
  Pass(500ms);
  EXPECT_EQ(Take<SendToWorker>().at(0).message, soon);
  host_.OnMemberEvent(BreakSeen{{2, "id2", BreakCause::kHostLost, "other", "h1 lost", {}}}, now_);
  Take<SendToWorker>();
  Pass(500ms);
  EXPECT_EQ(Take<SendToWorker>().at(0).message, SupervisorMessage(AliveMessage{60000}));
}

// A coordinator that is out of reach may drop this host after a while, and form epochs without it.
TEST_F(HostTest, ARefusalIsTakenForADeathByTheAgeOfTheBeatWhenItComes) {
  EnterFirstEpoch();
  host_.OnContact(now_);
  Pass(1s);
  host_.OnBoardLost("c", 0, false, now_);
  EXPECT_EQ(host_.record().seen.lost->beat_age, 1s);
  EXPECT_FALSE(host_.record().seen.lost->refused);
  Pass(9s);
  host_.OnBoardLost("c", 0, true, now_);
  EXPECT_TRUE(host_.record().seen.lost->refused);
  EXPECT_EQ(host_.record().seen.lost->beat_age, 10s);
  Pass(9s);
  host_.OnBoardLost("c", 0, true, now_);
  EXPECT_EQ(host_.record().seen.lost->beat_age, 10s) << "it was dead by then";
}

// Nobody who looks at a launcher that stands still should have to guess why.
TEST_F(HostTest, SaysForWhatItWaitsSinceWhenAndHowLongStill) {
  const TimePoint born = now_;
  ASSERT_TRUE(host_.WaitsFor(now_));
  EXPECT_THAT(host_.WaitsFor(now_)->what, HasSubstr("has not been reached yet"));
  EXPECT_EQ(host_.WaitsFor(now_)->until, born + kJoinLimit);
  host_.OnContact(now_);
  host_.OnMemberEvent(Registered{0}, now_);
  ASSERT_TRUE(host_.WaitsFor(now_));
  EXPECT_THAT(host_.WaitsFor(now_)->what, HasSubstr("coordinator to form an epoch"));
  EXPECT_EQ(host_.WaitsFor(now_)->since, born);
  EXPECT_EQ(host_.WaitsFor(now_)->until, kNever);
  EnterFirstEpoch();
  EXPECT_FALSE(host_.WaitsFor(now_));
  const TimePoint reached = now_;
  now_ = now_ + 10s;
  ASSERT_TRUE(host_.WaitsFor(now_));
  EXPECT_EQ(host_.WaitsFor(now_)->what, "the store, which was last reached 10 s ago");
  EXPECT_EQ(host_.WaitsFor(now_)->since, reached);
  EXPECT_EQ(host_.WaitsFor(now_)->until, reached + kStoreLimit);
}

TEST_F(HostTest, PromisesToBeOutsideOnlyWhenTheWorkerHasParked) {
  EnterFirstEpoch();
  host_.OnMemberEvent(BreakSeen{{1, "id1", BreakCause::kHostLost, "other", "h1 lost", {}}}, now_);
  EXPECT_EQ(host_.record().outside, 0);
  EXPECT_EQ(Take<SendToWorker>().size(), 1u) << "break";
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, false}, now_);
  EXPECT_EQ(host_.record().outside, 1);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kParked);
}

TEST_F(HostTest, AWorkerHearsOfItsSupervisorWellWithinTheLimit) {
  EnterFirstEpoch();
  const auto alive = SupervisorMessage(AliveMessage{60000});
  TimePoint heard = now_;
  for (int i = 0; i < 10; ++i) {
    ASSERT_LE(host_.NextWake(), heard + 60s / 2);
    now_ = host_.NextWake();
    host_.OnTime(now_);
    host_.OnContact(now_);
    for (const SendToWorker& sent : Take<SendToWorker>()) {
      EXPECT_EQ(sent.message, alive);
      heard = now_;
    }
  }
  EXPECT_GT(heard, TimePoint{10s + 60s});
}

TEST_F(HostTest, AWorkerLacksTheStateUntilItTellsThatItHasIt) {
  EnterFirstEpoch();
  EXPECT_TRUE(host_.record().seats[0].lacks) << "it was ready without a state";
  host_.OnWorkerMessage(0, AtMessage{{4, 0}}, now_);
  EXPECT_FALSE(host_.record().seats[0].lacks);
  host_.OnWorkerMessage(0, AtMessage{{4, 1}, {}, true}, now_);
  EXPECT_TRUE(host_.record().seats[0].lacks);
  host_.OnWorkerMessage(0, AtMessage{{4, 2}}, now_);
  EXPECT_FALSE(host_.record().seats[0].lacks);
  host_.OnWorkerMessage(0, ParkedMessage{1, kNoStep, false}, now_);
  EXPECT_TRUE(host_.record().seats[0].lacks);
}

// The link of a worker tells again and again where it is, so silence is that of a stopped process.
TEST_F(HostTest, AWorkerInsideAnEpochThatSaysNothingIsSilent) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, AtMessage{{4, 1}, {"lane 2", 1}}, now_);
  EXPECT_EQ(host_.record().seats[0].activity, (Activity{"lane 2", 1}));
  Pass(kSilentAfter - 1ns);
  EXPECT_FALSE(host_.record().seats[0].silent);
  EXPECT_EQ(host_.NextWake(), now_ + 1ns);
  Pass(1ns);
  EXPECT_TRUE(host_.record().seats[0].silent);
  host_.OnWorkerMessage(0, AtMessage{{4, 1}, {"lane 2", 1}}, now_);
  EXPECT_FALSE(host_.record().seats[0].silent);
}

TEST_F(HostTest, AWorkerIsNotSilentWhereItNeedNotTell) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, true}, now_);
  Pass(10 * kSilentAfter);
  EXPECT_FALSE(host_.record().seats[0].silent);
}

// What its worker said meanwhile is yet to be read.
TEST_F(HostTest, OneThatWasStoppedItselfDoesNotTakeItsWorkerForSilent) {
  EnterFirstEpoch();
  host_.OnContact(now_ + 30s);
  Pass(30s);
  EXPECT_FALSE(host_.record().seats[0].silent);
  Pass(kSilentAfter);
  EXPECT_TRUE(host_.record().seats[0].silent);
}

// This is how a supervisor learns of a break that nobody has told it of.
TEST_F(HostTest, AWorkerThatParksBecauseItsGroupBrokeIsReported) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, false}, now_);
  const auto reports = Take<ReportBreak>();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].record.epoch, 1);
  EXPECT_EQ(reports[0].record.id, "id1");
  EXPECT_EQ(reports[0].record.cause, BreakCause::kReported);
  EXPECT_EQ(reports[0].record.by, "me");
  EXPECT_EQ(reports[0].record.reason, "rank 0 on h0 saw the group break");
  EXPECT_EQ(host_.record().outside, 1);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kParked);
  EXPECT_EQ(host_.record().deaths, 0);
  // Somebody else's reason may have been first.
  host_.OnMemberEvent(BreakSeen{{1, "id1", BreakCause::kDied, "other", "rank 1 died", {}}}, now_);
  EXPECT_TRUE(Take<ReportBreak>().empty());
  host_.OnMemberEvent(EpochSeen{Epoch(2, worker_)}, now_);
  EXPECT_EQ(Take<EnterEpoch>().size(), 1u) << "with its memory";
}

TEST_F(HostTest, AWorkerThatParksAtABoundaryReportsNoBreak) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, true}, now_);
  EXPECT_TRUE(Take<ReportBreak>().empty());
  EXPECT_EQ(host_.record().outside, 1);
}

TEST_F(HostTest, AReportOfAnEpochThatIsOverIsIgnored) {
  EnterFirstEpoch();
  host_.OnMemberEvent(BreakSeen{{1, "id1", BreakCause::kDied, "other", "rank 1 died", {}}}, now_);
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, false}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(2, worker_)}, now_);
  Take<EnterEpoch>();
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, false}, now_);
  EXPECT_TRUE(Take<ReportBreak>().empty());
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kRunning);
}

// Whatever a worker says, it cannot bring its seat into a state that the table does not know.
TEST_F(HostTest, WhatAWorkerSaysOutOfTurnIsIgnored) {
  EnterFirstEpoch();
  const auto expect_same = [&](SeatState state) {
    host_.OnWorkerMessage(0, HelloMessage{}, now_);
    host_.OnWorkerMessage(0, ReadyMessage{9}, now_);
    host_.OnWorkerMessage(0, ParkedMessage{7, 9, false}, now_);
    EXPECT_EQ(host_.record().seats[0].state, state);
    EXPECT_TRUE(Take<EnterEpoch>().empty());
    EXPECT_TRUE(Take<ReportBreak>().empty());
  };
  expect_same(SeatState::kRunning);
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, true}, now_);
  expect_same(SeatState::kParked);
  host_.OnWorkerMessage(0, ByeMessage{0, "finished"}, now_);
  expect_same(SeatState::kStarting);
  Pass(Config().shutdown_limit - 1ms);
  Pass(1ms);
  ASSERT_EQ(Take<SignalWorker>().size(), 1u);
  expect_same(SeatState::kStarting);
}

TEST_F(HostTest, AWorkerWithAnotherLinkIsToldWhatToDo) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  host_.OnTime(now_);
  host_.OnWorkerMessage(0, HelloMessage{7, ""}, now_);
  const std::string what =
      "speaks version 7 of the link to keelrun, which speaks version " +
      std::to_string(kControlVersion) + ": rebuild the program with the same release of Evenkeel";
  std::string told, why;
  for (const HostAction& action : host_.TakeActions()) {
    if (const auto* const sent = std::get_if<SendToWorker>(&action.what)) {
      told = std::get<RefusedMessage>(sent->message).reason;
    }
    if (std::holds_alternative<SignalWorker>(action.what)) why = action.why;
  }
  EXPECT_THAT(told, HasSubstr(what));
  EXPECT_THAT(why, HasSubstr("rank 0 on h0 " + what));
  const std::string how = host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_THAT(how, HasSubstr(what)) << "and so the summary says";
}

TEST_F(HostTest, AWorkerThatDoesNotParkIsKilledAtTheLimit) {
  EnterFirstEpoch();
  host_.OnMemberEvent(BreakSeen{{1, "id1", BreakCause::kHostLost, "other", "h1 lost", {}}}, now_);
  Take<SignalWorker>();
  Pass(5s - 1ns);
  EXPECT_TRUE(Take<SignalWorker>().empty());
  Pass(1ns);
  const auto signals = Take<SignalWorker>();
  ASSERT_EQ(signals.size(), 1u);
  EXPECT_EQ(signals[0].signal, SIGKILL);
  EXPECT_EQ(host_.record().outside, 0) << "it may still be inside";
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_EQ(host_.record().outside, 1);
  EXPECT_EQ(host_.record().deaths, 0) << "that was our doing";
}

// It failed, whoever ended its process: a big one takes longer to end than others may wait.
TEST_F(HostTest, AWorkerThatFailedAndIsKilledAtTheLimitForParkingSpendsARestart) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{kExitFailed, "step 3, lane 1: no more ink"}, now_);
  host_.OnMemberEvent(BreakSeen{{1, "id1", BreakCause::kHostLost, "other", "h1 lost", {}}}, now_);
  Pass(5s);
  ASSERT_EQ(Take<SignalWorker>().size(), 1u);
  const std::string how = host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_THAT(how, HasSubstr("no more ink"));
  EXPECT_EQ(host_.record().deaths, 1);
}

// The kernel frees its memory, which takes long where it has much.
TEST_F(HostTest, AWorkerThatIsDyingBreaksTheEpochBeforeItHasEnded) {
  EnterFirstEpoch();
  host_.OnWorkerEnding(0, ExitStatus::Killed(SIGKILL), now_);
  const auto breaks = Take<ReportBreak>();
  ASSERT_EQ(breaks.size(), 1u);
  EXPECT_EQ(breaks[0].record.cause, BreakCause::kDied);
  EXPECT_THAT(breaks[0].record.reason, HasSubstr("rank 0 on h0 killed by signal 9"));
  EXPECT_EQ(host_.record().outside, 0) << "it is still there";
  host_.OnWorkerEnding(0, ExitStatus::Killed(SIGKILL), now_);
  Pass(5s);   // and is killed at the limit for parking, which does not help it
  const std::string how = host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_THAT(how, HasSubstr("killed by signal 9"));
  EXPECT_EQ(host_.record().outside, 1);
  EXPECT_EQ(host_.record().deaths, 1);
  EXPECT_TRUE(Take<ReportBreak>().empty()) << "once is enough";
}

TEST_F(HostTest, AWorkerThatEndsAfterItsGoodbyeBreaksNothing) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{0, "finished"}, now_);
  host_.OnWorkerEnding(0, ExitStatus::Exited(0), now_);
  EXPECT_TRUE(Take<ReportBreak>().empty());
}

// It has ended well; only its memory is not free yet.
TEST_F(HostTest, AWorkerThatTheKernelTakesLongToEndHasNotFailed) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{0, "finished"}, now_);
  host_.OnWorkerEnding(0, ExitStatus::Exited(0), now_);
  Take<SignalWorker>();
  Pass(Config().shutdown_limit - 1ms);
  Pass(1ms);
  EXPECT_TRUE(Take<SignalWorker>().empty());
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kFinished);
  EXPECT_EQ(host_.record().deaths, 0);
}

TEST_F(HostTest, AWorkerThatSaidGoodbyeMayTakeItsTimeToEnd) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{0, "finished"}, now_);
  host_.OnLinkBroken(0, {Code::kPeerLost, "it closed its end"}, now_);
  Pass(Config().shutdown_limit - 1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 0u);
  Pass(1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 1u);
}

// Its successor would do the same.
TEST_F(HostTest, AWorkerThatSaidGoodbyeAndStaysSpendsARestart) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{0, "finished"}, now_);
  Pass(Config().shutdown_limit - 1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 0u);
  Pass(1ms);
  ASSERT_EQ(Take<SignalWorker>().size(), 1u);
  const std::string how = host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_THAT(how, HasSubstr("timed out: rank 0 on h0 said goodbye, but did not end within 30 s"));
  EXPECT_EQ(host_.record().deaths, 1);
  const auto reports = Take<ReportBreak>();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].record.cause, BreakCause::kDied);
}

TEST_F(HostTest, AWorkerThatParksAfterItsGoodbyeMustStillEnd) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{0, "finished"}, now_);
  Pass(Config().shutdown_limit - 1ms);
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, true}, now_);
  EXPECT_EQ(Take<SignalWorker>().size(), 0u);
  Pass(1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 1u);
}

// It was the successor of one that had died: the next epoch would have taken its limit away.
TEST_F(HostTest, AWorkerThatSaidGoodbyeEntersNoEpoch) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  Pass(0s);
  const auto starts = Take<StartWorker>();
  ASSERT_EQ(starts.size(), 1u);
  host_.OnWorkerMessage(0, HelloMessage{}, now_);
  host_.OnWorkerMessage(0, ReadyMessage{}, now_);
  ASSERT_EQ(host_.record().seats[0].state, SeatState::kReady);
  host_.OnWorkerMessage(0, ByeMessage{0, "finished"}, now_);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kStarting);
  host_.OnWorkerMessage(0, ReadyMessage{}, now_);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kStarting);
  host_.OnMemberEvent(EpochSeen{Epoch(2, starts[0].worker)}, now_);   // formed before that was seen
  EXPECT_TRUE(Take<EnterEpoch>().empty());
  Pass(Config().shutdown_limit - 1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 0u);
  Pass(1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 1u);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_EQ(host_.record().deaths, 1);
}

TEST_F(HostTest, AWorkerThatStaysAfterAStopSpendsNone) {
  EnterFirstEpoch();
  host_.OnStopAsked("SIGTERM", 30s, now_);
  host_.OnWorkerMessage(0, ByeMessage{0, "stopped"}, now_);
  Pass(Config().shutdown_limit - 1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 0u);
  Pass(1ms);
  EXPECT_EQ(Take<SignalWorker>().size(), 1u);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_EQ(host_.record().deaths, 0);
}

TEST_F(HostTest, AWorkerThatClosesItsLinkWithoutAGoodbyeIsKilledSoon) {
  EnterFirstEpoch();
  host_.OnLinkBroken(0, {Code::kPeerLost, "it closed its end"}, now_);
  Pass(2s);
  EXPECT_EQ(Take<SignalWorker>().size(), 1u);
}

TEST_F(HostTest, AParkedWorkerEntersTheNextEpochAndTellsItsPositionAnew) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, AtMessage{{7, 1}}, now_);
  host_.OnWorkerMessage(0, ParkedMessage{1, 7, true}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(2, worker_)}, now_);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kRunning);
  EXPECT_EQ(host_.record().seats[0].epoch, 2);
  EXPECT_EQ(host_.record().seats[0].position, Position{});
}

TEST_F(HostTest, TakenForDeadItRegistersAnewOnlyWhenItsWorkersAreGone) {
  EnterFirstEpoch();
  host_.OnMemberEvent(Buried{{Tombstone::Why::kExpired, "me", "silent"}}, now_);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kStopping);
  EXPECT_TRUE(Take<RegisterAnew>().empty());
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_EQ(Take<RegisterAnew>().size(), 1u);
}

// It stood still while the epoch was formed, and was taken for dead before it read of it. Others
// may have gone on without it, so it must not begin anew with those who know nothing.
TEST_F(HostTest, AnEpochThatItWasTooLateForCountsAsTried) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(Buried{{Tombstone::Why::kExpired, "me", "silent for 3 s"}}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  EXPECT_THAT(host_.record().seen.tried, testing::ElementsAre("id1"));
  host_.OnMemberEvent(Registered{3}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);   // on the way over another board
  EXPECT_EQ(host_.record().seen.tried.size(), 1u);
  EXPECT_EQ(host_.record().epoch.number, 0);
  EpochRecord without = Epoch(2, "");
  without.hosts.front().incarnation = "another";
  host_.OnMemberEvent(EpochSeen{without}, now_);
  EXPECT_THAT(host_.record().seen.tried, testing::ElementsAre("id2")) << "whose hosts go on";
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  EXPECT_THAT(host_.record().seen.tried, testing::ElementsAre("id2")) << "that one is older";
}

TEST_F(HostTest, AnEpochOfOthersIsNotTried) {
  host_.OnMemberEvent(Registered{3}, now_);
  EpochRecord others = Epoch(1, "");
  others.hosts.front().incarnation = "another";
  host_.OnMemberEvent(EpochSeen{others}, now_);
  EXPECT_TRUE(host_.record().seen.tried.empty());
}

TEST_F(HostTest, TellsTheNextBoardThatTheWorkIsDone) {
  EnterFirstEpoch();
  EXPECT_EQ(host_.record().finished, 0);
  host_.OnMemberEvent(EndSeen{{kExitFinished, "all 1 workers of epoch 1 finished"}}, now_);
  EXPECT_EQ(host_.record().finished, 1);
  EXPECT_EQ(host_.record().finished_id, "id1");
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);   // as the next board takes it up
  EXPECT_EQ(host_.record().finished, 1);
  host_.OnMemberEvent(EpochSeen{Epoch(2, "")}, now_);
  EXPECT_EQ(host_.record().finished, 0) << "the job has gone on, or begun anew";
}

TEST_F(HostTest, AnEndThatIsNotDoneIsNotPassedOn) {
  EnterFirstEpoch();
  host_.OnMemberEvent(EndSeen{{kExitQuorumLost, "too few hosts"}}, now_);
  EXPECT_EQ(host_.record().finished, 0);
}

// If all hosts of an epoch were taken for dead and their coordinator is lost, nobody else knows.
TEST_F(HostTest, TakenForDeadItStillTellsTheRestartsThatWereSpent) {
  host_.OnMemberEvent(Registered{0}, now_);
  EpochRecord epoch = Epoch(3, "");
  epoch.restarts = 4;
  epoch.restarts_recent = 2;
  host_.OnMemberEvent(EpochSeen{epoch}, now_);
  host_.OnMemberEvent(Buried{{Tombstone::Why::kExpired, "me", "silent"}}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  ASSERT_EQ(Take<RegisterAnew>().size(), 1u);
  EXPECT_EQ(host_.record().epoch.number, 0);
  EXPECT_EQ(host_.record().epoch.restarts, 4);
  EXPECT_EQ(host_.record().epoch.restarts_recent, 2);
}

TEST_F(HostTest, WithoutTheStoreItGivesUpAtTheLimitAndNotBefore) {
  EnterFirstEpoch();
  host_.OnContact(now_);
  Pass(60s - 1ns);
  EXPECT_TRUE(TakeWishes().empty());
  Pass(1ns);
  const auto sent = TakeWishes();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<StopMessage>(sent[0]));
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  ExpectExit(kExitQuorumLost);
}

// A host of two workers in an epoch whose store goes away.
class LostStoreTest : public testing::Test {
 protected:
  void Enter(int restarts_max, int restarts_spent) {
    HostConfig config;
    config.incarnation = "me";
    config.host = "h0";
    config.seats = 2;
    config.restarts = {restarts_max, Duration(0)};
    host_.emplace(config, Random(1), now_);
    EpochRecord epoch;
    epoch.number = 1 + restarts_spent;
    epoch.id = "id";
    epoch.hosts = {{0, "me", 0}};
    epoch.workers = {{0, 0, 0, ""}, {1, 0, 1, ""}};
    epoch.restarts = epoch.restarts_recent = restarts_spent;
    host_->OnMemberEvent(Registered{0}, now_);
    host_->OnMemberEvent(EpochSeen{epoch}, now_);
    host_->OnTime(now_);
    host_->OnContact(now_);
  }

  void Die(int index, int code) { host_->OnWorkerEnded(index, ExitStatus::Exited(code), now_); }

  // Until its limit. `is_one_left`: the second worker was told to end, and does.
  void LoseStore(bool is_one_left = false) {
    if (is_one_left) host_->OnWorkerEnded(1, ExitStatus::Killed(SIGTERM), now_);
    now_ = now_ + 60s;
    host_->OnTime(now_);
    for (const HostAction& action : host_->TakeActions()) {
      const auto* const exit = std::get_if<ExitHost>(&action.what);
      if (exit == nullptr) continue;
      code_ = exit->code;
      why_ = action.why;
    }
  }

  TimePoint now_{10s};
  std::optional<HostMachine> host_;
  std::optional<int> code_;
  std::string why_;
};

// The store may go away with the host whose worker has failed first.
TEST_F(LostStoreTest, AFailureThatEndsTheJobStaysTheCause) {
  Enter(0, 0);
  Die(0, 3);
  LoseStore(true);
  EXPECT_EQ(code_, kExitFailed);
  EXPECT_EQ(why_, "rank 0 on h0 exited with 3 (1 failure, 0 allowed), and then the store was lost");
}

TEST_F(LostStoreTest, RestartsThatTheJobHasSpentCount) {
  Enter(2, 2);
  Die(0, 3);
  LoseStore(true);
  EXPECT_EQ(code_, kExitFailed);
  EXPECT_THAT(why_, HasSubstr("3 failures, 2 allowed"));
}

TEST_F(LostStoreTest, WorkersThatDieTogetherSpendOneRestart) {
  Enter(1, 0);
  Die(0, 3);
  Die(1, 3);
  LoseStore();
  EXPECT_EQ(code_, kExitQuorumLost);
  EXPECT_EQ(why_, "timed out: the store could not be reached for 1 min 0 s");
}

TEST_F(LostStoreTest, OneThatWasReplacedSinceIsNoCause) {
  Enter(1, 0);
  Die(0, 3);
  Die(1, 3);
  EpochRecord next = *host_->epoch();
  next.number = 2;
  next.id = "id2";
  next.restarts = next.restarts_recent = 1;
  host_->OnMemberEvent(EpochSeen{next}, now_);
  now_ = now_ + 100h;
  host_->OnContact(now_);
  host_->OnTime(now_);
  LoseStore();
  host_->OnWorkerEnded(0, ExitStatus::Killed(SIGTERM), now_);
  host_->OnWorkerEnded(1, ExitStatus::Killed(SIGTERM), now_);
  for (const HostAction& action : host_->TakeActions()) {
    if (const auto* const exit = std::get_if<ExitHost>(&action.what)) code_ = exit->code;
  }
  EXPECT_EQ(code_, kExitQuorumLost);
}

// Its connections break where another machine dies, and the store with it.
TEST_F(LostStoreTest, OneThatDiedAfterTheStoreWasLastReachedIsNoCause) {
  Enter(0, 0);
  now_ = now_ + 1ms;
  Die(0, 1);
  LoseStore(true);
  EXPECT_EQ(code_, kExitQuorumLost);
}

TEST_F(HostTest, TheStoresOwnHostThatWasStoppedDoesNotTakeItsStoreForLost) {
  HostMachine host(Config(), Random(1), now_);
  host.OnContact(now_);
  host.OnTime(now_ + 10min);
  EXPECT_EQ(host.record().state, MemberState::kMember);
  EXPECT_GT(host.NextWake(), now_ + 10min);
  // But one that was awake all the time does.
  host.OnTime(host.NextWake());
  EXPECT_EQ(host.record().state, MemberState::kLeft);
}

// Its workers have parked by then, as their limit is the same, and somebody lets it run again.
TEST_F(HostTest, OneThatWasStoppedForLittleMoreThanTheLimitGoesOn) {
  EnterFirstEpoch();
  host_.OnContact(now_);
  now_ = now_ + Config().store_limit + 300ms;
  host_.OnTime(now_);
  EXPECT_EQ(host_.record().state, MemberState::kMember);
  EXPECT_TRUE(TakeWishes().empty());
  // Awake, it waits for the store no longer than a moment.
  bool told = false;
  for (int wakes = 0; wakes < 10 && !told; ++wakes) {
    host_.OnTime(host_.NextWake());
    told = !TakeWishes().empty();
  }
  EXPECT_TRUE(told);
}

// It would spin: a wake-up that is past has to be dealt with, or to be forgotten.
TEST_F(HostTest, LeavingWithAWorkerThatDoesNotEndItSleepsBetweenItsLimits) {
  EnterFirstEpoch();
  host_.OnStopAsked("SIGTERM", 1s, now_);
  for (int wakes = 0; wakes < 10; ++wakes) {
    const TimePoint wake = host_.NextWake();
    ASSERT_GT(wake, now_) << "after " << wakes << " wake-ups";
    now_ = wake;
    host_.OnTime(now_);
  }
}

// The others may have lost their power: then nobody closes a connection, and a vote never ends.
TEST_F(HostTest, WithoutTheStoreAWorkerThatIsToStopAndDoesNotGetOnSavesAlone) {
  EnterFirstEpoch();
  host_.OnContact(now_);
  host_.OnStopAsked("SIGTERM", 30s, now_);
  ASSERT_EQ(TakeWishes().size(), 1u);
  Pass(9s);
  host_.OnWorkerMessage(0, AtMessage{{5, 1}}, now_);
  Pass(9s);
  EXPECT_TRUE(TakeWishes().empty()) << "it got on meanwhile";
  host_.OnWorkerMessage(0, AtMessage{{5, 1}}, now_);   // it only says again where it stands
  ASSERT_EQ(host_.NextWake(), now_ + 1s);
  Pass(1s);
  const auto wishes = TakeWishes();
  ASSERT_EQ(wishes.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<BreakMessage>(wishes[0]));
  EXPECT_THAT(std::get<BreakMessage>(wishes[0]).reason,
              HasSubstr("has not moved for 10 s, and the store cannot be reached"));
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, false}, now_);
  Pass(10s);
  EXPECT_TRUE(Take<SignalWorker>().empty()) << "it has the rest of its time";
}

// What the store and the worker said meanwhile is yet to be heard.
TEST_F(HostTest, OneThatWasStoppedItselfDoesNotTakeItsWorkerForCutOff) {
  EnterFirstEpoch();
  host_.OnContact(now_);
  host_.OnStopAsked("SIGTERM", 30s, now_);
  ASSERT_EQ(TakeWishes().size(), 1u);
  Pass(15s);
  EXPECT_TRUE(TakeWishes().empty());
  ASSERT_EQ(host_.NextWake(), now_ + 1s);
  host_.OnContact(now_);
  Pass(9s);
  EXPECT_TRUE(TakeWishes().empty()) << "the store is there";
  now_ = host_.NextWake();
  host_.OnTime(now_);
  EXPECT_EQ(TakeWishes().size(), 1u) << "and then is not";
}

TEST_F(HostTest, WithTheStoreAWorkerThatIsToStopHasAllItsTimeToAgree) {
  EnterFirstEpoch();
  host_.OnStopAsked("SIGTERM", 30s, now_);
  ASSERT_EQ(TakeWishes().size(), 1u);
  for (int second = 0; second < 29; ++second) {
    host_.OnContact(now_);
    Pass(1s);
  }
  EXPECT_TRUE(TakeWishes().empty());
}

TEST_F(HostTest, ASaveIsAskedOfWorkersThatRun) {
  host_.OnSaveAsked("SIGUSR2", now_);
  EXPECT_TRUE(Take<SendToWorker>().empty());
  EnterFirstEpoch();
  host_.OnSaveAsked("SIGUSR2", now_);
  const auto sent = Take<SendToWorker>();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<SaveMessage>(sent[0].message));
}

// Of much memory the kernel needs a while to end it; a successor would wait for others for ever.
TEST_F(HostTest, AWorkerThatEndsWellIsNotEndedForABreakMeanwhile) {
  EnterFirstEpoch();
  host_.OnWorkerEnding(0, ExitStatus::Exited(0), now_);
  // Not even where it seems to hang.
  host_.OnMemberEvent(BreakSeen{{1, "id1", BreakCause::kHung, "other", "it hangs", {0}}}, now_);
  host_.OnContact(now_);
  Pass(20s);
  EXPECT_TRUE(Take<SignalWorker>().empty());
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kFinished);
}

TEST_F(HostTest, AHostThatIsLeftOutLeavesInGoodOrderWithACodeOfItsOwn) {
  EnterFirstEpoch();
  ShunnedRecord shunned{{{"other", "h1", "", "it dies"}}};
  host_.OnMemberEvent(ShunnedSeen{shunned}, now_);
  EXPECT_EQ(host_.record().state, MemberState::kMember);
  shunned.Add({"me", "h0", "", "it dies, too"});
  host_.OnMemberEvent(ShunnedSeen{shunned}, now_);
  EXPECT_EQ(host_.record().state, MemberState::kLeaving);
  EXPECT_EQ(host_.record().reason, "it dies, too");
  const auto wishes = TakeWishes();
  ASSERT_EQ(wishes.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<StopMessage>(wishes[0]));
  host_.OnWorkerMessage(0, LeavingMessage{5}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  ExpectExit(kExitShunned);
}

TEST_F(HostTest, ItHasThatCodeHoweverTheJobEndsMeanwhile) {
  EnterFirstEpoch();
  host_.OnMemberEvent(ShunnedSeen{{{{"me", "h0", "", "it dies"}}}}, now_);
  host_.OnMemberEvent(EndSeen{{75, "stopped"}}, now_);
  host_.OnWorkerMessage(0, LeavingMessage{5}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  ExpectExit(kExitShunned);
}

TEST_F(HostTest, ALauncherOfAHostThatWasLeftOutIsSentAway) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(Buried{{Tombstone::Why::kShunned, "me", "it was left out"}}, now_);
  ExpectExit(kExitShunned);
}

TEST_F(HostTest, WhereBitsMayBeWrongNothingIsSaved) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{kExitShunned, "step 3, lane 1"}, now_);
  (void)host_.TakeActions();
  host_.OnMemberEvent(ShunnedSeen{{{{"me", "h0", "", "step 3, lane 1"}}}}, now_);
  const auto signals = Take<SignalWorker>();
  ASSERT_GE(signals.size(), 1u);
  EXPECT_EQ(signals.back().signal, SIGKILL);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  EXPECT_EQ(host_.record().deaths, 1) << "it had said that it failed";
  EXPECT_EQ(host_.record().blame.ended, 1);
  ExpectExit(kExitShunned);
}

TEST_F(HostTest, OneThatIsLeftOutWhileItIsFencedEndsAsWell) {
  EnterFirstEpoch();
  host_.OnMemberEvent(Buried{{Tombstone::Why::kExpired, "me", "silent"}}, now_);
  host_.OnMemberEvent(ShunnedSeen{{{{"me", "h0", "", "it dies"}}}}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  ExpectExit(kExitShunned);
  EXPECT_EQ(host_.record().state, MemberState::kLeft) << "it does not register anew";
}

// Its machine is checked before the worker's process is made.
TEST_F(HostTest, AWorkersTimeBeginsOnceItsMachineIsFoundFit) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  host_.OnTime(now_);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  Pass(kStartLimit - 1s);
  host_.OnContact(now_);
  host_.OnFit(0, now_);
  EXPECT_EQ(host_.record().health, kHealthGood);
  Pass(kStartLimit - 1s);
  EXPECT_EQ(Take<SignalWorker>().size(), 0u);
  host_.OnContact(now_);
  Pass(1s);
  EXPECT_EQ(Take<SignalWorker>().size(), 1u);
}

TEST_F(HostTest, AWorkerThatDiesAtOnceAfterALongCheckIsStartedAfterADelay) {
  EnterFirstEpoch();
  for (int death = 0; death < 2; ++death) {
    host_.OnWorkerEnded(0, ExitStatus::Exited(1), now_);
    Pass(100ms);
    ASSERT_EQ(Take<StartWorker>().size(), 1u);
    Pass(5s);
    host_.OnContact(now_);
    host_.OnFit(0, now_);
  }
  host_.OnWorkerEnded(0, ExitStatus::Exited(1), now_);
  Pass(100ms);
  EXPECT_EQ(Take<StartWorker>().size(), 0u);
}

TEST_F(HostTest, AHostThatIsNotFitLeavesAndChargesNobody) {
  EnterFirstEpoch();
  host_.OnWorkerEnded(0, ExitStatus::Exited(1), now_);
  Pass(1s);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  host_.OnUnfit("the GPU is lost", kExitShunned, now_);
  EXPECT_EQ(host_.record().state, MemberState::kLeaving);
  EXPECT_EQ(host_.record().health, "the GPU is lost");
  ASSERT_EQ(Take<SignalWorker>().size(), 1u);
  host_.OnNotStarted(0, now_);
  EXPECT_EQ(host_.record().deaths, 1) << "the one before";
  ExpectExit(kExitShunned);
}

// For whoever gives the command, another machine would not be better.
TEST_F(HostTest, AHostWhoseCheckCannotBeRunEndsWithAFailure) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  host_.OnTime(now_);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  host_.OnUnfit("no such program", kExitFailed, now_);
  EXPECT_EQ(host_.record().health, "");
  host_.OnNotStarted(0, now_);
  ExpectExit(kExitFailed);
}

TEST_F(HostTest, AStopDuringTheCheckSavesNothingAndLosesNothing) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  host_.OnTime(now_);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  host_.OnStopAsked("SIGTERM", 30s, now_);
  ASSERT_EQ(Take<SignalWorker>().size(), 1u);
  host_.OnNotStarted(0, now_);
  host_.OnUnfit("too late to tell", kExitShunned, now_);
  ExpectExit(kExitStopped);
}

// Whoever looks for the reason of trouble reads it.
TEST_F(HostTest, WhatSpeaksForAndAgainstAHostIsCountedOverAllLivesOfItsWorkers) {
  EnterFirstEpoch();
  FiguresMessage figures;
  figures.checks = {10, 1, 20};
  host_.OnWorkerMessage(0, figures, now_);
  figures.checks = {12, 1, 40};
  host_.OnWorkerMessage(0, figures, now_);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGSEGV), now_);
  Pass(1s);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  host_.OnWorkerMessage(0, HelloMessage{}, now_);
  figures.checks = {3, 0, 0};
  host_.OnWorkerMessage(0, figures, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(kExitDeviceLost), now_);
  Pass(1s);
  host_.OnStartFailed(0, "no memory", now_);
  EXPECT_EQ(host_.record().blame, (HostBlame{0, 1, 0, 1, 1, {15, 1, 40}}));
}

TEST_F(HostTest, OneThatIsTakenForDeadDuringTheCheckRegistersAnew) {
  EnterFirstEpoch();
  host_.OnWorkerEnded(0, ExitStatus::Exited(1), now_);
  Pass(1s);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  host_.OnMemberEvent(Buried{{Tombstone::Why::kExpired, "me", "silent"}}, now_);
  ASSERT_EQ(Take<SignalWorker>().size(), 1u);
  host_.OnNotStarted(0, now_);
  EXPECT_EQ(Take<RegisterAnew>().size(), 1u);
  EXPECT_EQ(host_.record().state, MemberState::kMember);
}

// Its launcher starts another worker, unless the job does without this host.
TEST_F(HostTest, AWorkerThatWasShownToComputeWronglyMakesItsHostUnfit) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{kExitFailed, "my own mistake"}, now_);
  EXPECT_EQ(host_.record().unfit, "");
  host_.OnWorkerMessage(0, ByeMessage{kExitShunned, "step 3, lane 1"}, now_);
  EXPECT_EQ(host_.record().unfit, "step 3, lane 1");
  host_.OnWorkerEnded(0, ExitStatus::Exited(1), now_);
  EXPECT_EQ(host_.record().deaths, 1);
  EXPECT_EQ(host_.record().state, MemberState::kMember);
}

TEST_F(HostTest, AWorkerThatIsRefusedEndsTheHostWithThatCode) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{kExitRefused, "other lanes"}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(kExitRefused), now_);
  ExpectExit(kExitRefused);
}

// Somebody told the worker alone, and the host does not know why.
TEST_F(HostTest, AWorkerThatLeavesByItselfIsToldOfWithoutAReason) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, LeavingMessage{3}, now_);
  host_.OnWorkerMessage(0, ByeMessage{0, "stopped"}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  const auto reports = Take<ReportBreak>();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].record.reason, "rank 0 on h0 leaves");
}

// Another program, or another version of it, beside a job in place.
TEST_F(HostTest, AWorkerOfAnotherVersionEndsTheHostAsRefused) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  host_.OnTime(now_);
  host_.OnWorkerMessage(0, HelloMessage{kControlVersion + 1, ""}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  ExpectExit(kExitRefused);
}

TEST_F(HostTest, AWorkerThatIsRefusedCostsTheJobNoRestart) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, ByeMessage{kExitRefused, "other numerics"}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(kExitRefused), now_);
  EXPECT_EQ(host_.record().deaths, 0);
  EXPECT_TRUE(host_.record().refused);
  EXPECT_GT(host_.record().deadline_ms, 0) << "should others have to stop, they have time to save";
  const auto reports = Take<ReportBreak>();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].record.cause, BreakCause::kLeft);
}

TEST_F(HostTest, WhoseWorkersFailBeforeAnyEpochHadThemGivesUpAlone) {
  host_.OnMemberEvent(Registered{1}, now_);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  for (int death = 0; death <= 10; ++death) {   // 10 restarts are allowed
    EXPECT_TRUE(Take<ExitHost>().empty()) << "after " << death << " deaths";
    Pass(6s);   // the longest delay
    host_.OnWorkerEnded(0, ExitStatus::Exited(3), now_);
  }
  ExpectExit(kExitFailed);
  EXPECT_EQ(host_.record().reason,
            "the workers of h0 failed before they could join (11 failures, 10 allowed): the last "
            "one exited with 3");
}

// The coordinator does not count them: were the host to, nobody would start the worker again.
TEST_F(HostTest, WhatItSpentBeforeItsFirstEpochIsForgotten) {
  host_.OnMemberEvent(Registered{1}, now_);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  for (int death = 0; death < 10; ++death) {   // 10 restarts are allowed
    Pass(6s);   // the longest delay
    host_.OnWorkerEnded(0, ExitStatus::Exited(3), now_);
  }
  Pass(6s);
  const auto starts = Take<StartWorker>();
  ASSERT_FALSE(starts.empty());
  host_.OnWorkerMessage(0, HelloMessage{}, now_);
  host_.OnWorkerMessage(0, ReadyMessage{}, now_);
  EpochRecord epoch = Epoch(7, starts.back().worker);
  epoch.hosts = {{1, "me", 0}};
  epoch.workers = {{0, 1, 0, starts.back().worker}};
  host_.OnMemberEvent(EpochSeen{epoch}, now_);
  ASSERT_EQ(Take<EnterEpoch>().size(), 1u);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGKILL), now_);
  Pass(6s);
  EXPECT_EQ(Take<StartWorker>().size(), 1u);
}

TEST_F(HostTest, WhenItsLastWorkerLeavesSavedSoDoesTheHost) {
  EnterFirstEpoch();
  host_.OnWorkerMessage(0, AtMessage{{7, 1}}, now_);
  host_.OnWorkerMessage(0, SavedMessage{8}, now_);
  host_.OnWorkerMessage(0, LeavingMessage{8}, now_);
  host_.OnWorkerMessage(0, ByeMessage{0, "stopped"}, now_);
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  ExpectExit(kExitStopped);
}

// A process with a big model takes long to end.
TEST_F(HostTest, TheOthersNeedNotWaitUntilWhoLeavesHasEnded) {
  EnterFirstEpoch();
  host_.OnStopAsked("SIGTERM", 30s, now_);
  host_.OnWorkerMessage(0, SavedMessage{8}, now_);
  EXPECT_EQ(host_.record().outside, 0);
  host_.OnWorkerMessage(0, LeavingMessage{8}, now_);
  EXPECT_EQ(host_.record().outside, 1);
  EXPECT_EQ(host_.record().state, MemberState::kLeaving);
  auto reports = Take<ReportBreak>();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].record.cause, BreakCause::kLeft);
  EXPECT_EQ(reports[0].record.reason, "rank 0 on h0 leaves: SIGTERM");
  host_.OnWorkerMessage(0, ByeMessage{0, "stopped"}, now_);
  EXPECT_TRUE(Take<ExitHost>().empty()) << "its end is awaited";
  host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_);
  EXPECT_EQ(host_.record().seats[0].state, SeatState::kLeft);
  const auto actions = host_.TakeActions();
  const auto exits = std::count_if(actions.begin(), actions.end(), [](const HostAction& action) {
    const auto* const exit = std::get_if<ExitHost>(&action.what);
    return exit != nullptr && exit->code == kExitStopped;
  });
  EXPECT_EQ(exits, 1);
}

// A later epoch took it in, and it still receives the state as it is told to leave.
TEST_F(HostTest, WhoLeavesBeforeItHasTheStateHasNothingToLose) {
  JoinsWithoutState();
  LeavesUnsaved(0, -1);
  ExpectExit(kExitStopped);
}

TEST_F(HostTest, WhoHasReceivedTheStateAndDoesNotSaveItLosesIt) {
  JoinsWithoutState();
  LeavesUnsaved(12, 12);
  ExpectExit(kExitUnsaved);
}

TEST_F(HostTest, StoppedBeforeTheFirstStepNothingWasLost) {
  EnterFirstEpoch();
  LeavesUnsaved(0, 0);
  ExpectExit(kExitStopped);
}

class HostOfAProgramInPlace : public HostTest {
 protected:
  HostOfAProgramInPlace() : HostTest(SaysHello()) {}

  static HostConfig SaysHello() {
    HostConfig config = Config();
    config.program_says_hello = true;
    return config;
  }
};

TEST_F(HostOfAProgramInPlace, StoppedBeforeItsWorkersSaidHelloNothingWasLost) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  host_.OnTime(now_);
  host_.OnStopAsked("SIGTERM", 30s, now_);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGTERM), now_);
  ExpectExit(kExitStopped);
}

TEST_F(HostTest, AForeignWorkerThatDiesOfAStopHasNotSaved) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  host_.OnTime(now_);
  host_.OnStopAsked("SIGTERM", 30s, now_);
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGTERM), now_);
  ExpectExit(kExitUnsaved);
}

// Programs for torchrun expect what came, and may know how to save at no other signal.
TEST_F(HostTest, AForeignWorkerGetsTheSignalThatCame) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  host_.OnTime(now_);
  ASSERT_EQ(Take<StartWorker>().size(), 1u);
  host_.OnStopAsked("SIGUSR1", 30s, now_, SIGUSR1);
  const auto signals = Take<SignalWorker>();
  ASSERT_EQ(signals.size(), 1u);
  EXPECT_EQ(signals[0].signal, SIGUSR1);
}

// Two seats in an epoch, their workers started.
class TwoSeats : public HostTest {
 protected:
  TwoSeats() : HostTest(Two(Config())) {}
  static HostConfig Two(HostConfig config) {
    config.seats = 2;
    return config;
  }
  void SetUp() override {
    EpochRecord epoch = Epoch(1, "");
    epoch.workers = {{0, 0, 0, ""}, {1, 0, 1, ""}};
    host_.OnMemberEvent(Registered{0}, now_);
    host_.OnMemberEvent(EpochSeen{epoch}, now_);
    host_.OnTime(now_);
  }
  void GetReady(int index) {
    host_.OnWorkerMessage(index, HelloMessage{}, now_);
    host_.OnWorkerMessage(index, ReadyMessage{}, now_);
    ASSERT_EQ(Take<EnterEpoch>().size(), 1u);
  }
};

// Both inside.
class TwoInside : public TwoSeats {
 protected:
  void SetUp() override {
    TwoSeats::SetUp();
    GetReady(0);
    GetReady(1);
  }
};

TEST_F(TwoInside, WhenOneSeesTheGroupBreakTheOtherIsToldAtOnce) {
  host_.OnWorkerMessage(1, ParkedMessage{1, 5, false}, now_);
  const auto sent = Take<SendToWorker>();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].index, 0);
  const auto* const told = std::get_if<BreakMessage>(&sent[0].message);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->epoch, 1);
  EXPECT_EQ(told->reason, "rank 1 on h0 saw the group break");
  EXPECT_EQ(host_.record().outside, 0) << "one is still inside";
  host_.OnWorkerMessage(0, ParkedMessage{1, 5, false}, now_);
  EXPECT_EQ(host_.record().outside, 1);
  EXPECT_TRUE(Take<ReportBreak>().empty()) << "told already";
}

// A break would take the save from the one that is still at it.
TEST_F(TwoInside, TheOthersGoOnOnceTheLastOneOfAHostThatLeavesIsDone) {
  host_.OnStopAsked("SIGTERM", 30s, now_);
  host_.OnWorkerMessage(0, LeavingMessage{8}, now_);
  EXPECT_TRUE(Take<ReportBreak>().empty());
  EXPECT_EQ(host_.record().outside, 0);
  host_.OnWorkerMessage(1, LeavingMessage{8}, now_);
  EXPECT_EQ(Take<ReportBreak>().size(), 1u);
  EXPECT_EQ(host_.record().outside, 1);
}

// Others still have a quorum of the epoch before one that has none.
TEST_F(TwoInside, AnEpochWithoutAQuorumIsNeitherMetNorShared) {
  const std::string first = host_.record().epoch.id;
  host_.OnMemberEvent(SuccessionSeen{{.met = first, .shared = first}}, now_);
  EXPECT_EQ(host_.record().seen.met, first);
  EXPECT_EQ(host_.record().seen.shared, first);
  EpochRecord next = *host_.epoch();
  next.number += 1;
  next.id = "without a quorum";
  next.by_lease = true;
  host_.OnMemberEvent(LinkSeen{next.id}, now_);
  host_.OnMemberEvent(EpochSeen{next}, now_);
  host_.OnMemberEvent(SuccessionSeen{{.met = next.id, .shared = next.id}}, now_);
  const EpochsSeen& seen = host_.record().seen;
  EXPECT_EQ(seen.met, first);
  EXPECT_EQ(seen.shared, first);
  EXPECT_EQ(seen.linked, next.id);
  EXPECT_EQ(seen.tried, std::vector<std::string>{next.id});
}

// One is inside when the stop comes, and the other has just been started.
class HalfStarted : public TwoSeats {
 protected:
  void SetUp() override {
    TwoSeats::SetUp();
    host_.OnMemberEvent(SuccessionSeen{{.coordinator = "me"}}, now_);   // and has no heirs
    GetReady(0);
    host_.OnStopAsked("SIGTERM", 30s, now_);
  }
};

TEST_F(HalfStarted, WhoIsInsideIsToldThatTheOtherWillNotCome) {
  bool stop = false, leave = false, reported = false, signalled = false;
  for (const HostAction& action : host_.TakeActions()) {
    if (const auto* const sent = std::get_if<SendToWorker>(&action.what)) {
      EXPECT_EQ(sent->index, 0);
      stop |= std::holds_alternative<StopMessage>(sent->message);
      leave |= std::holds_alternative<BreakMessage>(sent->message);
    } else if (const auto* const report = std::get_if<ReportBreak>(&action.what)) {
      reported = true;
      EXPECT_EQ(report->record.cause, BreakCause::kLeft);
      EXPECT_EQ(report->record.reason,
                "rank 1 on h0 was stopped before it entered the epoch: SIGTERM");
    } else if (const auto* const signal = std::get_if<SignalWorker>(&action.what)) {
      signalled |= signal->index == 1 && signal->signal == SIGTERM;
    }
  }
  EXPECT_TRUE(stop && leave && reported && signalled);
}

// Its own worker has not told yet of which kind it is; another host's has, and is inside.
TEST_F(HostTest, AStopBeforeTheKindIsKnownBreaksTheEpochOnceItIs) {
  host_.OnMemberEvent(Registered{0}, now_);
  host_.OnMemberEvent(EpochSeen{Epoch(1, "")}, now_);
  host_.OnTime(now_);
  host_.OnMemberEvent(StopSeen{{"other", "SIGTERM", 30000}}, now_);
  EXPECT_TRUE(Take<ReportBreak>().empty()) << "foreign workers are ended, and that is all";
  host_.OnWorkerEnded(0, ExitStatus::Killed(SIGTERM), now_);
  host_.OnMemberEvent(KindKnown{JobKind::kInPlace}, now_);
  const auto reports = Take<ReportBreak>();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].record.reason,
            "rank 0 on h0 was stopped before it entered the epoch: SIGTERM");
  Pass(1s);
  EXPECT_TRUE(Take<ReportBreak>().empty()) << "once";
}

TEST_F(HalfStarted, WhoHasParkedHasAllItsTimeToSave) {
  host_.OnWorkerEnded(1, ExitStatus::Killed(SIGTERM), now_);
  host_.OnWorkerMessage(0, ParkedMessage{1, 0, false}, now_);
  host_.TakeActions();
  Pass(29s);
  EXPECT_TRUE(Take<SignalWorker>().empty());
  Pass(1s);
  EXPECT_EQ(Take<SignalWorker>().size(), 1u);
}

TEST_F(HalfStarted, WhoLeavesWithoutAnyStateHasSavedNone) {
  host_.OnWorkerMessage(0, ParkedMessage{1, -1, false}, now_);
  host_.OnWorkerMessage(0, LeavingMessage{-1}, now_);
  EXPECT_FALSE(host_.record().seats[0].saved);
}

TEST_F(HalfStarted, WhatItHoldsIsSavedByWhoLeaves) {
  host_.OnWorkerMessage(0, ParkedMessage{1, 7, false}, now_);
  host_.OnWorkerMessage(0, SavedMessage{7}, now_);
  host_.OnWorkerMessage(0, LeavingMessage{7}, now_);
  EXPECT_TRUE(host_.record().seats[0].saved);
}


// The coordinator, without heirs, is told to stop while the store is away. Its worker saves, and
// ends.
class LeavesWithoutStore : public HostTest {
 protected:
  LeavesWithoutStore() : HostTest(WithLimit()) {
    EnterFirstEpoch();
    SuccessionRecord record;
    record.coordinator = "me";
    host_.OnMemberEvent(SuccessionSeen{record}, now_);
    host_.OnContact(now_);
    Pass(2s);
    host_.OnStopAsked("SIGTERM", 30s, now_);
    host_.OnWorkerMessage(0, SavedMessage{7}, now_);
    host_.OnWorkerMessage(0, LeavingMessage{7}, now_);
    host_.TakeActions();
  }
  static HostConfig WithLimit() {
    HostConfig config = Config();
    config.store_limit = 5s;
    return config;
  }
  void EndWorker() { host_.OnWorkerEnded(0, ExitStatus::Exited(0), now_); }
};

TEST_F(LeavesWithoutStore, WaitsNoLongerForAnEndThatNobodyCanSay) {
  EndWorker();
  Pass(2s);
  EXPECT_TRUE(Take<ExitHost>().empty()) << "the store may come back";
  EXPECT_EQ(host_.NextWake(), now_ + 1s);
  Pass(1s);
  const std::vector<HostAction> actions = host_.TakeActions();
  ASSERT_FALSE(actions.empty());
  const auto* const exit = std::get_if<ExitHost>(&actions.back().what);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->code, kExitStopped);
  EXPECT_THAT(actions.back().why,
              HasSubstr("SIGTERM, and the store could not be reached for 5 s"));
}

TEST_F(LeavesWithoutStore, WhoStillSavesHasItsTime) {
  Pass(20s);
  EXPECT_TRUE(Take<ExitHost>().empty());
  EXPECT_NE(host_.record().seats[0].state, SeatState::kLeft);
  EndWorker();
  EXPECT_TRUE(Take<ExitHost>().empty()) << "what the store says may be yet to be read";
  Pass(1s);
  ExpectExit(kExitStopped);
}

TEST_F(LeavesWithoutStore, WaitsForTheEndOnceTheStoreIsBack) {
  EndWorker();
  for (int i = 0; i < 14; ++i) {
    host_.OnContact(now_);
    Pass(4s);
    EXPECT_TRUE(Take<ExitHost>().empty());
  }
  host_.OnMemberEvent(EndSeen{{kExitStopped, "SIGTERM"}}, now_);
  ExpectExit(kExitStopped);
}

}  // namespace
}  // namespace keel
