// Notes as another process finds them: those of a process that lives, is gone, or has closed its
// notes and opened others, and notes that are written while they are looked at.
#include "trainer/group/shared_notes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

namespace keel {
namespace {

bool Has(const PeerNotes& notes, Note note, uint32_t operation) {
  const Result<bool> has = notes.Has(note, operation);
  EXPECT_TRUE(has.ok()) << has.error().message;
  return has.ok() && *has;
}

TEST(SharedNotes, ANoteCountsForItsOperationAndAllBefore) {
  SharedNotes notes;
  const PeerNotes seen(getpid(), notes.card());
  EXPECT_FALSE(Has(seen, Note::kSummed, 0));
  notes.Tell(Note::kSummed, 4);
  EXPECT_TRUE(Has(seen, Note::kSummed, 0));
  EXPECT_TRUE(Has(seen, Note::kSummed, 4));
  EXPECT_FALSE(Has(seen, Note::kSummed, 5));
  EXPECT_FALSE(Has(seen, Note::kTaken, 0));
  EXPECT_FALSE(Has(seen, Note::kOffered, 0));
}

TEST(SharedNotes, CountsMayWrap) {
  SharedNotes notes;
  const PeerNotes seen(getpid(), notes.card());
  notes.Tell(Note::kTaken, 0xffffffff);
  EXPECT_TRUE(Has(seen, Note::kTaken, 0xfffffff0));
  EXPECT_FALSE(Has(seen, Note::kTaken, 0));
  notes.Tell(Note::kTaken, 0);
  EXPECT_TRUE(Has(seen, Note::kTaken, 0xffffffff));
}

TEST(SharedNotes, AnOfferIsFoundWhileTheNextOnesAreMade) {
  SharedNotes notes;
  const PeerNotes seen(getpid(), notes.card());
  for (uint32_t operation = 0; operation < 200; ++operation) {
    notes.Offer(operation, std::vector<uint64_t>{operation, 7});
    const uint32_t first = operation < SharedNotes::kOffersMax ? 0 : operation + 1 -
                                                                      SharedNotes::kOffersMax;
    for (uint32_t earlier = first; earlier <= operation; ++earlier) {
      const auto places = seen.PlacesOf(earlier);
      ASSERT_TRUE(places.ok()) << places.error().message;
      EXPECT_EQ(*places, (std::vector<uint64_t>{earlier, 7}));
    }
  }
  notes.Offer(200, std::vector<uint64_t>(SharedNotes::kPlacesMax, 3));
  EXPECT_EQ(seen.PlacesOf(200)->size(), SharedNotes::kPlacesMax);
  EXPECT_EQ(seen.PlacesOf(200 - SharedNotes::kOffersMax).error().code, Code::kCorrupt);
}

TEST(SharedNotes, AClosedOneHasNoNotesAnyMore) {
  SharedNotes notes;
  const PeerNotes seen(getpid(), notes.card());
  notes.Offer(0, std::vector<uint64_t>{1});
  EXPECT_TRUE(Has(seen, Note::kOffered, 0));
  notes.Close();
  EXPECT_EQ(seen.Has(Note::kOffered, 0).error().code, Code::kPeerLost);
  EXPECT_EQ(seen.PlacesOf(0).error().code, Code::kPeerLost);
}

TEST(SharedNotes, OneThatIsGoneKeepsItsNotesUntilItsPlaceIsNeeded) {
  std::optional<SharedNotes> notes(std::in_place);
  const SharedNotes::Card card = notes->card();
  const PeerNotes seen(getpid(), card);
  notes->Tell(Note::kTaken, 0);
  notes.reset();
  for (size_t other = 0; other < SharedNotes::kKept; ++other) {
    const SharedNotes next;
    EXPECT_NE(next.card().address, card.address);
    EXPECT_TRUE(Has(seen, Note::kTaken, 0)) << other;
  }
  bool used_again = false;
  for (int other = 0; other < 100 && !used_again; ++other) {
    const SharedNotes next;
    used_again = next.card().address == card.address;
    if (!used_again) continue;
    EXPECT_EQ(seen.Has(Note::kTaken, 0).error().code, Code::kPeerLost);
    EXPECT_FALSE(Has(PeerNotes(getpid(), next.card()), Note::kTaken, 0));
  }
  EXPECT_TRUE(used_again);
}

TEST(SharedNotes, AnotherProcessIsLookedAtUntilItIsGone) {
  SharedNotes notes;
  notes.Tell(Note::kTaken, 1);
  const pid_t child = fork();
  while (child == 0) pause();
  ASSERT_GT(child, 0);
  const PeerNotes seen(child, notes.card());
  notes.Tell(Note::kTaken, 2);   // the child has its own copy
  EXPECT_TRUE(Has(seen, Note::kTaken, 1));
  EXPECT_FALSE(Has(seen, Note::kTaken, 2));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(seen.Has(Note::kTaken, 1).error().code, Code::kPeerLost);
}

// Bytes of two counts mixed would look like a count that is far ahead.
TEST(SharedNotes, WhatIsWrittenMeanwhileIsSeenBeforeOrAfterButNotBetween) {
  SharedNotes notes;
  const PeerNotes seen(getpid(), notes.card());
  notes.Tell(Note::kSummed, 0);
  std::atomic<uint32_t> told{0};
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint32_t operation = 1; !done; ++operation) {
      notes.Tell(Note::kSummed, operation);
      told = operation;
    }
  });
  for (int look = 0; look < 20000; ++look) {
    const uint32_t least = told;
    bool there = false;   // a mixture is no note, and looked at again
    for (int again = 0; again < 100 && !there; ++again) there = Has(seen, Note::kSummed, least);
    EXPECT_TRUE(there);
    const uint32_t ahead = least + 0x1000;
    if (Has(seen, Note::kSummed, ahead)) {
      EXPECT_GE(told + 1, ahead);   // the writer got there meanwhile
    }
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace keel
