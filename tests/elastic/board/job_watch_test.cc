// JobWatch: what the coordinator keeps of what it has read, and for how long.
#include "elastic/board/job_watch.h"

#include <gtest/gtest.h>

#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

constexpr TimePoint kNow{std::chrono::hours(1)};
constexpr int64_t kFormer = Rounds(1999, 300);

void Come(JobWatch& watch, int64_t slot, const std::string& beat = "1", TimePoint at = kNow) {
  MemberRecord record;
  record.incarnation = "i" + std::to_string(slot);
  record.host = "h" + std::to_string(slot);
  watch.NoteMember(slot, MemberText(record), beat, at);
}

// Weeks on spot machines leave thousands of former hosts, and each decision looks at all that are
// known.
TEST(JobWatch, FormerHostsAreForgottenUnlessTheEpochNamesThem) {
  JobWatch watch("i" + std::to_string(kFormer), BoardKeys("j", "g"));
  watch.NoteOpened(kNow);
  Come(watch, 0);
  Decision formed;
  formed.epoch.number = 1;
  formed.epoch.hosts = {{0, "i0", 0, 0}};
  watch.NoteEpoch(formed.epoch, formed, kNow);
  for (int64_t slot = 1; slot <= kFormer; ++slot) Come(watch, slot);
  Come(watch, 1, "2", kNow + std::chrono::hours(1));
  for (int64_t slot = 0; slot < kFormer; ++slot) watch.NoteGone(slot, "it left");
  watch.NoteAllRead(kNow);
  EXPECT_LT(watch.view().hosts.size(), 100u);
  EXPECT_NE(watch.HostAt(0), nullptr) << "the epoch names it";
  EXPECT_NE(watch.HostAt(1), nullptr) << "those who watch the job see who was heard last";
  for (int64_t slot = 0; slot < kFormer; ++slot) EXPECT_TRUE(watch.IsOver(slot)) << slot;
  EXPECT_FALSE(watch.IsOver(kFormer));
  EXPECT_FALSE(watch.IsOver(kFormer + 1)) << "nobody has come there yet";
}

// It followed another board for a moment. A slow network may bring the former record later.
TEST(JobWatch, OfTwoSlotsOfOneHostTheLaterOneIsItsOwn) {
  JobWatch watch("i0", BoardKeys("j", "g"));
  watch.NoteOpened(kNow);
  MemberRecord twice;
  twice.incarnation = "a";
  Come(watch, 0);
  for (const int64_t slot : {2, 1, 4}) watch.NoteMember(slot, MemberText(twice), "1", kNow);
  EXPECT_FALSE(watch.HostAt(0)->anew);
  EXPECT_EQ(watch.HostAt(1)->anew, 4);
  EXPECT_EQ(watch.HostAt(2)->anew, 4);
  EXPECT_FALSE(watch.HostAt(4)->anew);
}

// --- Restarts, when the store before was lost ---

MemberRecord Told(int64_t slot, int64_t deaths, ToldEpoch epoch) {
  MemberRecord record;
  record.incarnation = "i" + std::to_string(slot);
  record.kind = JobKind::kInPlace;
  record.deaths = deaths;
  record.epoch = std::move(epoch);
  return record;
}

class LostStore : public ::testing::Test {
 protected:
  LostStore() { watch_.NoteOpened(kNow); }

  void Read(const MemberRecord& record) {
    const int64_t slot = record.incarnation[1] - '0';
    watch_.NoteMember(slot, MemberText(record), "1", kNow);
  }
  // Epoch 5 of i1, which had counted `restarts`, all of them recent.
  void TakeUp(int restarts) {
    Decision taken;
    taken.verdict = Decision::Verdict::kTakeUp;
    taken.epoch.number = 5;
    taken.epoch.id = "five";
    taken.epoch.restarts = taken.epoch.restarts_recent = restarts;
    watch_.NoteEpoch(taken.epoch, taken, kNow);
  }
  size_t failures() const { return watch_.view().failures.size(); }

  JobWatch watch_{"i0", BoardKeys("j", "g")};
};

TEST_F(LostStore, ADeathThatTheEpochHasCountedCountsOnce) {
  Read(Told(1, 1, {5, "five", 2, "", 1, 1, 1}));
  EXPECT_EQ(failures(), 0u) << "nothing is known before the epoch is taken up";
  TakeUp(1);
  EXPECT_EQ(failures(), 1u);
  Read(Told(1, 2, {5, "five", 2, "", 1, 1, 1}));
  EXPECT_EQ(failures(), 2u);
}

// Its worker died, and is not back: it still tells the epoch before, which had not counted that.
TEST_F(LostStore, ADeathOnAHostOutsideTheEpochIsInItsCountAlready) {
  Read(Told(1, 0, {5, "five", 2, "", 1, 1, 0}));
  Read(Told(2, 1, {4, "four", 3, "", 0, 0, 0}));
  TakeUp(1);
  EXPECT_EQ(failures(), 1u);
  Read(Told(3, 1, {4, "four", 3, "", 0, 0, 0}));
  EXPECT_EQ(failures(), 1u) << "it came only after that";
}

// The job pays for a machine that is left out no more than for one that never came.
TEST_F(LostStore, DeathsOfAHostThatIsShunnedCostNothingMore) {
  Read(Told(1, 0, {5, "five", 2, "", 0, 0, 0}));
  Read(Told(2, 0, {5, "five", 2, "", 0, 0, 0}));
  TakeUp(0);
  Read(Told(1, 3, {5, "five", 2, "", 0, 0, 0}));
  Read(Told(2, 1, {5, "five", 2, "", 0, 0, 0}));
  EXPECT_EQ(failures(), 4u);
  watch_.NoteShunned({{{"i1", "h1", "m1", "it dies"}}});
  EXPECT_EQ(failures(), 1u);
  Read(Told(1, 4, {5, "five", 2, "", 0, 0, 0}));
  EXPECT_EQ(failures(), 1u) << "it is on its way out";
  Read(Told(2, 2, {5, "five", 2, "", 0, 0, 0}));
  EXPECT_EQ(failures(), 2u);
}

// Its coordinator was the one that was left out: the epoch has counted two of its deaths, and the
// third one, of which the new board hears, costs nothing, either.
TEST_F(LostStore, TheNextBoardDoesNotChargeDeathsOfAHostThatIsShunned) {
  watch_.NoteShunned({{{"i1", "h1", "m1", "it dies", 5, 2}}});
  Read(Told(1, 3, {5, "five", 2, "", 3, 3, 2}));
  Read(Told(2, 1, {5, "five", 2, "", 3, 3, 1}));
  TakeUp(3);
  EXPECT_EQ(failures(), 1u);
  EXPECT_EQ(watch_.view().restarts_before, 2) << "they were spent, and are told";
}

TEST_F(LostStore, WhatAnEpochAfterItHasCountedIsNotOfAShunnedHost) {
  watch_.NoteShunned({{{"i9", "h9", "m9", "it dies", 4, 2}}});
  Read(Told(2, 2, {5, "five", 2, "", 2, 2, 2}));
  TakeUp(2);
  EXPECT_EQ(failures(), 2u);
}

// When those were that the board before was told of, nobody knows.
TEST_F(LostStore, IncidentsOfABoardBeforeAreNotTakenForNewOnes) {
  MemberRecord told = Told(1, 3, {5, "five", 2, "", 3, 3, 3});
  told.incidents = 3;
  Read(told);
  TakeUp(3);
  EXPECT_TRUE(watch_.HostAt(1)->incidents.empty());
  told.incidents = 4;
  Read(told);
  EXPECT_EQ(watch_.HostAt(1)->incidents.size(), 1u);
}

TEST_F(LostStore, DeathsOfANewcomerAreItsOwnWheneverItComes) {
  Read(Told(2, 3, {}));
  Read(Told(1, 0, {5, "five", 1, "", 1, 1, 0}));
  TakeUp(1);
  EXPECT_EQ(failures(), 1u);
  Read(Told(3, 3, {}));
  EXPECT_EQ(failures(), 1u);
}

// None of the epoch's hosts is there that it has not lost, and no epoch is taken up.
TEST_F(LostStore, RestartsAreToldByHostsThatWereTakenForDead) {
  ToldEpoch none;
  none.restarts = 5;
  none.restarts_recent = 2;
  Read(Told(1, 0, none));
  EXPECT_EQ(failures(), 2u);
  EXPECT_EQ(watch_.view().restarts_before, 3);
  none.restarts = 4;
  none.restarts_recent = 4;
  Read(Told(2, 0, none));
  EXPECT_EQ(failures(), 2u) << "it was dropped before the other";
  TakeUp(1);
  EXPECT_EQ(failures(), 2u) << "an older epoch, of which one host is left";
  EXPECT_EQ(watch_.view().restarts_before, 3);
}

// All of its hosts are dead, and whoever coordinates next has read the board before.
TEST_F(LostStore, RestartsAreToldByTheBoardBefore) {
  EpochRecord former;
  former.number = 5;
  former.id = "five";
  former.restarts = 5;
  former.restarts_recent = 2;
  watch_.NoteFormer(former, kNow);
  EXPECT_EQ(failures(), 2u);
  EXPECT_EQ(watch_.view().restarts_before, 3);
  Read(Told(1, 2, {5, "five", 2, "", 5, 0, 2}));
  former.restarts_recent = 0;   // it ran for longer than the window, which its host knows
  Decision taken;
  taken.verdict = Decision::Verdict::kTakeUp;
  taken.epoch = former;
  watch_.NoteEpoch(taken.epoch, taken, kNow);
  EXPECT_EQ(failures(), 0u);
  EXPECT_EQ(watch_.view().restarts_before, 5);
}

TEST_F(LostStore, ARecordOfNonsenseCostsNeitherMemoryNorTime) {
  Read(Told(1, 1, {5, "five", 1, "", INT32_MAX, INT32_MAX, INT64_MIN}));
  TakeUp(INT32_MAX);
  EXPECT_LE(failures(), 200'000u);
}

}  // namespace
}  // namespace keel
