// A lease in a directory at each call to the disk that may fail, or be the last one before the
// power goes.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "store/lease/dir_lease.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

Result<std::unique_ptr<DirLease>> OpenIn(Files& files) {
  Random random(EntropySeed());
  return DirLease::Open(files, random, "/shared", {"job", "run"});
}

// A disk with two terms claimed, the second by a holder that beats.
std::unique_ptr<MemoryFiles> UsedDisk() {
  auto files = std::make_unique<MemoryFiles>();
  EXPECT_OK(files->MakeDir("/shared"));
  EXPECT_OK(files->SyncDir("/"));
  auto lease = OpenIn(*files);
  EXPECT_OK(lease);
  for (int64_t term = 1; term <= 2; ++term) {
    EXPECT_OK((*lease)->Claim(term, "old"));
    EXPECT_OK((*lease)->Beat());
  }
  return files;
}

// After anything: what is seen is whole, no term has fallen, and the next one can be claimed.
void ExpectUsable(Files& files, int64_t term_least, const std::string& where) {
  SCOPED_TRACE(where);
  ASSERT_OK_AND_ASSIGN(const auto lease, OpenIn(files));
  ASSERT_OK_AND_ASSIGN(const LeaseSight sight, lease->Look());
  EXPECT_GE(sight.term, term_least);
  EXPECT_EQ(sight.damage, "");
  EXPECT_EQ(sight.text, sight.term == 3 ? "new" : "old");
  EXPECT_OK(lease->Claim(sight.term + 1, "next"));
  EXPECT_OK(lease->Beat());
}

TEST(DirLeaseFaults, PowerMayGoAtAnyCall) {
  int disks = 0;
  for (int call = 1, fired = 1; fired > 0; call += kPointStride) {
    const auto files = UsedDisk();
    FaultyFiles dies(*files);
    dies.Plan({.kind = Fault::Kind::kCrash, .at_call = call});
    const auto lease = OpenIn(dies);
    const bool claimed = lease.ok() && (*lease)->Claim(3, "new").ok();
    if (claimed) (void)(*lease)->Beat();
    fired = dies.strikes();
    for (const auto& disk : files->PossibleDisks(10, call)) {
      ++disks;
      ExpectUsable(*disk, claimed ? 3 : 2, "call " + std::to_string(call));
    }
  }
  std::printf("%d disks\n", disks);
  EXPECT_GT(disks, 1000 / kPointStride);
}

TEST(DirLeaseFaults, AKilledProcessLeavesTheDiskAsItWas) {
  for (int call = 1, fired = 1; fired > 0; ++call) {
    const auto files = UsedDisk();
    FaultyFiles dies(*files);
    dies.Plan({.kind = Fault::Kind::kCrash, .at_call = call});
    const auto lease = OpenIn(dies);
    const bool claimed = lease.ok() && (*lease)->Claim(3, "new").ok();
    fired = dies.strikes();
    ExpectUsable(*files, claimed ? 3 : 2, "call " + std::to_string(call));
  }
}

// The call fails or not; a second try by the same process gets the term.
TEST(DirLeaseFaults, AnyCallMayFailOnce) {
  for (const int error : {ENOSPC, EIO, EACCES, ESTALE, EDQUOT}) {
    for (int call = 1, fired = 1; fired > 0; ++call) {
      SCOPED_TRACE(std::to_string(error) + " at call " + std::to_string(call));
      const auto files = UsedDisk();
      FaultyFiles fails(*files);
      ASSERT_OK_AND_ASSIGN(const auto lease, OpenIn(fails));
      fails.Plan({.at_call = call, .error_number = error, .written_bytes = 7});
      const auto claimed = lease->Claim(3, "new");
      fired = fails.strikes();
      if (fired == 0) break;   // the fault is still to come
      EXPECT_TRUE(claimed.ok() || claimed.error().code != Code::kStaleEpoch);
      ASSERT_OK(lease->Claim(3, "new"));
      EXPECT_OK(lease->Beat());
      ExpectUsable(*files, 3, "afterwards");
    }
  }
}

TEST(DirLeaseFaults, ABeatThatFailsIsNoneAndTheNextOneIs) {
  for (int call = 1, fired = 1; fired > 0; ++call) {
    SCOPED_TRACE(call);
    const auto files = UsedDisk();
    FaultyFiles fails(*files);
    ASSERT_OK_AND_ASSIGN(const auto lease, OpenIn(fails));
    ASSERT_OK(lease->Claim(3, "new"));
    fails.Plan({.at_call = call, .error_number = ENOSPC, .written_bytes = 7});
    const Status beaten = lease->Beat();
    fired = fails.strikes();
    if (fired == 0) break;
    EXPECT_FALSE(beaten.ok());
    EXPECT_OK(lease->Beat());
    EXPECT_OK(lease->Release());
    EXPECT_TRUE((*OpenIn(*files))->Look()->released);
  }
}

TEST(DirLeaseFaults, AFullDiskIsToldAndEndsNothing) {
  const auto files = UsedDisk();
  FaultyFiles full(*files);
  ASSERT_OK_AND_ASSIGN(const auto lease, OpenIn(full));
  ASSERT_OK(lease->Claim(3, "new"));
  full.Plan({.op = FileOp::kWriteAt, .error_number = ENOSPC, .lasting = true});
  const Status beaten = lease->Beat();
  ASSERT_FALSE(beaten.ok());
  EXPECT_EQ(beaten.error().code, Code::kNoSpace);
  // Who may be taken for dead meanwhile is told so, although its own beats still fail.
  ASSERT_OK_AND_ASSIGN(const auto next, OpenIn(*files));
  ASSERT_OK(next->Claim(4, "next"));
  EXPECT_EQ(lease->Beat().error().code, Code::kStaleEpoch);
}

}  // namespace
}  // namespace keel
