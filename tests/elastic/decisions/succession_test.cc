// Succession: how the coordinator names heirs and passes its role on.
#include "elastic/decisions/succession.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

constexpr TimePoint kNow{100s};

HostView Host(int64_t slot, const std::string& name) {
  HostView host;
  host.slot = slot;
  host.record.incarnation = name;
  host.record.peer = name + ":1";
  return host;
}

// Host "me" coordinates epoch 7 of all three; in group rank, "c" comes before "b".
class SuccessionTest : public testing::Test {
 protected:
  SuccessionTest() {
    job_.coordinator = "me";
    job_.hosts = {Host(0, "me"), Host(1, "b"), Host(2, "c")};
    job_.epoch.emplace();
    job_.epoch->record.number = 7;
    job_.epoch->record.id = "e7";
    job_.epoch->record.hosts = {{0, "me", 0, 0}, {2, "c", 1, 0}, {1, "b", 2, 0}};
    succession_.record.coordinator = "me";
  }

  const SuccessionRecord& Next(TimePoint now = kNow) {
    const SuccessionView view{job_, hosts_min_, {1, 7, "me:29400", "me"}, offer_};
    succession_ = NextSuccession(succession_, view, now);
    return succession_.record;
  }
  std::vector<std::string> Heirs() {
    std::vector<std::string> names;
    for (const Heir& heir : succession_.record.heirs) names.push_back(heir.incarnation);
    return names;
  }
  void Leave() { job_.hosts[0].record.state = MemberState::kLeaving; }

  JobView job_;
  int hosts_min_ = 1;
  std::optional<BoardPlace> offer_;
  Succession succession_;
};

TEST_F(SuccessionTest, HeirsAreTheOthersThatStayByGroupRankThenNewcomers) {
  job_.hosts.push_back(Host(3, "new"));
  Next();
  EXPECT_THAT(Heirs(), testing::ElementsAre("c", "b", "new"));
  job_.hosts[2].record.state = MemberState::kLeaving;
  job_.hosts[3].record.fingerprint = "other numerics";
  job_.hosts[0].record.fingerprint = job_.hosts[1].record.fingerprint = "ours";
  Next();
  EXPECT_THAT(Heirs(), testing::ElementsAre("b"));
  job_.hosts[1].gone = true;
  EXPECT_THAT(Next().heirs, IsEmpty());
  for (int64_t slot = 4; slot < 40; ++slot) job_.hosts.push_back(Host(slot, "x"));
  EXPECT_EQ(Next().heirs.size(), kHeirsMax);
}

TEST_F(SuccessionTest, AnEpochIsMetOnceAllItsHostsTellThatTheyTookIt) {
  job_.counted = {CountedOf(job_.epoch->record)};
  for (HostView& host : job_.hosts) {
    EXPECT_EQ(Next().met, "");
    host.record.epoch.id = "e7";
  }
  EXPECT_EQ(Next().met, "e7");
  job_.epoch->record.id = "e8";
  job_.counted.push_back(CountedOf(job_.epoch->record));
  EXPECT_EQ(Next().met, "e7") << "nobody has taken the next one yet";
}

TEST_F(SuccessionTest, AnEpochThatOnlySomeHaveTakenUpIsNotMet) {
  job_.counted = {CountedOf(job_.epoch->record)};
  job_.counted[0].hosts.push_back("one that did not come");
  for (HostView& host : job_.hosts) host.record.epoch.id = host.record.seen.linked = "e7";
  EXPECT_EQ(Next().met, "");
  job_.counted[0].hosts.pop_back();
  EXPECT_EQ(Next().met, "e7");
  EXPECT_EQ(Next().shared, "e7");
}

TEST_F(SuccessionTest, WhoLeavesAsksTheFirstHeirAndMovesToWhatItOffers) {
  EXPECT_EQ(Next().chosen, "");
  Leave();
  EXPECT_EQ(Next().chosen, "c");
  EXPECT_TRUE(IsHandingOver(succession_, kNow));
  EXPECT_EQ(NextSuccessionLook(succession_), kNow + kHeirLimit);
  offer_ = BoardPlace{2, 0, "b:5", "b"};           // nobody asked that one
  EXPECT_FALSE(Next().moved.has_value());
  offer_ = BoardPlace{2, 0, "c:5", "c"};
  EXPECT_EQ(Next().moved, offer_);
  EXPECT_FALSE(IsHandingOver(succession_, kNow));
  offer_ = BoardPlace{9, 99, "d:5", "d"};
  EXPECT_EQ(Next().moved->by, "c") << "a board is left for one place";
}

TEST_F(SuccessionTest, AnHeirThatStaysSilentIsPassedOver) {
  Leave();
  EXPECT_EQ(Next().chosen, "c");
  EXPECT_EQ(Next(kNow + kHeirLimit - 1ns).chosen, "c");
  EXPECT_EQ(Next(kNow + kHeirLimit).chosen, "b");
  EXPECT_EQ(Next(kNow + 2 * kHeirLimit).chosen, "c") << "all were silent: once more";
  EXPECT_FALSE(IsHandingOver(succession_, kNow + kHandOverPatience));
}

TEST_F(SuccessionTest, NobodyIsAskedWhereTheJobStopsOrTooFewStay) {
  Leave();
  hosts_min_ = 3;
  EXPECT_EQ(Next().chosen, "");
  hosts_min_ = 2;
  job_.stop.emplace();
  EXPECT_EQ(Next().chosen, "");
  job_.stop.reset();
  job_.hosts[0].record.refused = true;   // what it was refused for, all may be
  EXPECT_EQ(Next().chosen, "");
  job_.hosts[0].record.refused = false;
  EXPECT_EQ(Next().chosen, "c");
}

TEST_F(SuccessionTest, ABoardThatIsAheadIsFollowedUnasked) {
  offer_ = BoardPlace{3, 7, "x:5", "x"};
  EXPECT_EQ(Next().moved, offer_);
  succession_.record.moved.reset();
  offer_ = BoardPlace{9, 6, "x:5", "x"};
  EXPECT_FALSE(Next().moved.has_value()) << "its epoch is older";
}

}  // namespace
}  // namespace keel
