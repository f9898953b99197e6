// Coordinator: what it makes of a board on which a member writes in its own time.
#include "elastic/board/coordinator.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "base/json.h"
#include "elastic/protocol/exit_codes.h"
#include "store/memory_store.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

// The coordinator's connection; between two of its reads a member may write.
class InterruptedStore : public Store {
 public:
  explicit InterruptedStore(std::unique_ptr<Store> inner) : inner_(std::move(inner)) {}

  void AfterNextGetMany(std::function<void()> hook) { hook_ = std::move(hook); }

  Status Set(const std::string& key, const std::string& value) override {
    return inner_->Set(key, value);
  }
  Result<std::optional<std::string>> Get(const std::string& key) override {
    return inner_->Get(key);
  }
  Result<std::vector<std::optional<std::string>>> GetMany(
      const std::vector<std::string>& keys) override {
    auto values = inner_->GetMany(keys);
    if (const auto hook = std::exchange(hook_, nullptr)) hook();
    return values;
  }
  Result<int64_t> Add(const std::string& key, int64_t delta) override {
    return inner_->Add(key, delta);
  }
  Result<Outcome> CompareSet(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& desired) override {
    return inner_->CompareSet(key, expected, desired);
  }
  Result<bool> Delete(const std::string& key) override { return inner_->Delete(key); }
  Status Wait(const std::vector<std::string>& keys, Duration limit,
              const CancelToken& cancel) override {
    return inner_->Wait(keys, limit, cancel);
  }
  Result<std::unique_ptr<Store>> Clone() override { return inner_->Clone(); }

 private:
  const std::unique_ptr<Store> inner_;
  std::function<void()> hook_;
};

class CoordinatorTest : public testing::Test {
 protected:
  explicit CoordinatorTest(int hosts = 1) : CoordinatorTest(Config(hosts)) {}
  explicit CoordinatorTest(CoordinatorConfig config)
      : coordinator_(MakeCoordinator(std::move(config))) {
    record_.incarnation = "me";
    record_.host = "h0";
    record_.seats.resize(2);
    step_ = Poll();
    keys_ = BoardKeys("j", coordinator_.generation());
    EXPECT_EQ(*store_->Add(keys_.Slots(), 1), 1);
    Write();
  }

  static CoordinatorConfig Config(int hosts = 1) {
    CoordinatorConfig config;
    config.look_at = [](const std::string& peer) {
      return peer == "10.0.0.2:7" ? Reached::kListener : Reached::kRefused;
    };
    config.policy.hosts_min = config.policy.hosts_max = hosts;
    config.job = "j";
    config.incarnation = "me";
    config.presence = "10.0.0.1:1";
    config.policy.restarts = {1, 0s};
    return config;
  }

  static Coordinator MakeCoordinator(CoordinatorConfig config) {
    return Coordinator(std::move(config), Random(1), [](const EpochRecord& epoch) {
      return Result<EpochStore>(EpochStore{"10.0.0.1", 2, epoch.id});
    });
  }

  void Write() {
    ASSERT_TRUE(store_->Set(keys_.Member(0), MemberText(record_)).ok());
    ASSERT_TRUE(store_->Add(keys_.News(), 1).ok());
    ASSERT_TRUE(store_->Add(keys_.Beat(0), 1).ok());
  }

  Coordinator::Step Poll() {
    now_ = now_ + 100ms;
    Coordinator::Step step = coordinator_.Poll(*its_store_, now_);
    EXPECT_TRUE(step.status.ok()) << step.status.error().message;
    return step;
  }

  EpochRecord Epoch(int64_t number) {
    const auto text = store_->Get(keys_.Epoch(number));
    EXPECT_TRUE(text.ok() && text->has_value()) << "no epoch " << number;
    return *ParseEpoch(keys_.Epoch(number), **text);
  }

  TimePoint now_{10s};
  MemoryBoard board_{RealClock()};
  const std::unique_ptr<Store> store_ = board_.Connect("test");
  const std::unique_ptr<InterruptedStore> its_store_ =
      std::make_unique<InterruptedStore>(board_.Connect("coordinator"));
  Coordinator coordinator_;
  BoardKeys keys_;
  MemberRecord record_;
  Coordinator::Step step_;
};

TEST_F(CoordinatorTest, OfAMemberThatPokesOnlyTheRecordIsReadAtOnce) {
  Poll();
  ASSERT_TRUE(Epoch(1).hosts.size() == 1);
  record_.address = "10.0.0.7";
  ASSERT_TRUE(store_->Set(keys_.Member(0), MemberText(record_)).ok());   // `news` does not count it
  Poll();
  EXPECT_NE(coordinator_.hosts().at(0).record.address, "10.0.0.7");
  coordinator_.NoteNews(0);
  EXPECT_LT(coordinator_.NextPoll(), now_ + 50ms);
  Poll();
  EXPECT_EQ(coordinator_.hosts().at(0).record.address, "10.0.0.7");
  coordinator_.NoteNews(77);   // a stranger's word changes nothing
  Poll();
  EXPECT_EQ(coordinator_.hosts().size(), 1u);
}

// The break is read while the job still passes for a foreign one, the death when it does not.
TEST_F(CoordinatorTest, ADeathBeforeTheKindIsKnownIsCountedOnce) {
  Poll();
  const EpochRecord epoch = Epoch(1);
  record_.epoch = {1, epoch.id, 1};
  const BreakRecord broken{1, epoch.id, BreakCause::kDied, "me", "rank 1 exited with 3", {}};
  ASSERT_TRUE(store_->Set(keys_.Break(epoch.id), BreakText(broken)).ok());
  Write();
  Poll();
  record_.kind = JobKind::kInPlace;
  record_.deaths = 1;
  record_.outside = 1;
  record_.seats[0].state = SeatState::kReady;
  record_.seats[0].worker = "w0";
  Write();
  Poll();
  ASSERT_FALSE(coordinator_.end().has_value()) << coordinator_.end()->reason;
  EXPECT_EQ(Epoch(2).restarts, 1);
}

// Its group cannot be built: what is tried again at once is tried again without end.
TEST_F(CoordinatorTest, EpochsThatOnlyBreakAreFormedMoreAndMoreSlowly) {
  record_.kind = JobKind::kInPlace;
  record_.seats.resize(1);
  record_.seats[0].state = SeatState::kReady;
  record_.seats[0].worker = "w0";
  Write();
  Coordinator::Step step = Poll();
  for (int64_t number = 1; number <= 4; ++number) {
    const EpochRecord epoch = Epoch(number);
    const BreakRecord broken{number, epoch.id, BreakCause::kReported, "me", "no route", {}};
    ASSERT_TRUE(store_->Set(keys_.Break(epoch.id), BreakText(broken)).ok());
    record_.epoch = {number, epoch.id, 1};
    record_.outside = number;
    record_.seats[0].state = SeatState::kParked;
    record_.seats[0].epoch = number;
    Write();
    step = Poll();
  }
  ASSERT_FALSE(step.decisions.empty());
  EXPECT_EQ(step.decisions.back().reason, Reason::kBarren) << step.decisions.back().detail;
  Poll();
  Poll();
  EXPECT_EQ(Epoch(5).restarts, 0);
}

// A foreign worker dies, and its supervisor reports the break and that it is outside, between two
// reads of one poll: that is a failure, not a boundary.
TEST_F(CoordinatorTest, ABreakWhileTheBoardIsReadIsCounted) {
  Poll();
  const EpochRecord epoch = Epoch(1);
  record_.epoch = {1, epoch.id, 1};
  Write();
  Poll();
  const BreakRecord broken{1, epoch.id, BreakCause::kDied, "me", "rank 1 exited with 3", {}};
  its_store_->AfterNextGetMany([&] {
    ASSERT_TRUE(store_->Set(keys_.Break(epoch.id), BreakText(broken)).ok());
    record_.outside = 1;
    Write();
  });
  ASSERT_TRUE(store_->Add(keys_.News(), 1).ok());
  Poll();
  Poll();
  EXPECT_EQ(Epoch(2).restarts, 1);
  EXPECT_EQ(Epoch(2).reason, "2 workers on 1 host, after: rank 1 exited with 3");
}

// A host that comes with another program beside a job in place: that its workers die is its affair.
TEST_F(CoordinatorTest, DeathsOfAHostThatNoEpochHadAreNotTheJobs) {
  record_.kind = JobKind::kInPlace;
  for (SeatRecord& seat : record_.seats) seat.state = SeatState::kReady;
  record_.seats[0].worker = "w0";
  record_.seats[1].worker = "w1";
  Write();
  Poll();
  const EpochRecord epoch = Epoch(1);
  MemberRecord newcomer = record_;
  newcomer.incarnation = "other";
  newcomer.seats[0].state = SeatState::kDead;
  newcomer.deaths = 5;
  ASSERT_EQ(*store_->Add(keys_.Slots(), 1), 2);
  ASSERT_TRUE(store_->Set(keys_.Member(1), MemberText(newcomer)).ok());
  ASSERT_TRUE(store_->Add(keys_.Beat(1), 1).ok());
  record_.epoch = {1, epoch.id, 1};
  Write();
  Poll();
  EXPECT_FALSE(coordinator_.end().has_value()) << coordinator_.end()->reason;
  record_.deaths = 2;   // of 1 allowed
  Write();
  Poll();
  EXPECT_TRUE(coordinator_.end().has_value());
}

// One restart of one allowed was spent before the store was lost. The host's record says so, and
// that its one death is the one that spent it.
TEST_F(CoordinatorTest, RestartsSpentOutliveTheStore) {
  record_.kind = JobKind::kInPlace;
  record_.epoch = {5, "cafe", 1, "", 1, 1, 1};
  record_.outside = 5;
  record_.deaths = 1;
  record_.seats.resize(1);
  record_.seats[0].state = SeatState::kParked;
  record_.seats[0].worker = "w0";
  record_.seats[0].epoch = 5;
  Write();
  Poll();
  ASSERT_FALSE(coordinator_.end().has_value()) << coordinator_.end()->reason;
  EXPECT_EQ(Epoch(6).restarts, 1);
  EXPECT_EQ(Epoch(6).restarts_recent, 1);
  EXPECT_EQ(Epoch(6).coordinator, "me");
  EXPECT_EQ(Epoch(6).hosts.at(0).deaths, 1);
  record_.deaths = 2;
  Write();
  Poll();
  ASSERT_TRUE(coordinator_.end().has_value());
  EXPECT_EQ(coordinator_.end()->code, kExitFailed);
}

// Nobody of the epoch before is left; what the board of that had counted was read.
TEST_F(CoordinatorTest, RestartsSpentOutliveAllHosts) {
  CoordinatorConfig config = Config();
  EpochRecord former;
  former.number = 7;
  former.restarts = 2;
  former.restarts_recent = 1;
  config.former = former;
  MemoryBoard board(RealClock());
  const std::unique_ptr<Store> store = board.Connect("test");
  Coordinator next = MakeCoordinator(std::move(config));
  ASSERT_TRUE(next.Poll(*store, now_).status.ok());
  const BoardKeys keys("j", next.generation());
  EXPECT_EQ(**store->Get(keys.Former()), EpochText(former)) << "for the one after the next";
  ASSERT_TRUE(store->Add(keys.Slots(), 1).ok());
  ASSERT_TRUE(store->Set(keys.Member(0), MemberText(record_)).ok());
  ASSERT_TRUE(store->Add(keys.News(), 1).ok());
  ASSERT_TRUE(next.Poll(*store, now_ + 100ms).status.ok());
  const auto text = store->Get(keys.Epoch(8));
  const Result<EpochRecord> formed = ParseEpoch(keys.Epoch(8), text->value_or(""));
  ASSERT_TRUE(formed.ok());
  EXPECT_EQ(formed->restarts, 2);
  EXPECT_EQ(formed->restarts_recent, 1);
}

TEST_F(CoordinatorTest, AnEpochOfWhichTheAnswerWasLostIsNotFormedAnew) {
  // 0 to 7 until one of them is the write of the epoch's record.
  for (int skip = 0; skip < 12; ++skip) {
    ASSERT_TRUE(store_->Add(keys_.Beat(0), 1).ok());
    board_.PlanFault("coordinator", skip, StoreFault::kReplyLost);
    now_ = now_ + 500ms;
    static_cast<void>(coordinator_.Poll(*its_store_, now_));
  }
  const EpochRecord epoch = Epoch(1);
  EXPECT_FALSE(store_->Get(keys_.Epoch(2))->has_value());
  EXPECT_EQ(epoch.workers.size(), 2u);
}

class CoordinatorOfTwo : public CoordinatorTest {
 protected:
  CoordinatorOfTwo() : CoordinatorTest(2) {}
};

// The first thing of a job that a newcomer read was that it had too few hosts, "after 0 us".
TEST_F(CoordinatorOfTwo, AWaitForHostsIsToldOnceItHasLasted) {
  EXPECT_TRUE(step_.decisions.empty()) << step_.decisions.front().detail;
  std::vector<Decision> told;
  const TimePoint began = now_;
  while (now_ < began + 5s) {
    Write();   // it beats
    for (const Decision& decision : Poll().decisions) {
      EXPECT_GE(now_, began + 1s) << decision.detail;
      told.push_back(decision);
    }
  }
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].reason, Reason::kHostsMissing);
  EXPECT_EQ(told[0].detail, "waiting for hosts: 1 of 2 here (min 2, max 2); here: h0 (slot 0)");
  EXPECT_EQ(told[0].waited, 0s);
}

TEST_F(CoordinatorOfTwo, AWaitThatLastsIsToldAgainWithWhatIsLeftOfIt) {
  std::vector<Decision> told;
  const TimePoint began = now_;
  while (now_ < began + 100s) {
    Write();   // it beats
    for (const Decision& decision : Poll().decisions) told.push_back(decision);
  }
  ASSERT_EQ(told.size(), 4u);
  EXPECT_EQ(told[0].waited, 0s);
  for (size_t i = 1; i < told.size(); ++i) {
    EXPECT_GE(told[i].waited, i * 30s);
    EXPECT_NE(told[i].gives_up, kNever);
    EXPECT_FALSE(told[i].cure.empty());
  }
}

// In place; a worker of the second one sees the group break before anybody else.
TEST_F(CoordinatorOfTwo, WhatAWorkerReportsEndsTheEpochAndCostsNoRestart) {
  MemberRecord other = record_;
  other.incarnation = "other";
  other.host = "h1";
  ASSERT_EQ(*store_->Add(keys_.Slots(), 1), 2);
  const auto write_both = [&] {
    ASSERT_TRUE(store_->Set(keys_.Member(1), MemberText(other)).ok());
    ASSERT_TRUE(store_->Add(keys_.Beat(1), 1).ok());
    Write();
  };
  for (MemberRecord* record : {&record_, &other}) {
    record->kind = JobKind::kInPlace;
    record->seats.resize(1);
    record->seats[0].state = SeatState::kReady;
    record->seats[0].worker = record->incarnation + "-w";
  }
  write_both();
  Poll();
  const EpochRecord epoch = Epoch(1);
  ASSERT_EQ(epoch.hosts.size(), 2u);
  for (MemberRecord* record : {&record_, &other}) {
    record->epoch = {1, epoch.id, 2};
    record->seats[0].epoch = 1;
    record->seats[0].rank = record == &other ? 1 : 0;
    record->seats[0].state = SeatState::kRunning;
  }
  write_both();
  Poll();
  const BreakRecord broken{1,       epoch.id, BreakCause::kReported,
                           "other", "rank 1 on h1 saw the group break", {}};
  ASSERT_TRUE(store_->Set(keys_.Break(epoch.id), BreakText(broken)).ok());
  other.seats[0].state = SeatState::kParked;
  other.outside = 1;
  write_both();
  EXPECT_TRUE(Poll().look) << "the others learn of the break with their next look only";
  EXPECT_FALSE(store_->Get(keys_.Epoch(2))->has_value()) << "rank 0 may still be inside";
  record_.seats[0].state = SeatState::kParked;
  record_.outside = 1;
  write_both();
  Poll();
  const EpochRecord next = Epoch(2);
  EXPECT_EQ(next.reason,
            "2 workers on 2 hosts, after: rank 1 on h1 saw the group break");
  EXPECT_EQ(next.restarts, 0);
  ASSERT_EQ(next.workers.size(), 2u);
  EXPECT_EQ(next.workers[0].worker, "me-w");
  EXPECT_EQ(next.workers[1].worker, "other-w");
}

// --- A machine that is not to be trusted ---

TEST(CoordinatorThatShuns, WritesWhomItLeavesOutAndSendsOthersOfThatHostAway) {
  MemoryBoard board(RealClock());
  const std::unique_ptr<Store> store = board.Connect("test");
  CoordinatorConfig config;
  config.job = "j";
  config.incarnation = "me";
  config.policy.hosts_max = 3;
  config.policy.last_call_limit = Duration(0);
  config.policy.restarts = {2, 0s};
  config.shunned.Add({"i8", "h8", "m8", "it was left out on the board before"});
  Coordinator coordinator(config, Random(1), [](const EpochRecord& epoch) {
    return Result<EpochStore>(EpochStore{"10.0.0.1", 2, epoch.id});
  });
  TimePoint now{10s};
  const auto poll = [&] {
    now = now + 100ms;
    EXPECT_TRUE(coordinator.Poll(*store, now).status.ok());
  };
  poll();
  const BoardKeys keys("j", coordinator.generation());
  const auto read = [&] { return *ParseShunned("k", **store->Get(keys.Shunned())); };
  ASSERT_EQ(read().hosts.size(), 1u);
  const auto write = [&](int64_t slot, const MemberRecord& record) {
    ASSERT_TRUE(store->Set(keys.Member(slot), MemberText(record)).ok());
    ASSERT_TRUE(store->Add(keys.Beat(slot), 1).ok());
    ASSERT_TRUE(store->Add(keys.News(), 1).ok());
  };
  ASSERT_EQ(*store->Add(keys.Slots(), 5), 5);
  MemberRecord members[3];
  for (int64_t slot = 0; slot < 3; ++slot) {
    members[slot].incarnation = slot == 0 ? "me" : slot == 1 ? "bad" : "third";
    members[slot].host = "h" + std::to_string(slot);
    members[slot].machine = "m" + std::to_string(slot);
    members[slot].kind = JobKind::kInPlace;
    members[slot].seats.resize(1);
    members[slot].seats[0].worker = "w";
    members[slot].seats[0].state = SeatState::kReady;
    write(slot, members[slot]);
  }
  poll();
  const auto text = store->Get(keys.Epoch(1));
  ASSERT_TRUE(text.ok() && text->has_value());
  const EpochRecord epoch = *ParseEpoch("k", **text);
  for (MemberRecord& member : members) {
    member.epoch = ToldBy(member.incarnation, epoch);
    member.seats[0].state = SeatState::kRunning;
  }
  members[1].deaths = members[1].incidents = 3;   // one more than there are restarts
  for (int64_t slot = 0; slot < 3; ++slot) write(slot, members[slot]);
  poll();
  ASSERT_EQ(read().hosts.size(), 2u);
  EXPECT_EQ(read().hosts[1].incarnation, "bad");
  EXPECT_FALSE(coordinator.end()) << coordinator.end()->reason;
  for (const int64_t slot : {3, 4}) {   // others of both machines
    MemberRecord other;
    other.incarnation = "other";
    other.machine = slot == 3 ? "m1" : "m8";
    write(slot, other);
    poll();
    const auto answer = *ParseMemberSlot("k", **store->Get(keys.Member(slot)));
    ASSERT_TRUE(answer.tombstone);
    EXPECT_EQ(answer.tombstone->why, Tombstone::Why::kShunned);
  }
}

// --- Another version of the protocol ---

// One more than ours, in any record.
std::string Newer(std::string text) {
  const std::string ours = "\"version\":" + std::to_string(kProtocolVersion);
  return text.replace(text.find(ours), ours.size(),
                      "\"version\":" + std::to_string(kProtocolVersion + 1));
}

TEST_F(CoordinatorTest, TellsItsVersionBeforeItsGeneration) {
  EXPECT_EQ(**store_->Get(ProtocolKey("j")), std::to_string(kProtocolVersion));
  MemoryBoard board{RealClock()};
  const auto reader = board.Connect("test");
  for (int skip = 0; skip < 20; ++skip) {
    const auto store = board.Connect("coordinator");
    board.PlanFault("coordinator", skip, StoreFault::kRequestLost);
    Coordinator another(Config(), Random(1), nullptr);
    static_cast<void>(another.Poll(*store, now_));
    if (!reader->Get(GenerationKey("j"))->has_value()) continue;
    EXPECT_TRUE(reader->Get(ProtocolKey("j"))->has_value());
  }
}

// It cannot be read, but answered, in words that its release understands, and nobody else notices.
TEST_F(CoordinatorTest, AMemberOfAnotherVersionIsRefusedInTheFormOfAllVersions) {
  Poll();
  const EpochRecord epoch = Epoch(1);
  MemberRecord other = record_;
  other.incarnation = "other";
  other.host = "h1";
  std::string text = Newer(MemberText(other));
  text.insert(1, "\"news_of_the_next_release\":[{}],");
  ASSERT_EQ(*store_->Add(keys_.Slots(), 1), 2);
  ASSERT_TRUE(store_->Set(keys_.Member(1), text).ok());
  ASSERT_TRUE(store_->Add(keys_.Beat(1), 1).ok());
  record_.epoch = {1, epoch.id, 1};
  Write();
  Poll();
  const std::string answer = **store_->Get(keys_.Member(1));
  const Json json = *ParseJson(answer);
  EXPECT_EQ(*Field<int64_t>(json, "version"), kProtocolVersion);
  EXPECT_EQ(*Field<std::string>(json, "gone"), "refused");
  EXPECT_EQ(*Field<std::string>(json, "incarnation"), "other");
  EXPECT_EQ(*Field<std::string>(json, "reason"),
            "h1 (slot 1) speaks protocol version " + std::to_string(kProtocolVersion + 1) +
                ", where this keelrun speaks version " + std::to_string(kProtocolVersion) +
                ": run the same release of Evenkeel on every host");
  Write();
  Poll();
  EXPECT_FALSE(coordinator_.end().has_value());
  EXPECT_EQ(**store_->Get(keys_.Break(epoch.id)), kNothingYet);
  EXPECT_EQ(**store_->Get(keys_.NewestEpoch()), "1");
}

// A firewall may end the one connection, while the launcher and its workers are well.
TEST_F(CoordinatorOfTwo, AHostThatStillListensIsJudgedByItsBeats) {
  for (const char* const place : {"10.0.0.2:7", "10.0.0.3:7"}) {
    const std::string peer = place;
    const int64_t slot = *store_->Add(keys_.Slots(), 1) - 1;
    MemberRecord other = record_;
    other.incarnation = peer;
    other.peer = peer;
    ASSERT_TRUE(store_->Set(keys_.Member(slot), MemberText(other)).ok());
    ASSERT_TRUE(store_->Add(keys_.Beat(slot), 1).ok());
    Write();
    Poll();
    coordinator_.PresenceClosed(slot, other.incarnation, now_);
    std::string expired;
    const auto look = [&] {
      for (const Decision& decision : Poll().decisions) {
        if (decision.verdict == Decision::Verdict::kExpire) expired = decision.detail;
      }
    };
    look();
    EXPECT_EQ(expired.empty(), peer == "10.0.0.2:7") << expired;
    for (int i = 0; i < 60 && expired.empty(); ++i) {
      Write();
      look();
    }
    EXPECT_NE(expired, "");
  }
}

class CoordinatorWithAFullLease : public CoordinatorTest {
 protected:
  CoordinatorWithAFullLease() : CoordinatorTest(WithLease()) {}

  static CoordinatorConfig WithLease() {
    CoordinatorConfig config = Config();
    config.lease = [] {
      LinkView view;
      view.is_seen = true;
      return view;
    };
    config.claim = [](const LinkRecord&, int64_t) {
      return Status(Error{Code::kNoSpace, "no room for the claim"});
    };
    return config;
  }
};

TEST_F(CoordinatorWithAFullLease, IsWaitedForLikeOneThatCannotBeReadAndNoLonger) {
  std::vector<std::string> waits;
  const TimePoint began = now_;
  while (now_ < began + 90s && !coordinator_.end()) {
    Write();
    for (const Decision& decision : Poll().decisions) {
      EXPECT_NE(decision.verdict, Decision::Verdict::kForm);
      if (decision.verdict == Decision::Verdict::kWait) waits.push_back(decision.detail);
    }
  }
  ASSERT_FALSE(waits.empty());
  EXPECT_NE(waits.front().find("no room for the claim"), std::string::npos) << waits.front();
  ASSERT_TRUE(coordinator_.end());
  EXPECT_EQ(coordinator_.end()->code, kExitQuorumLost);
  EXPECT_GE(now_, began + 60s);
}

TEST_F(CoordinatorTest, ItsOwnPauseIsHeldAgainstNobody) {
  Poll();
  now_ = now_ + 60s;
  const Coordinator::Step step = Poll();
  for (const Decision& decision : step.decisions) {
    EXPECT_NE(decision.verdict, Decision::Verdict::kExpire) << decision.detail;
  }
}

}  // namespace
}  // namespace keel
