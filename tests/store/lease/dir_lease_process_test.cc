// Processes that race for a lease in a directory on a real disk, and are killed while they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "base/text.h"
#include "elastic/process/spawn.h"
#include "store/lease/dir_lease.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/ranks.h"
#include "tests/harness/sanitizers.h"
#include "tests/harness/syscall_killer.h"
#include "tests/store/lease/racer.h"
#include "tests/store/lease/unsynced_files.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLimit = 240s;

class DirLeaseProcesses : public testing::Test {
 protected:
  DirLeaseProcesses() { EXPECT_OK(files_.MakeDir(shared_)); }

  Result<std::unique_ptr<Ranks>> StartRacers(int count, int64_t last) {
    return Ranks::Start({.argv = {KEEL_BIN_DIR "/lease_claimant", "race", shared_, "racer",
                                  std::to_string(last)},
                         .count = count},
                        folder_);
  }
  std::unique_ptr<DirLease> Open() {
    auto lease = DirLease::Open(files_, random_, shared_, {"job", "run"});
    EXPECT_OK(lease);
    return std::move(*lease);
  }
  static void AddWon(const std::string& output, std::vector<int64_t>* won) {
    for (const std::string& line : SplitList(output, '\n')) {
      if (line.starts_with("won ")) won->push_back(*ParseInteger(line.substr(4)));
    }
  }

  TempDir folder_;
  const std::string shared_ = folder_.File("shared");
  UnsyncedFiles files_;
  Random random_{EntropySeed()};
};

TEST_F(DirLeaseProcesses, EachTermHasOneWinner) {
  constexpr int64_t kLast = Rounds(2000, 500);
  ASSERT_OK_AND_ASSIGN(const auto racers, StartRacers(4, kLast));
  std::vector<int64_t> won;
  for (int rank = 0; rank < racers->count(); ++rank) {
    ASSERT_OK_AND_ASSIGN(const ExitStatus status, racers->Wait(rank, kLimit));
    EXPECT_TRUE(status.ok()) << racers->Report();
    AddWon(racers->Stdout(rank), &won);
  }
  EXPECT_EQ(WhyNotOneWinnerEach(won, kLast), "");
}

// Whoever is killed has won what it has won; the others go on, and none of them ever reads a claim
// that is not whole (lease_claimant fails then).
TEST_F(DirLeaseProcesses, RacersThatAreKilledStopNobody) {
  constexpr int64_t kLast = 1'000'000;   // never
  ASSERT_OK_AND_ASSIGN(const auto racers, StartRacers(3, kLast));
  const auto watcher = Open();
  int64_t reached = 0;
  const TimePoint deadline = RealClock().Monotonic() + kLimit;
  for (int kills = 0; kills < Rounds(60, 20); ++kills) {
    // Once they have come on, one of them is killed wherever it is, and another takes its place.
    for (;;) {
      ASSERT_LT(RealClock().Monotonic(), deadline) << "nobody claims any more\n"
                                                   << racers->Report();
      ASSERT_OK_AND_ASSIGN(const LeaseSight sight, watcher->Look());
      ASSERT_GE(sight.term, reached) << "a term fell";
      ASSERT_EQ(sight.damage, "");
      if (sight.term < reached + 10) continue;
      reached = sight.term;
      break;
    }
    const int victim = kills % racers->count();
    ASSERT_OK(racers->Signal(victim, SIGKILL));
    ASSERT_OK_AND_ASSIGN(const ExitStatus status, racers->Wait(victim, kLimit));
    ASSERT_TRUE(status.KilledBy(SIGKILL)) << racers->Report();
    ASSERT_OK(racers->Restart(victim));
  }
  std::printf("60 were killed within %lld terms\n", static_cast<long long>(reached));
}

TEST_F(DirLeaseProcesses, KilledAtEverySystemCallTheNextTermIsFree) {
  if (kUnderSanitizer) {
    GTEST_SKIP() << "sanitized programs make calls of their own and cannot all be traced";
  }
  int64_t term = 0;
  int kills = 0;
  for (int call = 1;; ++call) {
    const auto end =
        RunKilledAtSyscall({KEEL_BIN_DIR "/lease_claimant", "once", shared_, "victim"}, call);
    if (!end.ok()) GTEST_SKIP() << "no tracing on this machine: " << end.error().message;
    if (end->status.ok()) break;
    ASSERT_TRUE(end->status.KilledBy(SIGKILL)) << end->status.Text();
    ++kills;
    const auto next = Open();
    ASSERT_OK_AND_ASSIGN(const LeaseSight sight, next->Look());
    ASSERT_TRUE(sight.term == term || sight.term == term + 1) << sight.term << ", call " << call;
    ASSERT_EQ(sight.damage, "") << "call " << call;
    if (sight.term > term) {
      ASSERT_EQ(sight.text, Racer::TextOf(sight.term, "victim"));
    }
    term = sight.term + 1;
    ASSERT_OK(next->Claim(term, "next"));
    ASSERT_OK(next->Beat());
  }
  std::printf("killed at %d system calls\n", kills);
  EXPECT_GE(kills, 100);
  // Nothing is left but the terms that are kept, with their beats, and what a killed probe left.
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List(Open()->folder()));
  for (const DirEntry& entry : entries) {
    EXPECT_THAT(entry.name,
                testing::ContainsRegex("^(term-|beat-|((putting-|removing-)?probe-))"));
  }
}

}  // namespace
}  // namespace keel
