// Notes as another process finds them: who lives, is gone, has closed its board or opened another
// one, and a board that is written while it is looked at.
#include "trainer/group/note_board.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

namespace keel {
namespace {

bool Has(const ForeignBoard& board, Note note, uint32_t operation) {
  const Result<bool> has = board.Has(note, operation);
  EXPECT_TRUE(has.ok()) << has.error().message;
  return has.ok() && *has;
}

TEST(NoteBoard, ANoteCountsForItsOperationAndAllBefore) {
  NoteBoard board;
  const ForeignBoard seen(getpid(), board.card());
  EXPECT_FALSE(Has(seen, Note::kSummed, 0));
  board.Tell(Note::kSummed, 4);
  EXPECT_TRUE(Has(seen, Note::kSummed, 0));
  EXPECT_TRUE(Has(seen, Note::kSummed, 4));
  EXPECT_FALSE(Has(seen, Note::kSummed, 5));
  EXPECT_FALSE(Has(seen, Note::kTaken, 0));
  EXPECT_FALSE(Has(seen, Note::kOffered, 0));
}

TEST(NoteBoard, CountsMayWrap) {
  NoteBoard board;
  const ForeignBoard seen(getpid(), board.card());
  board.Tell(Note::kTaken, 0xffffffff);
  EXPECT_TRUE(Has(seen, Note::kTaken, 0xfffffff0));
  EXPECT_FALSE(Has(seen, Note::kTaken, 0));
  board.Tell(Note::kTaken, 0);
  EXPECT_TRUE(Has(seen, Note::kTaken, 0xffffffff));
}

TEST(NoteBoard, AnOfferIsFoundWhileTheNextOnesAreMade) {
  NoteBoard board;
  const ForeignBoard seen(getpid(), board.card());
  for (uint32_t operation = 0; operation < 200; ++operation) {
    board.Offer(operation, std::vector<uint64_t>{operation, 7});
    const uint32_t first = operation < NoteBoard::kOffersMax ? 0 : operation + 1 -
                                                                      NoteBoard::kOffersMax;
    for (uint32_t earlier = first; earlier <= operation; ++earlier) {
      const auto places = seen.PlacesOf(earlier);
      ASSERT_TRUE(places.ok()) << places.error().message;
      EXPECT_EQ(*places, (std::vector<uint64_t>{earlier, 7}));
    }
  }
  board.Offer(200, std::vector<uint64_t>(NoteBoard::kPlacesMax, 3));
  EXPECT_EQ(seen.PlacesOf(200)->size(), NoteBoard::kPlacesMax);
  EXPECT_EQ(seen.PlacesOf(200 - NoteBoard::kOffersMax).error().code, Code::kCorrupt);
}

TEST(NoteBoard, AClosedOneHasNoNotesAnyMore) {
  NoteBoard board;
  const ForeignBoard seen(getpid(), board.card());
  board.Offer(0, std::vector<uint64_t>{1});
  EXPECT_TRUE(Has(seen, Note::kOffered, 0));
  board.Close();
  EXPECT_EQ(seen.Has(Note::kOffered, 0).error().code, Code::kPeerLost);
  EXPECT_EQ(seen.PlacesOf(0).error().code, Code::kPeerLost);
}

TEST(NoteBoard, OneThatIsGoneKeepsItsNotesUntilItsPlaceIsNeeded) {
  std::optional<NoteBoard> board(std::in_place);
  const NoteBoard::Card card = board->card();
  const ForeignBoard seen(getpid(), card);
  board->Tell(Note::kTaken, 0);
  board.reset();
  for (size_t other = 0; other < NoteBoard::kKept; ++other) {
    const NoteBoard next;
    EXPECT_NE(next.card().address, card.address);
    EXPECT_TRUE(Has(seen, Note::kTaken, 0)) << other;
  }
  bool used_again = false;
  for (int other = 0; other < 100 && !used_again; ++other) {
    const NoteBoard next;
    used_again = next.card().address == card.address;
    if (!used_again) continue;
    EXPECT_EQ(seen.Has(Note::kTaken, 0).error().code, Code::kPeerLost);
    EXPECT_FALSE(Has(ForeignBoard(getpid(), next.card()), Note::kTaken, 0));
  }
  EXPECT_TRUE(used_again);
}

TEST(NoteBoard, AnotherProcessIsLookedAtUntilItIsGone) {
  NoteBoard board;
  board.Tell(Note::kTaken, 1);
  const pid_t child = fork();
  while (child == 0) pause();
  ASSERT_GT(child, 0);
  const ForeignBoard seen(child, board.card());
  board.Tell(Note::kTaken, 2);   // the child has its own copy
  EXPECT_TRUE(Has(seen, Note::kTaken, 1));
  EXPECT_FALSE(Has(seen, Note::kTaken, 2));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(seen.Has(Note::kTaken, 1).error().code, Code::kPeerLost);
}

// Bytes of two counts mixed would look like a count that is far ahead.
TEST(NoteBoard, WhatIsWrittenMeanwhileIsSeenBeforeOrAfterButNotBetween) {
  NoteBoard board;
  const ForeignBoard seen(getpid(), board.card());
  board.Tell(Note::kSummed, 0);
  std::atomic<uint32_t> told{0};
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint32_t operation = 1; !done; ++operation) {
      board.Tell(Note::kSummed, operation);
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
