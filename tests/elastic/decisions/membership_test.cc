// Decide(): each question that the coordinator asks itself, at its boundaries, with its words.
#include "elastic/decisions/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/protocol/exit_codes.h"

namespace keel {

// How GoogleTest shows them.
inline void PrintTo(Decision::Verdict verdict, std::ostream* out) {
  constexpr const char* kNames[] = {"wait",  "expire",   "refuse", "shun", "take up", "form",
                                    "break", "announce", "stop",   "end"};
  *out << kNames[static_cast<int>(verdict)];
}
inline void PrintTo(Reason reason, std::ostream* out) { *out << static_cast<int>(reason); }

namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = Decision::Verdict;

constexpr TimePoint kNow{1000s};

// A view with hosts that were just heard, each with one seat.
class Membership : public testing::Test {
 protected:
  Membership() {
    policy_.hosts_min = 2;
    policy_.hosts_max = 3;
    view_.coordinator = "i0";
    view_.opened = view_.idle_since = kNow - 1s;
  }

  HostView& AddHost(SeatState state = SeatState::kEmpty) {
    HostView host;
    host.slot = static_cast<int64_t>(view_.hosts.size());
    const std::string number = std::to_string(host.slot);
    host.record.incarnation = "i" + number;
    host.record.host = "h" + number;
    host.record.kind = view_.kind;
    host.record.seats = {{"w" + number, state, 0, -1, {}, false, ""}};
    host.arrived = host.heard = kNow - 500ms;
    view_.hosts.push_back(host);
    return view_.hosts.back();
  }

  // So many hosts, all inside epoch 4.
  void Running(int hosts, JobKind kind = JobKind::kInPlace) {
    view_.kind = kind;
    view_.epoch.emplace();
    EpochRecord& record = view_.epoch->record;
    record.number = 4;
    record.id = "cafe";
    record.kind = kind;
    for (int i = 0; i < hosts; ++i) {
      HostView& host = AddHost(SeatState::kRunning);
      host.record.epoch = {4, "cafe", hosts};
      host.record.outside = 3;
      host.record.seats[0].epoch = 4;
      host.record.seats[0].rank = i;
      host.record.seats[0].position = {10, 0};
      record.hosts.push_back({host.slot, host.record.incarnation, i});
      record.workers.push_back({i, host.slot, 0, host.record.seats[0].worker});
    }
    view_.epoch->moved = kNow - 1s;
  }

  // Its worker is out of epoch 4.
  void Out(int slot, SeatState state) {
    view_.hosts[slot].record.seats[0].state = state;
    view_.hosts[slot].record.outside = 4;
  }

  void Broken() {
    view_.epoch->broken = BreakRecord{4, "cafe", BreakCause::kDied, "i0", "rank 1 died", {}};
    view_.idle_since = kNow - 100ms;
  }

  Decision Expect(Verdict verdict, Reason reason, const std::string& words, TimePoint now = kNow) {
    const Decision decision = Decide(view_, policy_, now);
    EXPECT_EQ(decision.verdict, verdict) << decision.detail;
    EXPECT_EQ(decision.reason, reason) << decision.detail;
    EXPECT_THAT(decision.detail, HasSubstr(words));
    if (verdict == Verdict::kWait) {
      EXPECT_GT(decision.until, now);
      EXPECT_LT(decision.until, kNever) << "a wait without a limit: " << decision.detail;
    }
    return decision;
  }

  JobView view_;
  JobPolicy policy_;
};

// --- After a board that is written no more ---

TEST_F(Membership, HostsOfTheFormerEpochThatMayLiveAreWaitedForWhereNoQuorumIsNeeded) {
  policy_.needs_quorum = false;
  policy_.hosts_max = 2;
  AddHost();
  AddHost();
  view_.former = CountedEpoch{7, "beef", "i8", {"i8", "i9"}};
  const Decision wait = Expect(Verdict::kWait, Reason::kFence,
                               "2 hosts of epoch 7 may still run it, out of reach");
  EXPECT_EQ(wait.gives_up, view_.opened + policy_.fence_limit);
  view_.former->hosts = {"i8", "i1"};   // one of them is here, and the other needs it
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kAllHere, "2 workers").epoch.number, 8);
  view_.former->hosts = {};             // all are known to be dead
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kAllHere, "2 workers").epoch.number, 8);
}

TEST_F(Membership, HostsOfTheFormerEpochHaveEndedTheirWorkersAfterTheFenceLimit) {
  policy_.needs_quorum = false;
  policy_.hosts_max = 2;
  AddHost();
  AddHost();
  view_.former = CountedEpoch{7, "beef", "i8", {"i8", "i9"}};
  const TimePoint fenced = view_.opened + policy_.fence_limit;
  for (HostView& host : view_.hosts) host.heard = fenced - 1s;
  Expect(Verdict::kWait, Reason::kFence, "", fenced - 1ns);
  Expect(Verdict::kForm, Reason::kAllHere, "2 workers", fenced);
}

// --- The first epoch ---

TEST_F(Membership, TooFewHostsAreWaitedForAndNamed) {
  AddHost();
  Expect(Verdict::kWait, Reason::kHostsMissing,
         "waiting for hosts: 1 of 2 here (min 2, max 3); here: h0 (slot 0)");
}

TEST_F(Membership, TooFewHostsForTooLongEndTheJob) {
  AddHost();
  const TimePoint limit = view_.idle_since + policy_.join_limit;
  view_.hosts[0].heard = limit;
  Expect(Verdict::kWait, Reason::kHostsMissing, "", limit - 1ns);
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kQuorumLost,
                   "timed out: too few hosts after 10 min 0 s: 1 of 2 here (min 2, max 3); "
                   "here: h0",
                   limit)
                .code,
            kExitQuorumLost);
}

TEST_F(Membership, BelowMinTheLostHostIsNamedBesideThoseWhoAreHere) {
  Running(2);
  Broken();
  Out(0, SeatState::kParked);
  view_.hosts[1].gone = true;
  Expect(Verdict::kWait, Reason::kHostsMissing, "here: h0 (slot 0); lost: h1 (slot 1)");
}

TEST_F(Membership, EnoughHostsWaitForALastCall) {
  AddHost();
  AddHost().arrived = kNow;
  const TimePoint limit = kNow + policy_.last_call_limit;
  for (HostView& host : view_.hosts) host.heard = limit;
  Expect(Verdict::kWait, Reason::kLastCall, "2 of at most 3 hosts are here", limit - 1ns);
  Expect(Verdict::kForm, Reason::kLastCallOver, "2 workers on 2 hosts", limit);
}

TEST_F(Membership, AllHostsNeedNoLastCall) {
  for (int i = 0; i < 3; ++i) AddHost();
  const Decision decision = Expect(Verdict::kForm, Reason::kAllHere, "3 workers on 3 hosts");
  EXPECT_EQ(decision.epoch.number, 1);
  EXPECT_EQ(decision.epoch.hosts.size(), 3u);
  EXPECT_EQ(decision.epoch.workers[2].worker, "") << "the first ones are yet to be started";
}

TEST_F(Membership, NoMoreThanTheMostAreTakenAndTheCoordinatorIsOneOfThem) {
  for (int i = 0; i < 5; ++i) AddHost();
  view_.coordinator = "i4";
  const Decision decision = Expect(Verdict::kForm, Reason::kAllHere, "3 workers on 3 hosts");
  std::vector<int64_t> slots;
  for (const EpochHost& host : decision.epoch.hosts) slots.push_back(host.slot);
  EXPECT_EQ(slots, (std::vector<int64_t>{4, 0, 1})) << "the coordinator has group rank 0";
}

TEST_F(Membership, HostsOfOneRoleShareANumberAndOthersHaveTheirOwn) {
  policy_.hosts_max = 5;
  for (const char* role : {"actor", "learner", "actor", "", "learner"}) {
    AddHost().record.role = role;
  }
  view_.coordinator = "i1";
  const Decision decision = Expect(Verdict::kForm, Reason::kAllHere, "5 workers on 5 hosts");
  std::vector<std::pair<int64_t, int>> roles;   // of each slot
  for (const EpochHost& host : decision.epoch.hosts) roles.push_back({host.slot, host.role});
  EXPECT_EQ(roles, (std::vector<std::pair<int64_t, int>>{{1, 0}, {0, 1}, {2, 1}, {3, 3}, {4, 0}}));
}

// --- Who is gone ---

TEST_F(Membership, ASilentHostExpiresAtTheLimitAndNotBefore) {
  Running(2);
  view_.hosts[1].heard = kNow - policy_.beat_limit;
  EXPECT_EQ(Expect(Verdict::kExpire, Reason::kSilent, "(slot 1) was last heard from 3 s ago").slot,
            1);
  view_.hosts[1].heard = kNow - policy_.beat_limit + 1ns;
  Expect(Verdict::kWait, Reason::kRunning, "epoch 4 runs");
}

TEST_F(Membership, TheCoordinatorsOwnHostMayComeLate) {
  Running(2);
  view_.hosts[0].heard = kNow - 10 * policy_.beat_limit + 1ns;
  Expect(Verdict::kWait, Reason::kRunning, "epoch 4 runs");
  view_.hosts[0].heard = kNow - 10 * policy_.beat_limit;
  EXPECT_EQ(Expect(Verdict::kExpire, Reason::kSilent, "the limit is 30 s").slot, 0);
}

TEST_F(Membership, AClosedPresenceConnectionExpiresAHostAfterItsGrace) {
  Running(2);
  view_.hosts[1].presence_closed = kNow - policy_.presence_grace + 1ns;
  Expect(Verdict::kWait, Reason::kRunning, "");
  view_.hosts[1].presence_closed = kNow - policy_.presence_grace;
  Expect(Verdict::kExpire, Reason::kPresenceClosed, "h1 (slot 1) closed its presence connection");
}

TEST_F(Membership, AnotherFingerprintIsRefusedWithBothValues) {
  Running(2);
  view_.hosts[0].record.fingerprint = "avx2";
  AddHost(SeatState::kReady).record.fingerprint = "avx512";
  const Decision decision = Expect(Verdict::kRefuse, Reason::kOtherFingerprint, "'avx512'");
  EXPECT_EQ(decision.slot, 2);
  EXPECT_THAT(decision.detail, HasSubstr("'avx2'"));
  policy_.allow_inexact = true;
  Expect(Verdict::kAnnounce, Reason::kSomebodyWaits, "h2");
}

TEST_F(Membership, NobodyIsRefusedBeforeTheCoordinatorsWorkersHaveSpoken) {
  view_.kind = JobKind::kInPlace;
  policy_.hosts_min = policy_.hosts_max = 2;
  view_.idle_since = kNow;
  AddHost();
  AddHost(SeatState::kReady).record.fingerprint = "a";
  AddHost(SeatState::kReady).record.fingerprint = "b";
  // Nor are the two put into one epoch.
  Expect(Verdict::kWait, Reason::kNumericsOpen, "h1 (slot 1) and h2 (slot 2) have different");
  policy_.allow_inexact = true;
  EXPECT_EQ(Decide(view_, policy_, kNow).verdict, Verdict::kForm);
}

TEST_F(Membership, EpochsThatBreakBeforeTheirFirstStepAreTriedAgainWithPauses) {
  Running(2);
  Out(0, SeatState::kParked);
  Out(1, SeatState::kParked);
  view_.epoch->broken = BreakRecord{4, "cafe", BreakCause::kReported, "i0", "no route", {}};
  view_.idle_since = view_.barren_since = kNow;
  view_.barren = 4;
  Expect(Verdict::kWait, Reason::kBarren, "4 epochs in a row broke before their first step, the "
                                          "last one: no route");
  EXPECT_EQ(Decide(view_, policy_, kNow + 100ms).verdict, Verdict::kForm);
  view_.barren = 3;
  EXPECT_EQ(Decide(view_, policy_, kNow).verdict, Verdict::kForm);
  view_.barren = 30;
  view_.barren_since = kNow - policy_.join_limit;
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kNeverBuilt, "reach each other").code, 1);
}

TEST_F(Membership, AHostThatIsRefusedStopsNobodyElse) {
  Running(3);
  policy_.hosts_min = 3;
  view_.hosts[2].record.state = MemberState::kLeaving;
  EXPECT_EQ(Decide(view_, policy_, kNow).verdict, Verdict::kStop);
  view_.hosts[2].record.refused = true;
  EXPECT_NE(Decide(view_, policy_, kNow).verdict, Verdict::kStop);
}

TEST_F(Membership, TheCoordinatorsOwnFingerprintIsTheJobs) {
  AddHost().record.fingerprint = "a";
  AddHost().record.fingerprint = "b";
  view_.coordinator = "i1";
  EXPECT_EQ(Expect(Verdict::kRefuse, Reason::kOtherFingerprint, "").slot, 0);
}

TEST_F(Membership, AnUnreadableRecordIsRefusedWithItsError) {
  AddHost();
  AddHost().unreadable = "store key member/1: its protocol version is 2, ours is 1";
  EXPECT_EQ(Expect(Verdict::kRefuse, Reason::kUnreadable, "version is 2").slot, 1);
}

// --- Whether the epoch runs on ---

TEST_F(Membership, ADeathBreaksTheEpochThoughItsSupervisorsReportGotLost) {
  Running(2);
  view_.hosts[1].record.seats[0].state = SeatState::kDead;
  view_.hosts[1].record.seats[0].ended = "killed by signal 9 (SIGKILL)";
  const Decision decision =
      Expect(Verdict::kBreak, Reason::kBroken, "rank 1 on h1 (slot 1) killed by signal 9");
  EXPECT_EQ(decision.broken.cause, BreakCause::kDied);
  EXPECT_EQ(decision.broken.id, "cafe");
}

TEST_F(Membership, ADeathOfTheOnlyForeignWorkersIsABreakThoughItsReportComesLater) {
  policy_.hosts_min = 1;
  Running(1, JobKind::kForeign);
  Out(0, SeatState::kDead);
  view_.hosts[0].record.seats[0].ended = "exited with 3";
  const Decision decision =
      Expect(Verdict::kBreak, Reason::kBroken, "rank 0 on h0 (slot 0) exited with 3");
  EXPECT_EQ(decision.broken.cause, BreakCause::kDied);
}

TEST_F(Membership, AGoneHostBreaksTheEpochUnlessItsWorkIsDone) {
  Running(2);
  view_.hosts[1].gone = true;
  view_.hosts[1].gone_reason = "h1 was silent";
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "h1 was silent").broken.cause,
            BreakCause::kHostLost);
  view_.hosts[1].record.seats[0].state = SeatState::kFinished;
  Expect(Verdict::kWait, Reason::kRunning, "");
}

TEST_F(Membership, AGoneForeignHostThatFinishedTheFormerEpochBreaksThisOne) {
  Running(2);
  view_.kind = view_.epoch->record.kind = JobKind::kForeign;
  view_.hosts[1].gone = true;
  view_.hosts[1].gone_reason = "h1 was silent";
  SeatRecord& seat = view_.hosts[1].record.seats[0];
  seat.state = SeatState::kFinished;
  Expect(Verdict::kWait, Reason::kRunning, "");
  --seat.epoch;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "h1 was silent").broken.cause,
            BreakCause::kHostLost);
}

// Its workers die of the signal while another host is about to coordinate.
TEST_F(Membership, AForeignHostThatHandsOverAndStopsSpendsNoRestart) {
  policy_.hosts_min = 1;
  Running(2, JobKind::kForeign);
  view_.handing_over = true;
  view_.hosts[0].record.state = MemberState::kLeaving;
  view_.hosts[0].record.reason = "SIGTERM";
  Expect(Verdict::kWait, Reason::kRunning, "");
  view_.hosts[0].record.seats[0].state = SeatState::kDead;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "leaves: SIGTERM").broken.cause,
            BreakCause::kLeft);
}

TEST_F(Membership, ABoundaryThatNotAllReachIsABreak) {
  Running(2);
  view_.epoch->parked = kNow - policy_.park_limit;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "parked at a boundary 5 s ago").broken.cause,
            BreakCause::kNotParked);
}

TEST_F(Membership, AHangNamesItsRanks) {
  Running(2);
  policy_.hang_limit = 10s;
  view_.epoch->moved = kNow - 10s;
  view_.hosts[1].record.seats[0].position = {9, 2};
  const Decision decision = Expect(Verdict::kBreak, Reason::kBroken, "step 9, phase 2");
  EXPECT_EQ(decision.broken.cause, BreakCause::kHung);
  EXPECT_EQ(decision.broken.ranks, std::vector<int64_t>{1});
}

TEST_F(Membership, AHangNamesTheOneThatIsWaitedForWhateverThePositions) {
  Running(3);
  policy_.hang_limit = 10s;
  view_.epoch->moved = kNow - 10s;
  for (const size_t waiting : {0u, 2u}) {
    view_.hosts[waiting].record.seats[0].activity = {"computing, bucket 0", 1};
  }
  SeatRecord& stopped = view_.hosts[1].record.seats[0];
  stopped.position = {view_.hosts[0].record.seats[0].position.step, 9};
  stopped.activity = {"computing, lane 3", Activity::kNobody};
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "rank 1 is stuck in its own code")
                .broken.ranks,
            std::vector<int64_t>{1});
  stopped.silent = true;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "rank 1 says nothing at all").broken.ranks,
            std::vector<int64_t>{1});
}

TEST_F(Membership, WhereAllComputeForLongItSaysSoAndWaits) {
  Running(2);
  policy_.hang_limit = 10s;
  view_.epoch->moved = kNow - 10s;
  for (HostView& host : view_.hosts) host.record.seats[0].activity = {"lane", Activity::kNobody};
  Expect(Verdict::kWait, Reason::kStandsStill, "raise --hang-limit");
}

// All would wait for it until their time to save is over.
TEST_F(Membership, WhileTheJobStopsOneThatHangsIsNamedInTime) {
  Running(2);
  view_.epoch->moved = kNow - 50s;
  view_.hosts[0].record.seats[0].activity = {"voting", 1};
  view_.hosts[1].record.seats[0].silent = true;
  Expect(Verdict::kWait, Reason::kRunning, "");
  view_.stop = StopRecord{"h0", "SIGTERM", 30'000};
  view_.stopped_at = kNow - 9s;
  EXPECT_EQ(Expect(Verdict::kWait, Reason::kStopping, "").verdict, Verdict::kWait);
  view_.stopped_at = kNow - 10s;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "rank 1 says nothing").broken.ranks,
            std::vector<int64_t>{1});
}

TEST_F(Membership, WhoNeverEnteredHangsToo) {
  Running(2);
  view_.hosts[1].record.seats[0].position = {};
  view_.epoch->moved = kNow - policy_.enter_limit;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "has not reported a position").broken.ranks,
            std::vector<int64_t>{1});
}

TEST_F(Membership, TheOthersAreWatchedWhenOneHasFinished) {
  Running(2);
  Out(0, SeatState::kFinished);
  policy_.hang_limit = 10s;
  view_.epoch->moved = kNow - 10s;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "nothing moved").broken.ranks,
            std::vector<int64_t>{1});
}

TEST_F(Membership, AWorkerThatWaitsIsAnnouncedOnce) {
  Running(2);
  AddHost(SeatState::kReady);
  Expect(Verdict::kAnnounce, Reason::kSomebodyWaits, "a worker on h2 (slot 2) waits");
  view_.epoch->announced = true;
  Expect(Verdict::kWait, Reason::kRunning, "");
}

TEST_F(Membership, AMemberWhoseRecordIsOlderThanItsEpochIsNotAnnounced) {
  Running(2);
  SeatRecord& seat = view_.hosts[1].record.seats[0];
  seat.state = SeatState::kReady;
  seat.epoch = 0;
  Expect(Verdict::kWait, Reason::kRunning, "");
  seat.worker = "its successor";
  Expect(Verdict::kAnnounce, Reason::kSomebodyWaits, "a worker on h1 (slot 1) waits");
}

TEST_F(Membership, BeyondTheMostNobodyIsAnnounced) {
  policy_.hosts_max = 2;
  Running(2);
  AddHost(SeatState::kReady);
  Expect(Verdict::kWait, Reason::kRunning, "");
}

TEST_F(Membership, AForeignNewcomerBreaksTheEpochAfterItsLastCall) {
  Running(2, JobKind::kForeign);
  AddHost().arrived = kNow - policy_.rejoin_limit + 1ns;
  Expect(Verdict::kWait, Reason::kJoinLastCall, "h2 (slot 2) joined; others may follow");
  view_.hosts[2].arrived = kNow - policy_.rejoin_limit;
  EXPECT_EQ(Expect(Verdict::kBreak, Reason::kBroken, "h2 (slot 2) joined").broken.cause,
            BreakCause::kJoined);
}

// --- The next epoch ---

TEST_F(Membership, NoEpochIsFormedWhileAWorkerMayBeInsideTheFormer) {
  Running(3);
  Broken();
  Out(0, SeatState::kParked);
  Out(1, SeatState::kParked);
  Expect(Verdict::kWait, Reason::kWorkersInside, "h2 (slot 2) still has workers inside epoch 4");
  Out(2, SeatState::kDead);
  const Decision decision =
      Expect(Verdict::kForm, Reason::kReformed, "2 workers on 2 hosts, after: rank 1 died");
  EXPECT_EQ(decision.epoch.number, 5);
}

TEST_F(Membership, NobodyWaitsForAReplacement) {
  Running(2);
  Broken();
  policy_.hosts_min = 1;
  Out(0, SeatState::kParked);
  Out(1, SeatState::kStarting);
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kReformed, "").epoch.workers.size(), 1u);
}

TEST_F(Membership, SurvivorsKeepTheirRanks) {
  Running(3);
  Broken();
  Out(0, SeatState::kDead);
  Out(1, SeatState::kParked);
  Out(2, SeatState::kParked);
  const Decision decision = Expect(Verdict::kForm, Reason::kReformed, "");
  EXPECT_EQ(decision.epoch.workers[1].worker, "w1") << "rank 1 stays rank 1";
  EXPECT_EQ(decision.epoch.workers[0].worker, "w2");
}

// Without a worker of the others, a lost host's cannot get on.
TEST_F(Membership, ALostHostIsNotWaitedForWhereItCannotGetOnAlone) {
  Running(3);
  Broken();
  view_.hosts[2].gone = true;
  Out(0, SeatState::kParked);
  Out(1, SeatState::kParked);
  Expect(Verdict::kForm, Reason::kReformed, "2 workers on 2 hosts");
}

TEST_F(Membership, ALostHostThatMayRunAloneIsWaitedForUntilItHasStoppedByItself) {
  policy_.hosts_min = 1;
  policy_.needs_quorum = false;
  Running(1);
  Broken();
  view_.hosts[0].gone = true;
  AddHost(SeatState::kReady);
  const TimePoint limit = view_.hosts[0].heard + policy_.fence_limit;
  Expect(Verdict::kWait, Reason::kFence, "h0 (slot 0) may still run epoch 4 alone");
  view_.hosts[1].heard = limit;
  Expect(Verdict::kWait, Reason::kFence, "", limit - 1ns);
  Expect(Verdict::kForm, Reason::kReformed, "", limit);
}

// None of the hosts that are here was ever in an epoch, and yet this board has formed one.
TEST_F(Membership, ALostHostThatMayHaveTakenTheRoleOverIsNotGoneOnWithout) {
  policy_.hosts_min = 1;
  Running(1);
  Broken();
  view_.hosts[0].gone = true;
  AddHost(SeatState::kReady).heard = view_.hosts[0].heard + policy_.fence_limit;
  const TimePoint limit = view_.hosts[1].heard;
  Expect(Verdict::kWait, Reason::kNoQuorum, "0 of 1 host of epoch 4", limit);
  view_.hosts[0].died = true;   // and so has formed nothing
  Expect(Verdict::kForm, Reason::kReformed, "", limit);
}

TEST_F(Membership, ALostHostThatIsBackUnderANewSlotHasStopped) {
  policy_.hosts_min = 1;
  Running(1);
  Broken();
  view_.hosts[0].gone = true;
  HostView& back = AddHost(SeatState::kReady);
  back.record.incarnation = "i0";
  Expect(Verdict::kForm, Reason::kReformed, "1 worker on 1 host");
}

// --- A store that was lost ---

TEST_F(Membership, AnEpochThatAllItsHostsTellOfIsTakenUp) {
  Running(2);
  const auto epoch = std::exchange(view_.epoch, std::nullopt);
  const Decision decision = Expect(Verdict::kTakeUp, Reason::kTold,
                                   "epoch 4 goes on in a new store, as its hosts report it");
  EXPECT_FALSE(decision.incomplete);
  EXPECT_EQ(decision.epoch.id, epoch->record.id);
  EXPECT_EQ(decision.epoch.workers, epoch->record.workers);
}

TEST_F(Membership, AnEpochWithoutAllItsHostsIsTakenUpLaterAndBroken) {
  Running(2);
  view_.epoch.reset();
  view_.hosts[0].record.epoch.hosts = view_.hosts[1].record.epoch.hosts = 3;
  Expect(Verdict::kWait, Reason::kTakingUp, "2 of 3 hosts of epoch 4 are back");
  const TimePoint limit = view_.hosts[0].arrived + policy_.beat_limit;
  for (HostView& host : view_.hosts) host.heard = limit;
  EXPECT_TRUE(Expect(Verdict::kTakeUp, Reason::kTold, "", limit).incomplete);
}

// Its store is gone, and this board could not have been opened if it lived. A foreign program's
// workers may live on there, and get the time to end.
TEST_F(Membership, TheHostThatKeptALostStoreIsNotWaitedFor) {
  Running(2);
  view_.epoch.reset();
  for (HostView& host : view_.hosts) {
    host.record.epoch.hosts = 3;
    host.record.epoch.keeper = "gone";
  }
  const Decision decision =
      Expect(Verdict::kTakeUp, Reason::kTold,
             "without the host that kept the store that is gone");
  EXPECT_TRUE(decision.incomplete);
  EXPECT_TRUE(decision.keeper_lost);
  view_.hosts[1].record.epoch.keeper = view_.hosts[0].record.epoch.keeper = "i1";
  Expect(Verdict::kWait, Reason::kTakingUp, "2 of 3 hosts of epoch 4 are back");
  view_.hosts[1].record.epoch.keeper = view_.hosts[0].record.epoch.keeper = "gone";
  view_.kind = JobKind::kForeign;
  Expect(Verdict::kWait, Reason::kTakingUp, "2 of 3 hosts of epoch 4 are back");
}

// All others are back, so nobody is left for whom a last call could be.
TEST_F(Membership, WithoutTheHostThatKeptTheStoreTheNextEpochIsFormedAtOnce) {
  Running(2);
  Broken();
  for (int slot : {0, 1}) {
    Out(slot, SeatState::kParked);
    view_.hosts[slot].arrived = kNow - 1ms;
  }
  view_.epoch->taken_up = true;
  Expect(Verdict::kWait, Reason::kLastCall, "2 of at most 3 hosts are here; waiting");
  view_.epoch->keeper_lost = true;
  Expect(Verdict::kForm, Reason::kReformed, "2 workers on 2 hosts, after: rank 1 died");
}

TEST_F(Membership, RestartsThatAnotherStoreHasCountedAreNotForgotten) {
  Running(2);
  for (HostView& host : view_.hosts) {
    host.record.epoch.restarts = 7;
    host.record.epoch.restarts_recent = 2;
  }
  const EpochView before = *std::exchange(view_.epoch, std::nullopt);
  const Decision taken = Expect(Verdict::kTakeUp, Reason::kTold, "");
  EXPECT_EQ(taken.epoch.restarts, 7);
  EXPECT_EQ(taken.epoch.restarts_recent, 2);
  view_.epoch = before;
  Broken();
  Out(0, SeatState::kParked);
  Out(1, SeatState::kParked);
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kReformed, "").epoch.restarts, 7);
}

TEST_F(Membership, ANewEpochIsNumberedAboveAllThatHostsTellOf) {
  policy_.hosts_min = 1;
  Running(1);
  Broken();
  Out(0, SeatState::kParked);
  HostView& other = AddHost(SeatState::kParked);
  other.record.epoch = {9, "beef", 1};
  other.record.outside = 9;
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kReformed, "").epoch.number, 10);
}

// Programs ask whether their job has begun: those that shall begin anew refuse a checkpoint then.
TEST_F(Membership, TheFirstEpochOfARunIsToldFromThoseOfEarlierRunsThatALeaseKnows) {
  for (int i = 0; i < 3; ++i) AddHost();
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kAllHere, "").epoch.first, 1);
  LinkView& lease = view_.lease.emplace();
  lease.is_seen = lease.is_over = true;
  lease.number = 3;
  lease.link.place = {1, 7, "old:1", "old"};
  lease.link.epoch = "e7";
  const EpochRecord first = Expect(Verdict::kForm, Reason::kAllHere, "").epoch;
  EXPECT_EQ(first.number, 8);
  EXPECT_EQ(first.first, 8);
  view_.former_first = 6;
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kAllHere, "").epoch.first, 6)
      << "the board before had this run's first epoch";
  view_.former_first.reset();
  view_.hosts[1].record.epoch.first = 1;
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kAllHere, "").epoch.first, 1)
      << "it has read an epoch, though none here was in one, or was taken for dead and began anew";
}

TEST_F(Membership, LaterEpochsKnowTheFirstOneOfTheirRun) {
  Running(2);
  view_.epoch->record.first = 3;
  for (HostView& host : view_.hosts) host.record.epoch.first = 3;
  const EpochView before = *std::exchange(view_.epoch, std::nullopt);
  EXPECT_EQ(Expect(Verdict::kTakeUp, Reason::kTold, "").epoch.first, 3);
  view_.epoch = before;
  Broken();
  Out(0, SeatState::kParked);
  Out(1, SeatState::kParked);
  const EpochRecord next = Expect(Verdict::kForm, Reason::kReformed, "").epoch;
  EXPECT_EQ(next.number, 5);
  EXPECT_EQ(next.first, 3);
}

TEST_F(Membership, AStopInTheFirstEpochOfARunLosesNothingWhateverItsNumber) {
  Running(2);
  view_.stop = StopRecord{"i0", "SIGTERM", 5000};
  view_.stopped_at = kNow;
  for (HostView& host : view_.hosts) {
    host.record.state = MemberState::kLeaving;
    host.record.seats[0].state = SeatState::kLeft;
    host.record.seats[0].position = {0, 0};
  }
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kStoppedUnsaved, "").code, kExitUnsaved);
  view_.epoch->record.first = 4;
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kStopped, "").code, kExitStopped);
}

// --- The job's end ---

TEST_F(Membership, AllFinishedEndsTheJob) {
  Running(2);
  Out(0, SeatState::kFinished);
  Out(1, SeatState::kFinished);
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kFinished, "all 2 workers of epoch 4 finished").code, 0);
}

TEST_F(Membership, WhoHasRegisteredAnewIsNotThereTwice) {
  Running(2);
  view_.hosts[1].anew = 5;
  const Decision decision = Expect(Verdict::kExpire, Reason::kRegisteredAnew,
                                   "h1 (slot 1) has registered anew in slot 5");
  EXPECT_EQ(decision.slot, 1);
}

// Who has read the end may be the only one left of its board, and newcomers are to hear the same.
TEST_F(Membership, WhoOpensABoardAndHasReadTheEndOfTheOneBeforePassesItOn) {
  view_.is_later_board = true;
  AddHost();
  AddHost();
  HostView& own = view_.hosts[0];
  own.record.state = MemberState::kLeaving;
  own.record.finished = 4;
  own.record.finished_id = "cafe";
  const Decision end = Expect(Verdict::kEnd, Reason::kFinished, "epoch 4 finished, as 'h0' has");
  EXPECT_EQ(end.code, 0);
  view_.hosts[1].record.epoch = {5, "beef", 2};   // the job went on elsewhere
  EXPECT_NE(Decide(view_, policy_, kNow).verdict, Verdict::kEnd);
  view_.hosts[1].record.epoch = {};
  view_.counted = {{6, "dada", "i7", {"i7"}}};
  EXPECT_NE(Decide(view_, policy_, kNow).verdict, Verdict::kEnd);
}

TEST_F(Membership, TheEndThatAnotherHostHasReadHoldsForWhoWasInThatEpoch) {
  policy_.hosts_min = 1;
  AddHost().record.epoch = {4, "cafe", 2};
  HostView& knowing = AddHost();
  knowing.record.finished = 4;
  knowing.record.finished_id = "cafe";
  Expect(Verdict::kEnd, Reason::kFinished, "epoch 4 finished, as 'h1' has");
  view_.hosts[1].gone = true;   // it has left, and was right
  Expect(Verdict::kEnd, Reason::kFinished, "epoch 4 finished");
}

// The same command, once more: a host of the run before has not left yet, and comes to its board.
TEST_F(Membership, TheEndOfTheRunBeforeIsNoEndOfThisOne) {
  AddHost();
  AddHost();
  HostView& left_over = view_.hosts[0];
  left_over.record.incarnation = "of the run before";
  left_over.record.epoch = {4, "cafe", 2};
  left_over.record.finished = 4;
  left_over.record.finished_id = "cafe";
  EXPECT_NE(Decide(view_, policy_, kNow).verdict, Verdict::kEnd);
  view_.is_later_board = true;   // as on etcd, where terms only rise
  EXPECT_NE(Decide(view_, policy_, kNow).verdict, Verdict::kEnd);
}

TEST_F(Membership, AnEndThatWasReadBeforeThisEpochIsNoEndOfIt) {
  Running(2);
  view_.is_later_board = true;
  view_.hosts[0].record.finished = 3;
  view_.hosts[0].record.finished_id = "abba";
  Expect(Verdict::kWait, Reason::kRunning, "epoch 4");
}

// One died while it said goodbye, and again as the only one of the next epoch.
TEST_F(Membership, HostsThatFinishedInAnEarlierEpochAreNotMissing) {
  Running(1);
  Broken();
  Out(0, SeatState::kReady);
  HostView& done = AddHost(SeatState::kFinished);
  done.record.epoch = {3, "beef", 2};
  done.record.outside = 3;
  done.record.seats[0].epoch = 3;
  Expect(Verdict::kForm, Reason::kReformed, "1 worker on 1 host");
}

// In place, one worker's success says that the group has done the work.
TEST_F(Membership, WhereAllThatAreLeftHaveFinishedNobodyIsWaitedFor) {
  Running(2);
  Broken();
  Out(0, SeatState::kFinished);
  view_.hosts[1].gone = true;
  view_.hosts[1].heard = kNow - policy_.fence_limit;
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kFinished, "the only host that is left").code, 0);
  AddHost(SeatState::kStarting);
  Expect(Verdict::kWait, Reason::kHostsMissing, "waiting for hosts: 1 of 2 ");
}

TEST_F(Membership, RestartsThatAreSpentEndTheJobAtTheOneTooMany) {
  Running(2);
  policy_.restarts = {2, 0s};
  view_.failures = {kNow - 3s, kNow - 2s};
  Expect(Verdict::kWait, Reason::kRunning, "");
  view_.failures.push_back(kNow - 1s);
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kRestartsSpent, "3 failures, 2 allowed").code,
            kExitFailed);
}

TEST_F(Membership, DeathsBeforeTheWindowCostNothingButAreTold) {
  Running(2);
  policy_.restarts = {1, 10s};
  view_.failures = {kNow - 30s, kNow - 20s, kNow - 10s, kNow - 10s + 1ns};
  Expect(Verdict::kWait, Reason::kRunning, "");
  Out(0, SeatState::kParked);
  Out(1, SeatState::kParked);
  Broken();
  EXPECT_EQ(Expect(Verdict::kForm, Reason::kReformed, "").epoch.restarts, 4);
  view_.failures.push_back(kNow);
  Expect(Verdict::kEnd, Reason::kRestartsSpent, "2 failures in the last 10 s, 1 allowed");
}

TEST_F(Membership, OneThatLeavesStopsTheJobOnlyWhereTooFewStay) {
  Running(3);
  view_.hosts[1].record.state = MemberState::kLeaving;
  view_.hosts[1].record.reason = "SIGTERM";
  Expect(Verdict::kWait, Reason::kRunning, "");
  policy_.hosts_min = 3;
  Expect(Verdict::kStop, Reason::kTooFewStay,
         "h1 (slot 1) leaves (SIGTERM), and only 2 of at least 3 hosts stay");
  policy_.hosts_min = 1;
  std::swap(view_.hosts[0].record.state, view_.hosts[1].record.state);
  Expect(Verdict::kWait, Reason::kRunning, "");   // another host takes the coordinator's role
  for (HostView& host : view_.hosts) host.record.state = MemberState::kLeaving;
  view_.hosts[0].record.deadline_ms = 5000;
  policy_.hosts_min = 0;
  const Decision decision =
      Expect(Verdict::kStop, Reason::kCoordinatorLeaves, "and the coordinator with it");
  EXPECT_EQ(decision.stop.deadline_ms, 5000);
}

// The former coordinator may come to say that it leaves before the next one's own member is there.
TEST_F(Membership, WhoLeavesStopsNoJobOfWhichTheCoordinatorsOwnHostIsYetToCome) {
  Running(1);
  view_.is_later_board = true;
  view_.coordinator = "i1";
  view_.hosts[0].record.state = MemberState::kLeaving;
  policy_.hosts_min = 1;
  EXPECT_NE(Decide(view_, policy_, kNow).verdict, Verdict::kStop);
  AddHost(SeatState::kReady);
  EXPECT_NE(Decide(view_, policy_, kNow).verdict, Verdict::kStop);
}

// It has not read yet that it is left out.
TEST_F(Membership, AHostThatIsShunnedIsInNoFurtherEpoch) {
  Running(3);
  for (int slot = 0; slot < 3; ++slot) Out(slot, SeatState::kParked);
  Broken();
  view_.shunned.Add({"i1", "h1", "m1", "it dies"});
  policy_.hosts_min = 1;
  const Decision next = Expect(Verdict::kForm, Reason::kReformed, "2 workers on 2 hosts");
  EXPECT_EQ(next.epoch.hosts.size(), 2u);
  EXPECT_EQ(next.epoch.hosts[1].slot, 2);
}

TEST_F(Membership, AStopWaitsForAllAndSaysWhetherTheyHaveSaved) {
  Running(2);
  view_.stop = StopRecord{"i0", "SIGTERM", 5000};
  view_.stopped_at = kNow;
  Expect(Verdict::kWait, Reason::kStopping, "h0 (slot 0) has not stopped yet");
  for (HostView& host : view_.hosts) {
    host.record.state = MemberState::kLeaving;
    host.record.seats[0].state = SeatState::kLeft;
  }
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kStoppedUnsaved, "not saved in time: SIGTERM").code,
            kExitUnsaved);
  view_.hosts[1].record.seats[0].saved = true;
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kStopped, "stopped: SIGTERM").code, kExitStopped);
}

TEST_F(Membership, AStopBeforeAnyWorkerOfAProgramInPlaceSaidHelloLosesNothing) {
  Running(2);
  view_.kind = JobKind::kForeign;   // nobody has told otherwise
  view_.stop = StopRecord{"i0", "SIGTERM", 5000};
  view_.stopped_at = kNow;
  for (HostView& host : view_.hosts) {
    host.record.state = MemberState::kLeaving;
    host.record.seats[0].state = SeatState::kDead;
  }
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kStoppedUnsaved, "not saved in time: SIGTERM").code,
            kExitUnsaved);
  policy_.program_says_hello = true;
  EXPECT_EQ(Expect(Verdict::kEnd, Reason::kStopped, "stopped: SIGTERM").code, kExitStopped);
}

// The stop came between the forming of epoch 4 and its beginning.
TEST_F(Membership, WhatAWorkerSavedThatHadNotEnteredIsSaved) {
  Running(2);
  view_.stop = StopRecord{"i0", "SIGTERM", 5000};
  view_.stopped_at = kNow;
  for (HostView& host : view_.hosts) {
    host.record.state = MemberState::kLeaving;
    host.record.seats[0].state = SeatState::kLeft;
    host.record.seats[0].epoch = 3;
  }
  view_.hosts[1].record.seats[0].saved = true;
  Expect(Verdict::kEnd, Reason::kStopped, "stopped: SIGTERM");
  // But not of one that had left before, whose seat has another worker's name in the epoch.
  view_.epoch->record.workers[1].worker = "its successor";
  Expect(Verdict::kEnd, Reason::kStoppedUnsaved, "");
}

TEST_F(Membership, AStopIsNotWaitedForBeyondItsDeadline) {
  Running(2);
  view_.stop = StopRecord{"i0", "SIGTERM", 5000};
  view_.stopped_at = kNow;
  const TimePoint limit = kNow + 5s + policy_.stop_grace;
  for (HostView& host : view_.hosts) host.heard = limit;
  Expect(Verdict::kWait, Reason::kStopping, "", limit - 1ns);
  Expect(Verdict::kEnd, Reason::kStoppedUnsaved, "", limit);
}

}  // namespace
}  // namespace keel
