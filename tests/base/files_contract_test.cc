// What base/files.h promises, held against every implementation: the machine's disk, the one in
// memory, and both behind a FaultyFiles without faults.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/files.h"
#include "base/memory_files.h"
#include "base/posix_files.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

// An empty directory `root` on some disk.
struct Disk {
  virtual ~Disk() = default;
  virtual Files& files() = 0;
  virtual std::string root() = 0;
};

struct PosixDisk : Disk {
  Files& files() override { return posix; }
  std::string root() override { return dir.path(); }
  TempDir dir;
  PosixFiles posix;
};

struct InMemoryDisk : Disk {
  InMemoryDisk() { EXPECT_TRUE(memory.MakeDir("/disk").ok()); }
  Files& files() override { return memory; }
  std::string root() override { return "/disk"; }
  MemoryFiles memory;
};

template <class Below>
struct FaultlessDisk : Disk {
  Files& files() override { return faulty; }
  std::string root() override { return below.root(); }
  Below below;
  FaultyFiles faulty{below.files()};
};

struct DiskKind {
  const char* name;
  std::unique_ptr<Disk> (*make)();
};
void PrintTo(const DiskKind& kind, std::ostream* out) {
  *out << kind.name;
}

template <class D>
std::unique_ptr<Disk> Make() {
  return std::make_unique<D>();
}

class FilesContract : public testing::TestWithParam<DiskKind> {
 protected:
  std::string At(const std::string& name) { return JoinPath(disk_->root(), name); }

  std::unique_ptr<File> Open(const std::string& name, OpenFlags flags) {
    auto file = files_.Open(At(name), flags);
    if (!file.ok()) {
      ADD_FAILURE() << file.error().message;
      return nullptr;
    }
    return std::move(file).value();
  }

  void Put(const std::string& name, std::string_view content) {
    const auto file = Open(name, {.write = true, .create = true, .truncate = true});
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->WriteAt(0, BytesOf(content)).ok());
  }

  std::string Get(const std::string& name) {
    const Result<std::string> content = ReadWhole(files_, At(name), 1 << 20);
    return content.ok() ? *content : "error: " + content.error().message;
  }

  std::string Names() {
    const auto entries = files_.List(disk_->root());
    if (!entries.ok()) return "error: " + entries.error().message;
    std::string names;
    for (const DirEntry& entry : *entries) {
      names += entry.name + (entry.kind == FileKind::kDirectory ? "/ " : " ");
    }
    return names;
  }

  std::unique_ptr<Disk> disk_ = GetParam().make();
  Files& files_ = disk_->files();
};

INSTANTIATE_TEST_SUITE_P(
    All, FilesContract,
    testing::Values(DiskKind{"Posix", Make<PosixDisk>}, DiskKind{"Memory", Make<InMemoryDisk>},
                    DiskKind{"FaultlessPosix", Make<FaultlessDisk<PosixDisk>>},
                    DiskKind{"FaultlessMemory", Make<FaultlessDisk<InMemoryDisk>>}),
    [](const auto& info) { return std::string(info.param.name); });

// The error has this code and names the path.
template <class T>
testing::AssertionResult Fails(const Result<T>& result, Code code, const std::string& path) {
  if (result.ok()) return testing::AssertionFailure() << "it succeeded";
  const Error& error = result.error();
  if (error.code == code && error.message.find(path) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << CodeName(error.code) << ": " << error.message;
}

TEST_P(FilesContract, ReadsWhatWasWritten) {
  const auto file = Open("a", {.write = true, .create = true});
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->path(), At("a"));
  EXPECT_FALSE(file->direct());
  ASSERT_TRUE(file->WriteAt(0, BytesOf("hello")).ok());
  ASSERT_TRUE(file->WriteAt(3, BytesOf("p me")).ok());
  EXPECT_EQ(*file->Size(), 7u);
  std::array<std::byte, 4> middle{};
  EXPECT_EQ(*file->ReadAt(2, middle), 4u);
  EXPECT_EQ(std::to_integer<char>(middle[1]), 'p');
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(Get("a"), "help me");
}

TEST_P(FilesContract, ReadsLessOnlyAtTheEnd) {
  Put("a", "0123456789");
  const auto file = Open("a", {});
  std::array<std::byte, 8> some{};
  EXPECT_EQ(*file->ReadAt(6, some), 4u);
  EXPECT_EQ(*file->ReadAt(10, some), 0u);
  EXPECT_EQ(*file->ReadAt(1000, some), 0u);
  EXPECT_EQ(*file->ReadAt(0, {}), 0u);
}

TEST_P(FilesContract, AGapReadsAsZeros) {
  const auto file = Open("a", {.write = true, .create = true});
  ASSERT_TRUE(file->WriteAt(3, BytesOf("x")).ok());
  EXPECT_EQ(Get("a"), std::string("\0\0\0x", 4));
}

TEST_P(FilesContract, TruncateCutsAndGrows) {
  Put("a", "hello");
  const auto file = Open("a", {.write = true});
  ASSERT_TRUE(file->Truncate(2).ok());
  ASSERT_TRUE(file->Truncate(4).ok());
  EXPECT_EQ(Get("a"), std::string("he\0\0", 4));
}

TEST_P(FilesContract, AllocateLeavesTheSizeAlone) {
  const auto file = Open("a", {.write = true, .create = true});
  EXPECT_TRUE(file->Allocate(0).ok());
  const Result<bool> reserved = file->Allocate(100000);
  ASSERT_TRUE(reserved.ok()) << reserved.error().message;
  EXPECT_EQ(*file->Size(), 0u);
  ASSERT_TRUE(file->WriteAt(0, BytesOf("x")).ok());
  EXPECT_EQ(*file->Size(), 1u);
}

TEST_P(FilesContract, FlagsMeanWhatTheySay) {
  EXPECT_TRUE(Fails(files_.Open(At("a"), {}), Code::kNotFound, At("a")));
  EXPECT_TRUE(Fails(files_.Open(At("a"), {.write = true}), Code::kNotFound, At("a")));
  EXPECT_NE(Open("a", {.write = true, .create = true, .exclusive = true}), nullptr);
  EXPECT_TRUE(Fails(files_.Open(At("a"), {.write = true, .create = true, .exclusive = true}),
                    Code::kExists, At("a")));
  Put("a", "content");
  Open("a", {.write = true, .create = true});
  EXPECT_EQ(Get("a"), "content");
  Open("a", {.write = true, .truncate = true});
  EXPECT_EQ(Get("a"), "");
}

TEST_P(FilesContract, SenselessFlagsAreInvalid) {
  EXPECT_TRUE(Fails(files_.Open(At("a"), {.create = true}), Code::kInvalid, At("a")));
  EXPECT_TRUE(Fails(files_.Open(At("a"), {.truncate = true}), Code::kInvalid, At("a")));
  EXPECT_TRUE(
      Fails(files_.Open(At("a"), {.write = true, .exclusive = true}), Code::kInvalid, At("a")));
  EXPECT_EQ(Names(), "");
}

TEST_P(FilesContract, AFileOpenedForReadingRefusesChanges) {
  Put("a", "content");
  const auto file = Open("a", {});
  EXPECT_TRUE(Fails(file->WriteAt(0, BytesOf("x")), Code::kIo, At("a")));
  EXPECT_FALSE(file->Truncate(0).ok());
  EXPECT_FALSE(file->Allocate(10).ok());
  EXPECT_EQ(Get("a"), "content");
}

TEST_P(FilesContract, HintsChangeNothing) {
  const auto file =
      Open("a", {.write = true, .create = true, .sequential = true, .early_writeback = true});
  ASSERT_TRUE(file->WriteAt(0, BytesOf("content")).ok());
  EXPECT_EQ(Get("a"), "content");
}

TEST_P(FilesContract, ThreadsMayWriteTheirOwnRanges) {
  const auto file = Open("a", {.write = true, .create = true});
  constexpr size_t kPiece = 50000;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      const std::string piece(kPiece, static_cast<char>('a' + t));
      for (int part = 3; part >= 0; --part) {
        const uint64_t offset = static_cast<uint64_t>(part * 4 + t) * kPiece;
        EXPECT_TRUE(file->WriteAt(offset, BytesOf(piece)).ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string content = Get("a");
  ASSERT_EQ(content.size(), 16 * kPiece);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(content.substr(i * kPiece, kPiece),
              std::string(kPiece, static_cast<char>('a' + i % 4)));
  }
}

TEST_P(FilesContract, RenameReplacesWhatIsThere) {
  Put("new", "new content");
  Put("final", "old content");
  ASSERT_TRUE(files_.Rename(At("new"), At("final")).ok());
  EXPECT_EQ(Names(), "final ");
  EXPECT_EQ(Get("final"), "new content");
  ASSERT_TRUE(files_.Rename(At("final"), At("final")).ok());
  EXPECT_EQ(Get("final"), "new content");
}

TEST_P(FilesContract, RenameGoesBetweenDirectories) {
  ASSERT_TRUE(files_.MakeDir(At("d")).ok());
  Put("a", "content");
  ASSERT_TRUE(files_.Rename(At("a"), At("d/b")).ok());
  EXPECT_EQ(Names(), "d/ ");
  EXPECT_EQ(Get("d/b"), "content");
  ASSERT_TRUE(files_.Rename(At("d"), At("e")).ok());
  EXPECT_EQ(Get("e/b"), "content");
}

TEST_P(FilesContract, RenameRefusesWhatMakesNoSense) {
  ASSERT_TRUE(files_.MakeDir(At("d")).ok());
  ASSERT_TRUE(files_.MakeDir(At("full")).ok());
  Put("full/x", "");
  Put("a", "content");
  EXPECT_TRUE(Fails(files_.Rename(At("none"), At("b")), Code::kNotFound, At("b")));
  EXPECT_TRUE(Fails(files_.Rename(At("a"), At("none/b")), Code::kNotFound, At("none/b")));
  EXPECT_TRUE(Fails(files_.Rename(At("a"), At("d")), Code::kIo, At("d")));
  EXPECT_TRUE(Fails(files_.Rename(At("d"), At("a")), Code::kIo, At("a")));
  EXPECT_TRUE(Fails(files_.Rename(At("d"), At("full")), Code::kExists, At("full")));
  EXPECT_TRUE(Fails(files_.Rename(At("full"), At("full/y")), Code::kIo, At("full/y")));
  EXPECT_EQ(Names(), "a d/ full/ ");
}

TEST_P(FilesContract, AnOpenFileOutlivesItsName) {
  Put("a", "content");
  const auto file = Open("a", {.write = true});
  ASSERT_TRUE(files_.Remove(At("a")).ok());
  EXPECT_EQ(Names(), "");
  std::array<std::byte, 7> all{};
  EXPECT_EQ(*file->ReadAt(0, all), 7u);
  EXPECT_TRUE(file->WriteAt(0, BytesOf("C")).ok());
  EXPECT_TRUE(Fails(files_.Remove(At("a")), Code::kNotFound, At("a")));
}

TEST_P(FilesContract, DirectoriesAreMadeListedAndRemoved) {
  ASSERT_TRUE(files_.MakeDir(At("d")).ok());
  EXPECT_TRUE(Fails(files_.MakeDir(At("d")), Code::kExists, At("d")));
  EXPECT_TRUE(Fails(files_.MakeDir(At("no/d")), Code::kNotFound, At("no/d")));
  Put("d/z", "1");
  Put("d/A", "2");
  ASSERT_TRUE(files_.MakeDir(At("d/m")).ok());
  const auto entries = files_.List(At("d"));
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(*entries,
            (std::vector<DirEntry>{
                {"A", FileKind::kFile}, {"m", FileKind::kDirectory}, {"z", FileKind::kFile}}));
  EXPECT_TRUE(Fails(files_.RemoveDir(At("d")), Code::kExists, At("d")));
  EXPECT_TRUE(Fails(files_.Remove(At("d/m")), Code::kIo, At("d/m")));
  EXPECT_TRUE(Fails(files_.RemoveDir(At("d/z")), Code::kIo, At("d/z")));
  EXPECT_TRUE(files_.RemoveDir(At("d/m")).ok());
  EXPECT_TRUE(Fails(files_.List(At("d/m")), Code::kNotFound, At("d/m")));
  EXPECT_TRUE(Fails(files_.List(At("d/z")), Code::kIo, At("d/z")));
  EXPECT_TRUE(Fails(files_.Open(At("d"), {}), Code::kIo, At("d")));
  EXPECT_TRUE(Fails(files_.Open(At("d/z/y"), {}), Code::kIo, At("d/z/y")));
}

TEST_P(FilesContract, StatTellsKindAndSize) {
  Put("a", "content");
  EXPECT_EQ(files_.Stat(At("a"))->kind, FileKind::kFile);
  EXPECT_EQ(files_.Stat(At("a"))->bytes, 7u);
  EXPECT_EQ(files_.Stat(disk_->root())->kind, FileKind::kDirectory);
  EXPECT_EQ(files_.Stat(disk_->root())->bytes, 0u);
  EXPECT_TRUE(Fails(files_.Stat(At("b")), Code::kNotFound, At("b")));
}

TEST_P(FilesContract, OnlyADirectoryIsSyncedAsOne) {
  Put("a", "content");
  EXPECT_TRUE(files_.SyncDir(disk_->root()).ok());
  EXPECT_TRUE(Fails(files_.SyncDir(At("none")), Code::kNotFound, At("none")));
  EXPECT_TRUE(Fails(files_.SyncDir(At("a")), Code::kIo, At("a")));
}

TEST_P(FilesContract, FreeBytesAreTold) {
  const Result<uint64_t> free = files_.FreeBytes(disk_->root());
  ASSERT_TRUE(free.ok());
  EXPECT_GT(*free, 0u);
  EXPECT_TRUE(Fails(files_.FreeBytes(At("none")), Code::kNotFound, At("none")));
}

TEST_P(FilesContract, ALockHasOneHolderAndNamesIt) {
  auto held = files_.Lock(At("lock"), "job seven");
  ASSERT_TRUE(held.ok()) << held.error().message;
  const auto second = files_.Lock(At("lock"), "job eight");
  EXPECT_TRUE(Fails(second, Code::kExists, At("lock")));
  EXPECT_NE(second.error().message.find("job seven"), std::string::npos);
  EXPECT_TRUE(files_.Lock(At("other"), "job eight").ok());
  held.value().reset();
  EXPECT_TRUE(files_.Lock(At("lock"), "job eight").ok());
  EXPECT_EQ(Names(), "lock other ");
  EXPECT_TRUE(Fails(files_.Lock(At("none/lock"), ""), Code::kNotFound, At("none/lock")));
}

TEST_P(FilesContract, ALockRefusedLeavesItsHolderAlone) {
  const auto held = files_.Lock(At("lock"), "job seven");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Fails(files_.Lock(At("lock"), "job eight"), Code::kExists, "job seven"));
  }
}

TEST_P(FilesContract, ALookAtALockNeitherTakesNorMakesIt) {
  EXPECT_FALSE(*files_.IsLocked(At("lock")));
  EXPECT_EQ(Names(), "");
  auto held = files_.Lock(At("lock"), "job seven");
  EXPECT_TRUE(*files_.IsLocked(At("lock")));
  EXPECT_TRUE(*files_.IsLocked(At("lock")));
  held.value().reset();
  EXPECT_FALSE(*files_.IsLocked(At("lock")));
  EXPECT_TRUE(files_.Lock(At("lock"), "job eight").ok());
}

TEST_P(FilesContract, ALockWhoseFileWasRemovedIsNotHeldAtItsPath) {
  const auto first = files_.Lock(At("lock"), "job seven");
  EXPECT_TRUE(files_.Remove(At("lock")).ok());
  EXPECT_FALSE(*files_.IsLocked(At("lock")));
  const auto second = files_.Lock(At("lock"), "job eight");
  EXPECT_TRUE(second.ok());
  EXPECT_TRUE(Fails(files_.Lock(At("lock"), "job nine"), Code::kExists, "job eight"));
}

// Each holder removes the file before it lets go, as a save does with its own. Without a look
// whether the locked file still has its name, two hold the lock at a time.
TEST_P(FilesContract, HoldersThatRemoveTheFileStillExcludeEachOther) {
  std::atomic<int> holders{0}, taken{0};
  std::atomic<bool> together{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (taken < Rounds(4000, 800) && !together) {
        const auto lock = files_.Lock(At("lock"), "one of four");
        if (!lock.ok()) continue;
        if (++holders > 1) together = true;
        --holders;
        ++taken;
        // Files in memory remember, and go through, what no one has synced.
        if (taken % 100 == 0) {
          EXPECT_TRUE(files_.SyncDir(disk_->root()).ok());
        }
        EXPECT_TRUE(files_.Remove(At("lock")).ok());  // what comes after it is not under the lock
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(together);
}

// Memory at an address that direct pieces may have.
struct alignas(kDirectAlignment) DirectPiece {
  std::array<std::byte, 2 * kDirectAlignment> bytes{};
};

TEST_P(FilesContract, DirectFilesTakeAlignedPiecesAndLoseTheirPadding) {
  const auto file = Open("a", {.write = true, .create = true, .exclusive = true, .direct = true});
  ASSERT_NE(file, nullptr);
  const auto piece = std::make_unique<DirectPiece>();
  piece->bytes.fill(std::byte{'x'});
  ASSERT_TRUE(file->WriteAt(0, piece->bytes).ok());
  ASSERT_TRUE(file->WriteAt(2 * kDirectAlignment, piece->bytes).ok());
  ASSERT_TRUE(file->Truncate(kDirectAlignment + 100).ok());
  ASSERT_TRUE(file->Sync().ok());
  piece->bytes.fill(std::byte{0});
  EXPECT_EQ(*file->ReadAt(0, piece->bytes), kDirectAlignment + 100);
  EXPECT_EQ(Get("a"), std::string(kDirectAlignment + 100, 'x'));
}

TEST_P(FilesContract, MisalignedDirectPiecesAreInvalid) {
  const auto file = Open("a", {.write = true, .create = true, .direct = true});
  const Code refusal = Code::kInvalid;
  const auto piece = std::make_unique<DirectPiece>();
  const std::span<std::byte> all(piece->bytes);
  const auto misaligned = all.subspan(512, kDirectAlignment);
  const auto odd_size = all.first(kDirectAlignment - 1);
  const auto good = all.first(kDirectAlignment);
  if (!file->direct()) {  // a file system without it takes any piece
    EXPECT_TRUE(file->WriteAt(1, misaligned).ok());
    return;
  }
  EXPECT_TRUE(Fails(file->WriteAt(0, misaligned), refusal, At("a")));
  EXPECT_TRUE(Fails(file->WriteAt(0, odd_size), refusal, At("a")));
  EXPECT_TRUE(Fails(file->WriteAt(512, good), refusal, At("a")));
  EXPECT_TRUE(Fails(file->ReadAt(512, good), refusal, At("a")));
  EXPECT_EQ(*file->Size(), 0u);
}

}  // namespace
}  // namespace keel
