// Each planned fault strikes where it was planned, once, and does what its kind says.
#include "base/faulty_files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/posix_files.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

class FaultyFilesTest : public testing::Test {
 protected:
  FaultyFilesTest() {
    EXPECT_TRUE(WriteDurably(memory_, "/a", "content").ok());
    EXPECT_TRUE(WriteDurably(memory_, "/b", "content").ok());
  }

  MemoryFiles memory_;
  FaultyFiles files_{memory_};
};

TEST_F(FaultyFilesTest, StrikesTheNthCallOnce) {
  files_.Plan({.at_call = 3});
  EXPECT_TRUE(files_.Stat("/a").ok());
  EXPECT_TRUE(files_.List("/").ok());
  EXPECT_EQ(files_.strikes(), 0);
  const auto third = files_.Stat("/b");
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, Code::kIo);
  EXPECT_EQ(third.error().message, "stat /b: Input/output error");
  EXPECT_TRUE(files_.Stat("/b").ok());
  EXPECT_EQ(files_.strikes(), 1);
}

TEST_F(FaultyFilesTest, CountsOnlyTheNamedOperationAndPath) {
  files_.Plan({.at_call = 2, .op = FileOp::kStat, .path_part = "/b", .error_number = ENOENT});
  EXPECT_TRUE(files_.Stat("/b").ok());
  EXPECT_TRUE(files_.Stat("/a").ok());
  EXPECT_TRUE(files_.FreeBytes("/b").ok());
  EXPECT_EQ(files_.Stat("/b").error().code, Code::kNotFound);
}

TEST_F(FaultyFilesTest, CountsFromWhenItWasPlanned) {
  EXPECT_TRUE(files_.Stat("/a").ok());
  files_.Plan({});
  EXPECT_FALSE(files_.Stat("/a").ok());
}

TEST_F(FaultyFilesTest, ALastingFaultStays) {
  files_.Plan({.at_call = 2, .op = FileOp::kOpen, .error_number = EROFS, .lasting = true});
  EXPECT_TRUE(files_.Open("/a", {}).ok());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(files_.Open("/a", {}).ok());
  EXPECT_TRUE(files_.Stat("/a").ok());
}

TEST_F(FaultyFilesTest, EveryErrorHasItsCode) {
  const std::vector<std::pair<int, Code>> errors{{ENOSPC, Code::kNoSpace},
                                                 {EDQUOT, Code::kNoSpace},
                                                 {EIO, Code::kIo},
                                                 {EROFS, Code::kIo},
                                                 {ENOENT, Code::kNotFound}};
  for (const auto& [number, code] : errors) {
    files_.Plan({.error_number = number});
    EXPECT_EQ(files_.Stat("/a").error().code, code) << number;
  }
}

TEST_F(FaultyFilesTest, AShortWriteLeavesItsFrontPart) {
  const auto file = files_.Open("/a", {.write = true}).value();
  files_.Plan({.op = FileOp::kWriteAt, .error_number = ENOSPC, .written_bytes = 3});
  EXPECT_EQ(file->WriteAt(0, BytesOf("CONTENT")).error().code, Code::kNoSpace);
  EXPECT_EQ(*ReadWhole(memory_, "/a", 100), "CONtent");
  EXPECT_TRUE(file->WriteAt(0, BytesOf("C")).ok());
}

// One call of each operation, on a disk that has /a and /b.
std::vector<std::function<bool()>> AllOperations(Files& files, File& file) {
  static std::byte bytes[4];
  return {
      [&] { return files.Open("/a", {}).ok(); },  [&] { return files.Rename("/b", "/c").ok(); },
      [&] { return files.Remove("/b").ok(); },    [&] { return files.RemoveDir("/d").ok(); },
      [&] { return files.MakeDir("/e").ok(); },   [&] { return files.List("/").ok(); },
      [&] { return files.Stat("/a").ok(); },      [&] { return files.SyncDir("/").ok(); },
      [&] { return files.FreeBytes("/").ok(); },  [&] { return files.Lock("/lock", "me").ok(); },
      [&] { return file.ReadAt(0, bytes).ok(); }, [&] { return file.WriteAt(0, bytes).ok(); },
      [&] { return file.Truncate(1).ok(); },      [&] { return file.Allocate(1).ok(); },
      [&] { return file.Sync().ok(); },           [&] { return file.Size().ok(); },
      [&] { return files.IsLocked("/lock").ok(); },
      [&] { return files.Resolve("/a").ok(); },
  };
}

TEST_F(FaultyFilesTest, AfterACrashNothingReachesTheDisk) {
  const auto file = files_.Open("/a", {.write = true}).value();
  files_.Plan({.kind = Fault::Kind::kCrash, .op = FileOp::kSize});
  EXPECT_FALSE(file->Size().ok());
  EXPECT_TRUE(files_.crashed());
  for (const auto& operation : AllOperations(files_, *file)) EXPECT_FALSE(operation());
  EXPECT_EQ(files_.strikes(), 1) << "what fails later is the same crash";
  EXPECT_EQ(*ReadWhole(memory_, "/a", 100), "content");
  EXPECT_EQ(memory_.List("/")->size(), 2u);
}

TEST_F(FaultyFilesTest, EveryOperationCanBeStruckAndIsRecordedByName) {
  const auto file = files_.Open("/a", {.write = true}).value();
  const auto operations = AllOperations(files_, *file);
  for (size_t i = 0; i < operations.size(); ++i) {
    files_.Plan({});
    EXPECT_FALSE(operations[i]()) << i;
  }
  std::string names;
  for (const FileCall& call : files_.calls()) names += std::string(FileOpName(call.op)) + ", ";
  EXPECT_EQ(names,
            "open, open, rename, remove, remove directory, make directory, list, stat, "
            "sync directory, ask for the free space at, lock, read, write, truncate, allocate, "
            "sync, size, look at lock, resolve, ");
  EXPECT_EQ(files_.calls()[2].path, "/c") << "a rename goes by its new name";
}

TEST_F(FaultyFilesTest, ACrashMayTearAWrite) {
  const auto file = files_.Open("/a", {.write = true}).value();
  files_.Plan({.kind = Fault::Kind::kCrash, .op = FileOp::kWriteAt, .written_bytes = 2});
  EXPECT_FALSE(file->WriteAt(0, BytesOf("CONTENT")).ok());
  EXPECT_EQ(*ReadWhole(memory_, "/a", 100), "COntent");
}

TEST_F(FaultyFilesTest, AnActionIsCalledBeforeTheCallGoesOn) {
  std::string seen;
  files_.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kRemove, .act = [&] {
                 seen = *ReadWhole(files_, "/a", 100);  // it may use the files itself
               }});
  EXPECT_TRUE(files_.Remove("/a").ok());
  EXPECT_EQ(seen, "content");
  EXPECT_FALSE(*Exists(memory_, "/a"));
}

TEST_F(FaultyFilesTest, ThreadsShareOneCount) {
  files_.Plan({.at_call = 100});
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) failed += files_.Stat("/a").ok() ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(files_.calls().size(), 200u);
}

// A process killed at each call in turn: the survivor reads old or new, and at last new.
TEST(FaultyFilesKill, KillsTheProcessAtTheNthCall) {
  TempDir dir;
  PosixFiles posix;
  const std::string path = JoinPath(dir.path(), "a");
  int kills = 0;
  for (int n = 1;; ++n) {
    ASSERT_TRUE(WriteDurably(posix, path, "old").ok());
    const pid_t child = ::fork();
    if (child == 0) {
      FaultyFiles faulty(posix);
      faulty.Plan({.kind = Fault::Kind::kAct, .at_call = n, .written_bytes = 1, .act = [] {
                     ::raise(SIGKILL);
                   }});
      ::_exit(WriteDurably(faulty, path, "new").ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_EQ(*ReadWhole(posix, path, 100), killed && n < 5 ? "old" : "new") << "call " << n;
    if (!killed) {
      EXPECT_EQ(status, 0);
      break;
    }
    ++kills;
  }
  EXPECT_EQ(kills, 5);
}

}  // namespace
}  // namespace keel
