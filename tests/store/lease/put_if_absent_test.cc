// One put of a name succeeds, whole, on real disks and on those that lose power or fail.
#include "store/lease/put_if_absent.h"

#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

TEST(PutIfAbsent, TheFirstOneStaysUntilItIsRemoved) {
  TempDir dir;
  PosixFiles files;
  EXPECT_OK(PutIfAbsent(files, {dir.path(), "x", "a"}, "first"));
  EXPECT_EQ(PutIfAbsent(files, {dir.path(), "x", "b"}, "second").error().code, Code::kExists);
  EXPECT_EQ(*ReadPut(files, dir.path(), "x", 100), "first");
  EXPECT_EQ(ReadPut(files, dir.path(), "x", 4).error().code, Code::kInvalid);
  EXPECT_OK(RemovePut(files, {dir.path(), "x", "b"}));
  EXPECT_EQ(ReadPut(files, dir.path(), "x", 100).error().code, Code::kNotFound);
  EXPECT_TRUE(files.List(dir.path())->empty());
}

TEST(PutIfAbsent, WhatItsWriterLeftIsNoHindrance) {
  MemoryFiles files;
  ASSERT_OK(files.MakeDir("/d"));
  FaultyFiles dies(files);
  dies.Plan({.kind = Fault::Kind::kCrash, .op = FileOp::kRename});
  EXPECT_FALSE(PutIfAbsent(dies, {"/d", "x", "a"}, "first").ok());
  const auto entries = files.List("/d");
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ(NameOnTheWay((*entries)[0].name), "x");
  EXPECT_OK(PutIfAbsent(files, {"/d", "x", "a"}, "again"));
  EXPECT_EQ(files.List("/d")->size(), 1u);
}

TEST(PutIfAbsent, LeavesNothingBesideWhereItFails) {
  for (int call = 1;; ++call) {
    MemoryFiles files;
    ASSERT_OK(files.MakeDir("/d"));
    FaultyFiles fails(files);
    fails.Plan({.at_call = call, .error_number = ENOSPC});
    const Status put = PutIfAbsent(fails, {"/d", "x", "a"}, "bytes");
    if (fails.strikes() == 0) break;
    ASSERT_FALSE(put.ok());
    EXPECT_EQ(put.error().code, Code::kNoSpace);
    const auto entries = files.List("/d");
    for (const DirEntry& entry : *entries) EXPECT_EQ(entry.name, "x") << call;
  }
}

// Whenever the power goes, there is nothing, or all of it; and all of it once Ok came.
TEST(PutIfAbsent, IsWholeOrNotThereAfterALossOfPower) {
  int disks = 0;
  for (int call = 1, fired = 1; fired > 0; ++call) {
    MemoryFiles files;
    ASSERT_OK(files.MakeDir("/d"));
    ASSERT_OK(files.SyncDir("/"));
    FaultyFiles dies(files);
    dies.Plan({.kind = Fault::Kind::kCrash, .at_call = call});
    const bool ok = PutIfAbsent(dies, {"/d", "x", "a"}, "all of it").ok();
    fired = dies.strikes();
    for (const auto& disk : files.PossibleDisks(20, call)) {
      ++disks;
      const auto found = ReadPut(*disk, "/d", "x", 100);
      EXPECT_TRUE(found.ok() ? *found == "all of it" : !ok) << "call " << call;
      // What another one puts then succeeds, or was not needed.
      EXPECT_EQ(PutIfAbsent(*disk, {"/d", "x", "b"}, "another").ok(), !found.ok());
    }
  }
  EXPECT_GT(disks, 100);
}

// At no call of the removal could another writer put the same name over what is half removed.
TEST(PutIfAbsent, AHalfRemovedOneIsGoneFromItsName) {
  for (int call = 1, fired = 1; fired > 0; ++call) {
    MemoryFiles files;
    ASSERT_OK(files.MakeDir("/d"));
    ASSERT_OK(PutIfAbsent(files, {"/d", "x", "a"}, "old"));
    FaultyFiles dies(files);
    dies.Plan({.kind = Fault::Kind::kCrash, .at_call = call});
    (void)RemovePut(dies, {"/d", "x", "a"});
    fired = dies.strikes();
    const bool is_there = ReadPut(files, "/d", "x", 100).ok();
    EXPECT_EQ(*Exists(files, "/d/x"), is_there) << "an empty directory, at call " << call;
  }
}

TEST(NameOnTheWay, IsThatBeforeItsWriter) {
  EXPECT_EQ(NameOnTheWay("putting-term-4-0123"), "term-4");
  EXPECT_EQ(NameOnTheWay("removing-putting-term-4-0123-4567"), "putting-term-4-0123");
  for (const char* name : {"term-4", "putting-", "putting", "putting-x", ""}) {
    EXPECT_EQ(NameOnTheWay(name), std::nullopt) << name;
  }
}

TEST(ProbePutIfAbsent, LeavesNothing) {
  TempDir dir;
  PosixFiles files;
  Random random(1);
  EXPECT_OK(ProbePutIfAbsent(files, dir.path(), random));
  EXPECT_TRUE(files.List(dir.path())->empty());
}

}  // namespace
}  // namespace keel
