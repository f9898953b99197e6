// What the disk in memory promises beyond the contract: its size, and what it may lose.
#include "base/memory_files.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file_helpers.h"

namespace keel {
namespace {

// What a possible disk holds at `path`; "-" for nothing.
std::string Seen(Files& files, const std::string& path) {
  const Result<std::string> content = ReadWhole(files, path, 1 << 20);
  return content.ok() ? *content : "-";
}

// What the possible disks hold at `path`, each outcome once.
std::set<std::string> Outcomes(const MemoryFiles& files, const std::string& path) {
  std::set<std::string> outcomes;
  for (const auto& disk : files.PossibleDisks(200, 1)) outcomes.insert(Seen(*disk, path));
  return outcomes;
}

std::unique_ptr<File> Create(MemoryFiles& files, const std::string& path) {
  return files.Open(path, {.write = true, .create = true}).value();
}

using Set = std::set<std::string>;

TEST(MemoryFiles, AFullDiskTakesTheFrontPartOfAWrite) {
  MemoryFiles files({.capacity_bytes = 10});
  const auto file = Create(files, "/a");
  EXPECT_EQ(*files.FreeBytes("/"), 10u);
  const Status status = file->WriteAt(0, BytesOf("0123456789ab"));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kNoSpace);
  EXPECT_EQ(Seen(files, "/a"), "0123456789");
  EXPECT_EQ(*files.FreeBytes("/"), 0u);
  EXPECT_TRUE(file->WriteAt(5, BytesOf("xyz")).ok()) << "what is there may be written over";
  ASSERT_TRUE(files.Remove("/a").ok());
  EXPECT_EQ(*files.FreeBytes("/"), 10u);
}

TEST(MemoryFiles, ReservedRoomIsNobodyElses) {
  MemoryFiles files({.capacity_bytes = 10});
  const auto first = Create(files, "/a");
  const auto second = Create(files, "/b");
  EXPECT_TRUE(*first->Allocate(8));
  EXPECT_EQ(second->Allocate(3).error().code, Code::kNoSpace);
  EXPECT_EQ(second->WriteAt(0, BytesOf("123")).error().code, Code::kNoSpace);
  EXPECT_TRUE(first->WriteAt(0, BytesOf("12345678")).ok());
  EXPECT_EQ(*files.FreeBytes("/"), 0u);
  ASSERT_TRUE(first->Truncate(1).ok());
  EXPECT_EQ(*files.FreeBytes("/"), 7u);
}

TEST(MemoryFiles, MayRefuseDirect) {
  MemoryFiles files({.grants_direct = false});
  const auto file = files.Open("/a", {.write = true, .create = true, .direct = true});
  EXPECT_FALSE((*file)->direct());
}

TEST(PossibleDisks, ASyncedDiskHasOnlyOne) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/a", "content").ok());
  const auto disks = files.PossibleDisks(100, 1);
  ASSERT_EQ(disks.size(), 1u);
  EXPECT_EQ(Seen(*disks[0], "/a"), "content");
}

TEST(PossibleDisks, AnUnsyncedNameIsThereOrNot) {
  MemoryFiles files;
  const auto file = Create(files, "/a");
  ASSERT_TRUE(file->WriteAt(0, BytesOf("ab")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"-", "ab"}));
  ASSERT_TRUE(files.SyncDir("/").ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"ab"}));
}

TEST(PossibleDisks, AnUnsyncedWriteIsThereOrCutOrNot) {
  MemoryFiles files;
  const auto file = Create(files, "/a");
  ASSERT_TRUE(files.SyncDir("/").ok());
  ASSERT_TRUE(file->WriteAt(0, BytesOf("abc")).ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"", "a", "ab", "abc", std::string(3, '\0')}));
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"abc"}));
  ASSERT_TRUE(file->WriteAt(1, BytesOf("X")).ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"abc", "aXc"}));
}

TEST(PossibleDisks, WritesArriveInAnyOrder) {
  MemoryFiles files;
  const auto file = Create(files, "/a");
  ASSERT_TRUE(files.SyncDir("/").ok());
  ASSERT_TRUE(file->WriteAt(0, BytesOf("1")).ok());
  ASSERT_TRUE(file->WriteAt(1, BytesOf("2")).ok());
  EXPECT_EQ(Outcomes(files, "/a").count(std::string("\0002", 2)), 1u) << "the later one alone";
}

TEST(PossibleDisks, ALongWriteMayMissPagesInTheMiddle) {
  MemoryFiles files;
  const auto file = Create(files, "/a");
  ASSERT_TRUE(files.SyncDir("/").ok());
  ASSERT_TRUE(file->WriteAt(0, BytesOf(std::string(3 * 4096, 'x'))).ok());
  const std::string holed =
      std::string(4096, 'x') + std::string(4096, '\0') + std::string(4096, 'x');
  EXPECT_EQ(Outcomes(files, "/a").count(holed), 1u);
}

TEST(PossibleDisks, AnUnsyncedTruncateMayNotHaveHappened) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/a", "content").ok());
  ASSERT_TRUE(Create(files, "/a")->Truncate(3).ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"content", "con"}));
}

TEST(PossibleDisks, ARenameMayBeKeptWhileTheContentIsLost) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/final", "old").ok());
  ASSERT_TRUE(Create(files, "/tmp")->WriteAt(0, BytesOf("new")).ok());
  ASSERT_TRUE(files.Rename("/tmp", "/final").ok());
  const Set outcomes = Outcomes(files, "/final");
  EXPECT_EQ(outcomes.count("old"), 1u);
  EXPECT_EQ(outcomes.count(""), 1u) << "the empty file";
  EXPECT_EQ(outcomes.count("new"), 1u);
  EXPECT_EQ(outcomes.count("-"), 0u) << "a rename never leaves nothing";
}

TEST(PossibleDisks, ARemovedFileMayComeBack) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/a", "content").ok());
  ASSERT_TRUE(files.Remove("/a").ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"-", "content"}));
  ASSERT_TRUE(files.SyncDir("/").ok());
  EXPECT_EQ(Outcomes(files, "/a"), (Set{"-"}));
}

TEST(PossibleDisks, ChangesOfOneNameKeepTheirOrder) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/1", "first").ok());
  ASSERT_TRUE(files.Rename("/1", "/2").ok());
  ASSERT_TRUE(files.Rename("/2", "/3").ok());
  for (const auto& disk : files.PossibleDisks(200, 1)) {
    EXPECT_EQ(disk->List("/")->size(), 1u) << "one file has one name";
  }
}

TEST(PossibleDisks, AnUnsyncedDirectoryTakesSyncedFilesWithIt) {
  MemoryFiles files;
  ASSERT_TRUE(files.MakeDir("/d").ok());
  ASSERT_TRUE(WriteDurably(files, "/d/a", "content").ok());
  EXPECT_EQ(Outcomes(files, "/d/a"), (Set{"-", "content"}));
  ASSERT_TRUE(files.SyncDir("/").ok());
  EXPECT_EQ(Outcomes(files, "/d/a"), (Set{"content"}));
}

TEST(PossibleDisks, ARenameBetweenDirectoriesNeverLosesTheFile) {
  MemoryFiles files;
  ASSERT_TRUE(MakeDirs(files, "/x").ok());
  ASSERT_TRUE(MakeDirs(files, "/y").ok());
  ASSERT_TRUE(WriteDurably(files, "/x/a", "content").ok());
  ASSERT_TRUE(files.Rename("/x/a", "/y/a").ok());
  for (const auto& disk : files.PossibleDisks(200, 1)) {
    EXPECT_TRUE(Seen(*disk, "/x/a") == "content" || Seen(*disk, "/y/a") == "content");
  }
  EXPECT_EQ(Outcomes(files, "/y/a"), (Set{"-", "content"}));
  ASSERT_TRUE(files.SyncDir("/y").ok());
  EXPECT_EQ(Outcomes(files, "/y/a"), (Set{"content"}));
  EXPECT_EQ(Outcomes(files, "/x/a"), (Set{"-", "content"}));
  ASSERT_TRUE(files.SyncDir("/x").ok());
  EXPECT_EQ(Outcomes(files, "/x/a"), (Set{"-"}));
}

TEST(PossibleDisks, AFileThatKeptBothItsNamesIsOneFile) {
  MemoryFiles files;
  ASSERT_TRUE(MakeDirs(files, "/x").ok());
  ASSERT_TRUE(MakeDirs(files, "/y").ok());
  ASSERT_TRUE(WriteDurably(files, "/x/a", "content").ok());
  ASSERT_TRUE(files.Rename("/x/a", "/y/a").ok());
  int both = 0;
  for (const auto& disk : files.PossibleDisks(20, 1)) {
    if (Seen(*disk, "/x/a") == "-" || Seen(*disk, "/y/a") == "-") continue;
    ++both;
    ASSERT_TRUE(Create(*disk, "/x/a")->WriteAt(0, BytesOf("C")).ok());
    EXPECT_EQ(Seen(*disk, "/y/a"), "Content");
  }
  EXPECT_GT(both, 0);
}

TEST(PossibleDisks, SyncingTheOldDirectoryOfARenameMakesBothNamesCertain) {
  MemoryFiles files;
  ASSERT_TRUE(MakeDirs(files, "/x").ok());
  ASSERT_TRUE(MakeDirs(files, "/y").ok());
  ASSERT_TRUE(WriteDurably(files, "/x/a", "content").ok());
  ASSERT_TRUE(files.Rename("/x/a", "/y/a").ok());
  ASSERT_TRUE(files.SyncDir("/x").ok());
  EXPECT_EQ(files.PossibleDisks(10, 1).size(), 1u);
  EXPECT_EQ(Outcomes(files, "/y/a"), (Set{"content"}));
}

TEST(PossibleDisks, TheSameSeedGivesTheSameDisks) {
  MemoryFiles files;
  const auto file = Create(files, "/a");
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(file->WriteAt(i * 10, BytesOf("0123456789")).ok());
  }
  const auto all = [&](uint64_t seed) {
    std::vector<std::string> seen;
    for (const auto& disk : files.PossibleDisks(50, seed)) seen.push_back(Seen(*disk, "/a"));
    return seen;
  };
  EXPECT_EQ(all(7), all(7));
  EXPECT_NE(all(7), all(8));
  EXPECT_EQ(all(7).size(), 5u + 64u + 50u);
}

TEST(PossibleDisks, AreCopiesThatLiveOnTheirOwn) {
  MemoryFiles files;
  ASSERT_TRUE(WriteDurably(files, "/a", "content").ok());
  const auto lock = files.Lock("/lock", "the dead");
  const auto disks = files.PossibleDisks(0, 1);
  ASSERT_TRUE(WriteDurably(*disks[0], "/a", "other").ok());
  EXPECT_EQ(Seen(files, "/a"), "content");
  EXPECT_TRUE(disks[0]->Lock("/lock", "the next").ok()) << "a lock does not survive its holder";
}

}  // namespace
}  // namespace keel
