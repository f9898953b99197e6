// The helpers over Files: whole files, chains of directories, paths.
#include "base/file_helpers.h"

#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "base/posix_files.h"

namespace keel {
namespace {

TEST(Paths, ParentAndJoin) {
  EXPECT_EQ(ParentDir("a/b/c"), "a/b");
  EXPECT_EQ(ParentDir("a/b/"), "a");
  EXPECT_EQ(ParentDir("a//b"), "a");
  EXPECT_EQ(ParentDir("c"), ".");
  EXPECT_EQ(ParentDir("/c"), "/");
  EXPECT_EQ(ParentDir("//c"), "/");
  EXPECT_EQ(ParentDir("/"), "/");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST(ReadWhole, RefusesMoreThanTheLimit) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/a", "12345").ok());
  EXPECT_EQ(*ReadWhole(files, "/a", 5), "12345");
  const Result<std::string> refused = ReadWhole(files, "/a", 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
}

TEST(ReadWhole, ReadsFilesThatDoNotTellTheirSize) {
  PosixFiles files;
  const Result<std::string> maps = ReadWhole(files, "/proc/self/maps", 1 << 24);
  ASSERT_TRUE(maps.ok()) << maps.error().message;
  EXPECT_NE(maps->find("[stack]"), std::string::npos);
  EXPECT_FALSE(ReadWhole(files, "/proc/self/maps", 100).ok());
}

TEST(WriteDurably, ReplacesAndLeavesNothingBeside) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/a", "a long old content").ok());
  ASSERT_TRUE(WriteDurably(files, "/a.tmp", "a leftover").ok());
  ASSERT_TRUE(WriteDurably(files, "/a", "new").ok());
  EXPECT_EQ(*ReadWhole(files, "/a", 100), "new");
  EXPECT_EQ(files.List("/")->size(), 1u);
}

// The calls it makes are the order that makes it durable.
TEST(WriteDurably, SyncsContentBeforeAndNamesAfterTheRename) {
  MemoryFiles memory;
  FaultyFiles files(memory);
  ASSERT_TRUE(WriteDurably(files, "/a", "content").ok());
  std::string order;
  for (const FileCall& call : files.calls()) {
    order += std::string(FileOpName(call.op)) + " " + call.path + ", ";
  }
  EXPECT_EQ(order, "open /a.tmp, write /a.tmp, sync /a.tmp, rename /a, sync directory /, ");
}

TEST(WriteDurably, AFailureKeepsTheOldContentAndRemovesTheTemporaryFile) {
  int n = 1;
  for (;; ++n) {
    MemoryFiles memory;
    ASSERT_TRUE(WriteDurably(memory, "/a", "old").ok());
    FaultyFiles files(memory);
    files.Plan({.at_call = n, .error_number = ENOSPC, .written_bytes = 2});
    const Status status = WriteDurably(files, "/a", "new");
    if (files.strikes() == 0) break;
    ASSERT_FALSE(status.ok()) << "call " << n;
    EXPECT_EQ(status.error().code, Code::kNoSpace);
    EXPECT_NE(status.error().message.find("writing /a"), std::string::npos);
    const bool renamed = n == 5;
    EXPECT_EQ(*ReadWhole(memory, "/a", 100), renamed ? "new" : "old") << "call " << n;
    EXPECT_EQ(memory.List("/")->size(), 1u) << "call " << n;
  }
  EXPECT_EQ(n, 6);
}

TEST(Exists, TellsAbsenceFromFailure) {
  MemoryFiles memory;
  FaultyFiles files(memory);
  EXPECT_FALSE(*Exists(files, "/a"));
  ASSERT_TRUE(WriteDurably(files, "/a", "").ok());
  EXPECT_TRUE(*Exists(files, "/a"));
  files.Plan({.op = FileOp::kStat});
  EXPECT_FALSE(Exists(files, "/a").ok());
}

TEST(MakeDirs, MakesWhatIsMissingAndIsContentWithWhatIsThere) {
  MemoryFiles files;
  ASSERT_TRUE(MakeDirs(files, "/a/b/c").ok());
  ASSERT_TRUE(MakeDirs(files, "/a/b/c/").ok());
  EXPECT_EQ(files.Stat("/a/b/c")->kind, FileKind::kDirectory);
  ASSERT_TRUE(MakeDirs(files, "relative").ok());
  EXPECT_TRUE(MakeDirs(files, "/").ok());
  ASSERT_TRUE(WriteDurably(files, "/a/file", "").ok());
  const Status refused = MakeDirs(files, "/a/file");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kExists);
}

// As where /home may be passed through and not read, or its file system syncs no directories.
TEST(MakeDirs, NeedsNothingOfTheParentOfWhatIsThere) {
  MemoryFiles disk;
  ASSERT_TRUE(disk.MakeDir("/home").ok());
  ASSERT_TRUE(disk.MakeDir("/home/alice").ok());
  FaultyFiles files(disk);
  files.Plan({.op = FileOp::kSyncDir});
  EXPECT_TRUE(MakeDirs(files, "/home/alice").ok());
  files.Plan({.op = FileOp::kSyncDir});
  EXPECT_FALSE(MakeDirs(files, "/home/alice/new").ok()) << "a power loss could take it away";
}

TEST(MakeDirs, IsDurableWhenItReturns) {
  MemoryFiles files;
  ASSERT_TRUE(files.MakeDir("/early").ok());  // by someone who died before the sync
  ASSERT_TRUE(MakeDirs(files, "/a/b/c").ok());
  ASSERT_TRUE(MakeDirs(files, "/early").ok());
  for (const auto& disk : files.PossibleDisks(10, 1)) {
    EXPECT_TRUE(*Exists(*disk, "/a/b/c"));
    EXPECT_TRUE(*Exists(*disk, "/early"));
  }
}

}  // namespace
}  // namespace keel
