// ClaimedFinder: where it leads a member, with a home in memory whose claims others make.
#include "elastic/board/claimed_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "elastic/protocol/board_keys.h"
#include "store/memory_store.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class MemoryHome : public JobHome {
 public:
  explicit MemoryHome(Clock& clock) : clock_(clock) {}

  Result<std::optional<RoleClaim>> Look() override {
    if (is_away) return Error{Code::kTimeout, "the home does not answer"};
    return last;
  }
  Result<std::optional<RoleClaim>> LookUntil(const CancelToken& ending) override {
    looks_until = ending;
    return Look();
  }
  Result<bool> Claim(const RoleClaim& claim) override {
    if (last && last->term >= claim.term) return false;
    last = claim;
    last->is_alive = true;
    return true;
  }
  void Release() override { ++released; }
  void End(const RoleClaim&) override {}
  Result<std::unique_ptr<Store>> Connect(const RoleClaim& claim) override {
    return BoardOf(claim.term).Connect("");
  }
  Result<std::unique_ptr<Store>> ConnectCoordinator(int64_t term) override {
    return BoardOf(term).Connect("");
  }
  Result<std::unique_ptr<Store>> ConnectReader(const RoleClaim& claim) override {
    if (is_unreadable) return Error{why_unreadable, "that board does not answer"};
    return BoardOf(claim.term).Connect("");
  }
  std::string Text() const override { return "the home"; }

  MemoryBoard& BoardOf(int64_t term) { return boards_.try_emplace(term, clock_).first->second; }

  std::optional<RoleClaim> last;
  bool is_away = false;
  bool is_unreadable = false;
  Code why_unreadable = Code::kTimeout;
  int released = 0;
  CancelToken looks_until = CancelToken::Never();   // of the last look

 private:
  Clock& clock_;
  std::map<int64_t, MemoryBoard> boards_;
};

// Nobody listens at its peer port.
MemberRecord Member(const std::string& incarnation, MemberState state) {
  MemberRecord record;
  record.incarnation = incarnation;
  record.host = "h";
  record.peer = "127.0.0.1:1";
  record.state = state;
  record.seats = {SeatRecord{}};
  return record;
}

class ClaimedFinderTest : public testing::Test {
 protected:
  ClaimedFinderTest()
      : home_(clock_),
        finder_({"job", "b", [] { return std::string("127.0.0.2:1"); }}, clock_, home_,
                {[this](const std::string& who, bool) { lost_.push_back(who); },
                 [this](const ClaimedFinder::Turn& turn) { turns_.push_back(turn); },
                 [this](int64_t term, const std::string&) { roles_lost_.push_back(term); }}) {}

  void Claimed(int64_t term, const std::string& by) {
    home_.last = RoleClaim{.term = term, .by = by, .peer = "127.0.0.1:1", .is_alive = true};
  }
  // Epoch 7 of a, x and y, on the board of that term. Of x nothing is known, and y has left.
  void FormAt(int64_t term) {
    const auto board = home_.BoardOf(term).Connect("");
    const BoardKeys keys("job", "g");
    epoch_.number = 7;
    epoch_.id = "00000000000000aa";
    epoch_.restarts = 3;
    epoch_.restarts_recent = 2;
    epoch_.hosts = {{0, "a", 0}, {1, "x", 1}, {2, "y", 2}};
    ASSERT_OK(board->Set(GenerationKey("job"), "g"));
    ASSERT_OK(board->Set(keys.NewestEpoch(), "7"));
    ASSERT_OK(board->Set(keys.Epoch(7), EpochText(epoch_)));
    ASSERT_OK(board->Set(keys.Member(0), MemberText(Member("a", MemberState::kMember))));
    ASSERT_OK(board->Set(keys.Member(2), MemberText(Member("y", MemberState::kLeft))));
  }
  // A newcomer's turn, after somebody who held that term.
  void TakeAfter(int64_t term) {
    home_.last = RoleClaim{.term = term, .by = "n", .peer = "127.0.0.1:1"};
    EXPECT_FALSE(Connect().ok());
    clock_.Advance(2s);
  }
  Result<std::unique_ptr<Store>> Connect() { return finder_.Connect(CancelToken::Never()); }
  void Told(std::vector<Heir> heirs, const std::string& chosen = "") {
    SuccessionRecord record;
    record.heirs = std::move(heirs);
    record.chosen = chosen;
    finder_.NoteSuccession(record);
  }

  ManualClock clock_;
  MemoryHome home_;
  EpochRecord epoch_;
  std::vector<std::string> lost_;
  std::vector<ClaimedFinder::Turn> turns_;
  std::vector<int64_t> roles_lost_;
  ClaimedFinder finder_;
};

TEST_F(ClaimedFinderTest, TheFirstHostClaimsTheRoleAndFollowsItsOwnBoard) {
  ASSERT_TRUE(Connect().ok());
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_EQ(turns_[0].next.term, 1);
  EXPECT_EQ(turns_[0].next.by, "b");
  EXPECT_FALSE(turns_[0].former);
  EXPECT_FALSE(finder_.IsOver());
  EXPECT_EQ(home_.last->by, "b");
}

TEST_F(ClaimedFinderTest, WhoeverIsInOfficeIsFollowedAndASuccessorToo) {
  Claimed(1, "a");
  ASSERT_TRUE(Connect().ok());
  EXPECT_FALSE(finder_.IsOver());
  EXPECT_FALSE(finder_.Sight()) << "that board has told nothing yet";
  Told({});
  EXPECT_EQ(finder_.Sight()->place.term, 1);
  Claimed(2, "c");
  EXPECT_TRUE(finder_.IsOver());
  EXPECT_THAT(lost_, testing::ElementsAre("a"));
  ASSERT_TRUE(Connect().ok());
  Told({});
  EXPECT_EQ(finder_.Sight()->place.by, "c");
  EXPECT_TRUE(turns_.empty());
}

TEST_F(ClaimedFinderTest, AnHeirTakesAFreeRoleAndTellsWhatTheFormerBoardHadFormed) {
  Claimed(1, "a");
  ASSERT_TRUE(Connect().ok());
  Told({{"b", "127.0.0.2:1"}});
  FormAt(1);
  home_.last->is_alive = false;
  EXPECT_TRUE(finder_.IsOver());
  ASSERT_TRUE(Connect().ok());
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_EQ(turns_[0].next.term, 2);
  EXPECT_EQ(turns_[0].next.epoch, 7);
  EXPECT_TRUE(turns_[0].handed_over_by.empty());
  ASSERT_TRUE(turns_[0].former);
  EXPECT_EQ(turns_[0].former->number, 7);
  EXPECT_EQ(turns_[0].former->restarts, 3);
  EXPECT_EQ(turns_[0].former->restarts_recent, 2);
  EXPECT_THAT(CountedOf(*turns_[0].former).hosts, testing::ElementsAre("x"))
      << "a's machine refuses, y has left, and of x nothing is known";
}

TEST_F(ClaimedFinderTest, ABoardThatWasNeverOpenedHidesNoEpoch) {
  FormAt(1);
  TakeAfter(2);
  ASSERT_OK(Connect());
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_EQ(turns_[0].next.term, 3);
  EXPECT_EQ(turns_[0].next.epoch, 7);
  ASSERT_TRUE(turns_[0].former);
  EXPECT_THAT(CountedOf(*turns_[0].former).hosts, testing::ElementsAre("x"));
}

// Of their hosts nobody is known to be dead: where they listen was told on a board that is gone.
TEST_F(ClaimedFinderTest, ABoardOnWhichNoneWasFormedTellsOfTheOneBefore) {
  FormAt(9);   // only to have the record
  const auto board = home_.BoardOf(2).Connect("");
  const BoardKeys keys("job", "g");
  ASSERT_OK(board->Set(GenerationKey("job"), "g"));
  ASSERT_OK(board->Set(keys.NewestEpoch(), "0"));
  ASSERT_OK(board->Set(keys.Former(), EpochText(epoch_)));
  TakeAfter(2);
  ASSERT_OK(Connect());
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_EQ(turns_[0].former, epoch_);
}

TEST_F(ClaimedFinderTest, ABoardThatCannotBeReadIsReadAgainBeforeTheNextOneIsOpened) {
  FormAt(1);
  TakeAfter(1);
  home_.is_unreadable = true;
  // A load balancer that answers for it, and a file of certificates that is being replaced.
  for (const Code why : {Code::kTimeout, Code::kCorrupt, Code::kInvalid}) {
    home_.why_unreadable = why;
    EXPECT_THAT(Connect().error().message, HasSubstr("that board does not answer"));
  }
  EXPECT_TRUE(turns_.empty());
  EXPECT_EQ(home_.last->by, "b");
  home_.is_unreadable = false;
  ASSERT_OK(Connect());
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_EQ(turns_[0].former->number, 7);
}

TEST_F(ClaimedFinderTest, ARoleThatWasLostBeforeItsTurnIsNotTaken) {
  TakeAfter(1);
  home_.is_unreadable = true;
  EXPECT_FALSE(Connect().ok());
  home_.is_unreadable = false;
  Claimed(3, "c");
  ASSERT_OK(Connect());
  EXPECT_TRUE(turns_.empty());
  EXPECT_THAT(roles_lost_, testing::ElementsAre(2));
}

TEST_F(ClaimedFinderTest, ANewcomerLeavesAFreeRoleToOthersForAWhile) {
  home_.last = RoleClaim{.term = 3, .by = "a"};
  EXPECT_FALSE(Connect().ok());
  clock_.Advance(1s);
  EXPECT_THAT(Connect().error().message, HasSubstr("others have their turn"));
  clock_.Advance(1s);
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(turns_.at(0).next.term, 4);
}

TEST_F(ClaimedFinderTest, AnHeirThatIsAskedTakesTheRoleFromWhoeverAsks) {
  Claimed(1, "a");
  ASSERT_TRUE(Connect().ok());
  Told({{"b", "127.0.0.2:1"}}, "b");
  ASSERT_TRUE(Connect().ok());
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_EQ(turns_[0].handed_over_by, "a");
  EXPECT_EQ(home_.last->term, 2);
}

TEST_F(ClaimedFinderTest, ARoleThatIsLostIsToldOnceAndGivenBack) {
  ASSERT_TRUE(Connect().ok());
  Claimed(2, "c");
  EXPECT_TRUE(finder_.IsOver());
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(roles_lost_, testing::ElementsAre(1));
  EXPECT_EQ(home_.released, 1);
}

TEST_F(ClaimedFinderTest, AHomeThatDoesNotAnswerChangesNothing) {
  Claimed(1, "a");
  ASSERT_TRUE(Connect().ok());
  home_.is_away = true;
  EXPECT_FALSE(finder_.IsOver());
  EXPECT_THAT(Connect().error().message, HasSubstr("does not answer"));
  EXPECT_TRUE(lost_.empty());
}

TEST_F(ClaimedFinderTest, WhoeverIsAboutToEndTakesNoRole) {
  finder_.NoteFinishing();
  EXPECT_FALSE(Connect().ok());
  EXPECT_TRUE(turns_.empty());
}

TEST_F(ClaimedFinderTest, AJobThatEndedWithoutThisHostIsNotBegunAnew) {
  Claimed(1, "a");
  ASSERT_TRUE(Connect().ok());
  home_.last = RoleClaim{.term = 2, .by = "a", .has_ended = true};
  EXPECT_TRUE(finder_.IsOver());
  EXPECT_THAT(Connect().error().message, HasSubstr("the job has ended without this host"));
  EXPECT_TRUE(turns_.empty());
}


// Or whoever ends while the home is away would wait for its answer.
TEST_F(ClaimedFinderTest, EachLookIsGivenUpOnceNobodyNeedsTheConnection) {
  const CancelToken ending;
  ASSERT_OK(finder_.Connect(ending));
  EXPECT_TRUE(home_.looks_until.can_be_cancelled());
  home_.looks_until = CancelToken::Never();
  EXPECT_FALSE(finder_.IsOver());
  EXPECT_FALSE(home_.looks_until.cancelled());
  ending.Cancel();
  EXPECT_TRUE(home_.looks_until.cancelled());
}

}  // namespace
}  // namespace keel
