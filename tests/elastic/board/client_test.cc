// Member: what it tells of the board, in which order, and what it writes when answers get lost.
#include "elastic/board/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "store/memory_store.h"
#include "store/seal/store_sealer.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

class MemberTest : public testing::Test {
 protected:
  MemberTest() {
    record_.incarnation = "me";
    record_.host = "h0";
    record_.seats.resize(1);
    EXPECT_TRUE(store_->Set(GenerationKey("j"), "g").ok());
  }

  BoardClient::Step Poll() {
    now_ = now_ + 500ms;
    return member_.Poll(*its_store_, now_);
  }

  template <class T>
  static int IndexOf(const BoardClient::Step& step) {
    for (size_t i = 0; i < step.events.size(); ++i) {
      if (std::holds_alternative<T>(step.events[i])) return static_cast<int>(i);
    }
    return -1;
  }

  TimePoint now_{10s};
  MemoryBoard board_{RealClock()};
  const std::unique_ptr<Store> store_ = board_.Connect("test");
  const std::unique_ptr<Store> its_store_ = board_.Connect("member");
  const BoardKeys keys_{"j", "g"};
  MemberRecord record_;
  BoardClient member_{BoardClientConfig{.job = "j"}};
};

TEST_F(MemberTest, RegistersOnce) {
  member_.Publish(record_, {});
  EXPECT_EQ(IndexOf<Registered>(Poll()), 0);
  EXPECT_EQ(IndexOf<Registered>(Poll()), -1);
  EXPECT_EQ(**store_->Get(keys_.Slots()), "1");
  EXPECT_TRUE(member_.settled());
}

TEST_F(MemberTest, OverANewConnectionItFirstFindsOutWhichBoardThatIs) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  ASSERT_TRUE(store_->Set(GenerationKey("j"), "h").ok());
  member_.NoteConnection();
  EXPECT_EQ(IndexOf<Registered>(Poll()), 0);
  EXPECT_TRUE(*store_->Has(BoardKeys("j", "h").Member(0)));
}

TEST_F(MemberTest, WithLostAnswersItStillHasOneRecord) {
  member_.Publish(record_, {});
  for (int skip = 0; skip < 10; ++skip) {
    board_.PlanFault("member", skip, skip % 2 ? StoreFault::kReplyLost : StoreFault::kRequestLost);
    static_cast<void>(Poll());
  }
  while (!member_.settled()) static_cast<void>(Poll());
  const int64_t slots = std::stoll(**store_->Get(keys_.Slots()));
  int records = 0;
  for (int64_t slot = 0; slot < slots; ++slot) {
    records += store_->Get(keys_.Member(slot))->has_value() ? 1 : 0;
  }
  EXPECT_EQ(records, 1);
  EXPECT_TRUE(member_.settled());
}

// Else its supervisor would start workers to wait for the next epoch, in seats of this one.
TEST_F(MemberTest, TellsOfTheEpochBeforeItTellsThatTheJobIsInPlace) {
  EpochRecord epoch;
  epoch.number = 1;
  epoch.id = "cafe";
  ASSERT_TRUE(store_->Set(keys_.Epoch(1), EpochText(epoch)).ok());
  ASSERT_TRUE(store_->Set(keys_.NewestEpoch(), "1").ok());
  ASSERT_TRUE(store_->Set(keys_.Kind(), std::string(JobKindName(JobKind::kInPlace))).ok());
  const BoardClient::Step step = Poll();
  ASSERT_GE(IndexOf<EpochSeen>(step), 0);
  EXPECT_GT(IndexOf<KindKnown>(step), IndexOf<EpochSeen>(step));
}

// The coordinator may have taken the record in although the answer to its writing was lost.
TEST_F(MemberTest, TellsOfItsSlotBeforeTheEpochThatNamesIt) {
  member_.Publish(record_, {});
  board_.PlanFault("member", 3, StoreFault::kReplyLost);   // generation, version, slot, record
  ASSERT_FALSE(Poll().status.ok());
  ASSERT_TRUE(store_->Get(keys_.Member(0))->has_value());
  EpochRecord epoch;
  epoch.number = 1;
  epoch.id = "cafe";
  epoch.hosts = {{0, "me", 0}};
  ASSERT_TRUE(store_->Set(keys_.Epoch(1), EpochText(epoch)).ok());
  ASSERT_TRUE(store_->Set(keys_.NewestEpoch(), "1").ok());
  const BoardClient::Step step = Poll();
  ASSERT_GE(IndexOf<Registered>(step), 0);
  EXPECT_GT(IndexOf<EpochSeen>(step), IndexOf<Registered>(step));
}

TEST_F(MemberTest, NeverWritesOverATombstone) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  const std::string tombstone = TombstoneText({Tombstone::Why::kExpired, "me", "silent"});
  ASSERT_TRUE(store_->Set(keys_.Member(0), tombstone).ok());
  record_.deaths = 1;
  member_.Publish(record_, {});
  EXPECT_GE(IndexOf<Buried>(Poll()), 0);
  EXPECT_EQ(**store_->Get(keys_.Member(0)), tombstone);
  EXPECT_EQ(IndexOf<Registered>(Poll()), -1) << "not before it is told to";
  member_.RegisterAnew();
  EXPECT_GE(IndexOf<Registered>(Poll()), 0);
  EXPECT_EQ(member_.slot(), 1);
}

// Whoever reads it must not see one number twice, where this member has counted two beats.
TEST_F(MemberTest, ABeatWhoseAnswerWasLostIsFollowedByAnother) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().beat);
  std::set<std::string> seen;
  for (int i = 0; i < 12; ++i) {
    now_ = now_ + 1s;
    board_.PlanFault("member", i % 3, i % 2 ? StoreFault::kReplyLost : StoreFault::kRequestLost);
    if (!Poll().beat) continue;
    EXPECT_TRUE(seen.insert(**store_->Get(keys_.Beat(0))).second) << "it has not risen";
  }
  while (!Poll().beat) now_ = now_ + 1s;
  EXPECT_TRUE(seen.insert(**store_->Get(keys_.Beat(0))).second);
  EXPECT_GT(seen.size(), 1u);
}

// --- With a token ---

class SealedMember : public MemberTest {
 protected:
  SealedMember() { member_.Publish(record_, {}); }
  BoardClient::Step PollSealed(bool vouches = true) {
    vouches_ = vouches;
    now_ = now_ + 500ms;
    return sealed_.Poll(*its_store_, now_);
  }
  static bool IsRefused(const BoardClient::Step& step) {
    const int at = IndexOf<Buried>(step);
    return at >= 0 && std::get<Buried>(step.events[at]).tombstone.reason.find("token") !=
                          std::string::npos;
  }
  // Writes a board with another secret than the member's, or its own.
  std::unique_ptr<Store> Sealed(const std::string& secret) {
    return StoreSealer(Seal(secret), {}).Sealed(board_.Connect("sealed"), "there");
  }

  bool vouches_ = true;
  std::vector<std::string> asked_;
  BoardClient sealed_{BoardClientConfig{
      .job = "j",
      .vouches = [this](const std::string& peer, const std::string& generation, Duration) {
        asked_.push_back(peer + " " + generation);
        return vouches_;
      }}};
};

TEST_F(SealedMember, WithoutATokenItIsRefusedBySealedBoards) {
  ASSERT_TRUE(Sealed("secret")->Set(GenerationKey("j"), "g").ok());
  ASSERT_TRUE(Sealed("secret")->Set(ProtocolKey("j"), "3").ok());
  EXPECT_TRUE(IsRefused(Poll()));
}

TEST_F(SealedMember, WithAnotherTokenItIsRefusedByBoards) {
  const auto its_store = Sealed("its own");
  const auto poll_after = [&](Duration later) {
    now_ = now_ + later;
    return IsRefused(sealed_.Poll(*its_store, now_));
  };
  EXPECT_FALSE(poll_after(1s)) << "somebody may just have spoilt it";
  EXPECT_FALSE(poll_after(4s));
  EXPECT_TRUE(poll_after(2s)) << "that board is not sealed";
  EXPECT_THAT(asked_, testing::IsEmpty());
}

TEST_F(SealedMember, ComesToABoardOnlyOnceItsCoordinatorVouchesForIt) {
  ASSERT_TRUE(store_->Set(keys_.Presence(), "there:1").ok());
  sealed_.Publish(record_, {});
  const BoardClient::Step step = PollSealed(false);
  EXPECT_EQ(IndexOf<Registered>(step), -1);
  EXPECT_FALSE(step.status.ok()) << "so that the user is told of it";
  EXPECT_EQ(IndexOf<Registered>(PollSealed()), 0);
  EXPECT_THAT(asked_, testing::Each("there:1 g"));
  asked_.clear();
  (void)PollSealed();
  EXPECT_THAT(asked_, testing::IsEmpty());
}

// Somebody else may answer at the address of a board that is gone.
TEST_F(SealedMember, OverANewConnectionItsBoardIsVouchedForOnceMore) {
  ASSERT_TRUE(store_->Set(keys_.Presence(), "there:1").ok());
  sealed_.Publish(record_, {});
  ASSERT_EQ(IndexOf<Registered>(PollSealed()), 0);
  sealed_.NoteConnection();
  now_ = now_ + 2s;
  const BoardClient::Step step = PollSealed(false);
  EXPECT_FALSE(step.status.ok());
  EXPECT_FALSE(step.beat);
  EXPECT_TRUE(PollSealed().beat);
  EXPECT_EQ(sealed_.slot(), 0);
}

// A stranger puts back what belongs to a board of the past.
TEST_F(SealedMember, StaysWithItsBoardWhereAnotherGenerationIsNamed) {
  ASSERT_TRUE(store_->Set(keys_.Presence(), "there:1").ok());
  sealed_.Publish(record_, {});
  ASSERT_EQ(IndexOf<Registered>(PollSealed()), 0);
  ASSERT_TRUE(store_->Set(GenerationKey("j"), "past").ok());
  ASSERT_TRUE(store_->Set(BoardKeys("j", "past").Presence(), "dead:1").ok());
  ASSERT_TRUE(
      store_->Set(BoardKeys("j", "past").End(), EndText({.code = 0, .reason = "done"})).ok());
  for (int i = 0; i < 3; ++i) {
    const BoardClient::Step step = PollSealed(false);
    EXPECT_TRUE(step.status.ok());
    EXPECT_EQ(IndexOf<EndSeen>(step), -1);
  }
  EXPECT_EQ(sealed_.slot(), 0);
  EXPECT_THAT(asked_, testing::Contains("dead:1 past"));
}

// --- Another version of the protocol ---

// One more than ours, in any record.
std::string Newer(std::string text) {
  const std::string ours = "\"version\":" + std::to_string(kProtocolVersion);
  return text.replace(text.find(ours), ours.size(),
                      "\"version\":" + std::to_string(kProtocolVersion + 1));
}

class MemberOfAnotherVersion : public MemberTest {
 protected:
  // It is told once, with both versions, and nothing is tried again.
  void ExpectRefused(const BoardClient::Step& step) {
    EXPECT_TRUE(step.status.ok()) << step.status.error().message;
    ASSERT_GE(IndexOf<Buried>(step), 0);
    const auto& tombstone = std::get<Buried>(step.events[IndexOf<Buried>(step)]).tombstone;
    EXPECT_EQ(tombstone.why, Tombstone::Why::kRefused);
    EXPECT_THAT(tombstone.reason,
                testing::HasSubstr("protocol version " + std::to_string(kProtocolVersion + 1) +
                                   ", where this keelrun speaks version " +
                                   std::to_string(kProtocolVersion) + ": run the same release"));
    EXPECT_FALSE(member_.slot().has_value());
    const BoardClient::Step next = Poll();
    EXPECT_TRUE(next.status.ok());
    EXPECT_TRUE(next.events.empty());
  }
};

TEST_F(MemberOfAnotherVersion, ANewcomerIsRefusedBeforeItWritesAnything) {
  ASSERT_TRUE(store_->Set(ProtocolKey("j"), std::to_string(kProtocolVersion + 1)).ok());
  ASSERT_TRUE(store_->Set(keys_.End(), "of a form that is yet to be invented").ok());
  member_.Publish(record_, {});
  ExpectRefused(Poll());
  EXPECT_FALSE(store_->Get(keys_.Slots())->has_value());
}

// As an older release comes to a board whose coordinator tells its version to nobody.
TEST_F(MemberOfAnotherVersion, ATombstoneOfItRefuses) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  const std::string tombstone =
      Newer(TombstoneText({Tombstone::Why::kRefused, "me", "speaks version 1"}));
  ASSERT_TRUE(store_->Set(keys_.Member(0), tombstone).ok());
  ExpectRefused(Poll());
  EXPECT_EQ(**store_->Get(keys_.Member(0)), tombstone);
  EXPECT_EQ(**store_->Get(keys_.Slots()), "1");
}

TEST_F(MemberOfAnotherVersion, AnEpochOfItRefuses) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  EpochRecord epoch;
  epoch.number = 1;
  epoch.id = "cafe";
  ASSERT_TRUE(store_->Set(keys_.Epoch(1), Newer(EpochText(epoch))).ok());
  ASSERT_TRUE(store_->Set(keys_.NewestEpoch(), "1").ok());
  ExpectRefused(Poll());
}

TEST_F(MemberOfAnotherVersion, AnEndOfItRefuses) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  ASSERT_TRUE(store_->Set(keys_.End(), Newer(EndText({0, "done"}))).ok());
  ExpectRefused(Poll());
}

// The coordinator comes back as another release, while we have workers.
TEST_F(MemberOfAnotherVersion, ANewGenerationOfItRefuses) {
  ASSERT_TRUE(store_->Set(ProtocolKey("j"), std::to_string(kProtocolVersion)).ok());
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  ASSERT_TRUE(member_.slot().has_value());
  ASSERT_TRUE(store_->Set(ProtocolKey("j"), std::to_string(kProtocolVersion + 1)).ok());
  ASSERT_TRUE(store_->Set(GenerationKey("j"), "g2").ok());
  ASSERT_TRUE(Poll().status.ok());
  ExpectRefused(Poll());
}

// What is damaged says nothing of versions.
TEST_F(MemberOfAnotherVersion, ARecordThatIsNoneIsAnErrorAsEver) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  ASSERT_TRUE(store_->Set(keys_.End(), "{\"version\":").ok());
  const BoardClient::Step step = Poll();
  EXPECT_FALSE(step.status.ok());
  EXPECT_EQ(IndexOf<Buried>(step), -1);
  EXPECT_TRUE(member_.slot().has_value());
}

// A refusal that comes before the answer to the registration.
TEST_F(MemberTest, RefusedBeforeItKnowsItsSlotItDoesNotTryAnother) {
  member_.Publish(record_, {});
  board_.PlanFault("member", 3, StoreFault::kReplyLost);
  ASSERT_FALSE(Poll().status.ok());
  ASSERT_TRUE(store_->Set(keys_.Member(0),
                          TombstoneText({Tombstone::Why::kRefused, "me", "why"})).ok());
  EXPECT_GE(IndexOf<Buried>(Poll()), 0);
  EXPECT_EQ(IndexOf<Registered>(Poll()), -1);
  EXPECT_EQ(**store_->Get(keys_.Slots()), "1");
}

TEST_F(MemberTest, AnotherGenerationIsAnotherBoard) {
  member_.Publish(record_, {});
  ASSERT_TRUE(Poll().status.ok());
  ASSERT_TRUE(store_->Set(GenerationKey("j"), "g2").ok());
  ASSERT_TRUE(Poll().status.ok());
  EXPECT_LE(member_.NextPoll(), now_) << "it registers anew at once";
  EXPECT_GE(IndexOf<Registered>(Poll()), 0);
  EXPECT_TRUE(store_->Get(BoardKeys("j", "g2").Member(0))->has_value());
}

}  // namespace
}  // namespace keel
