// What only the real disk can show: descriptors, short writes, odd kinds of files, lost locks.
#include "base/posix_files.h"

#include <boost/filesystem.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/file_error.h"
#include "base/file_helpers.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

class PosixFilesTest : public testing::Test {
 protected:
  std::string At(const std::string& name) { return JoinPath(dir_.path(), name); }

  TempDir dir_;
  PosixFiles files_;
};

size_t OpenDescriptors() {
  const boost::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST_F(PosixFilesTest, NoPathLeavesADescriptorOpen) {
  ASSERT_TRUE(WriteDurably(files_, At("a"), "content").ok());
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ReadWhole(files_, At("a"), 100).ok());
    EXPECT_TRUE(WriteDurably(files_, At("b"), "content").ok());
    EXPECT_TRUE(files_.List(dir_.path()).ok());
    EXPECT_TRUE(files_.SyncDir(dir_.path()).ok());
    EXPECT_TRUE(files_.Lock(At("lock"), "me").ok());
    EXPECT_TRUE(files_.Open(At("d"), {.write = true, .create = true, .direct = true}).ok());
    EXPECT_FALSE(files_.Open(dir_.path(), {}).ok());
    EXPECT_FALSE(files_.Open("/dev/null", {}).ok());
    EXPECT_FALSE(files_.Open(At("none"), {}).ok());
    EXPECT_FALSE(files_.List(At("a")).ok());
    EXPECT_FALSE(files_.SyncDir(At("a")).ok());
    EXPECT_FALSE(ReadWhole(files_, At("a"), 2).ok());
    EXPECT_FALSE(WriteDurably(files_, At("none/a"), "").ok());
    const auto held = files_.Lock(At("lock"), "me");
    EXPECT_FALSE(files_.Lock(At("lock"), "you").ok());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(PosixFilesTest, DescriptorsAreNotInheritedByAnExec) {
  const auto file = files_.Open(At("a"), {.write = true, .create = true});
  const auto lock = files_.Lock(At("lock"), "me");
  ASSERT_TRUE(file.ok() && lock.ok());
  int ours = 0;
  for (const auto& entry : boost::filesystem::directory_iterator("/proc/self/fd")) {
    boost::system::error_code gone;  // the descriptor of this very iteration
    const std::string target = boost::filesystem::read_symlink(entry.path(), gone).string();
    if (gone || target.find(dir_.path()) == std::string::npos) continue;
    ++ours;
    EXPECT_NE(::fcntl(std::stoi(entry.path().filename().string()), F_GETFD) & FD_CLOEXEC, 0)
        << target;
  }
  EXPECT_EQ(ours, 2);
}

// Up to its size limit the system takes the front part of a write, and refuses the next one.
TEST_F(PosixFilesTest, AShortWriteGoesOnUntilTheErrorShows) {
  const auto file = files_.Open(At("a"), {.write = true, .create = true});
  ASSERT_TRUE(file.ok());
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10000, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = (*file)->WriteAt(0, BytesOf(std::string(20000, 'x')));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(status.error().message, "write " + At("a") + ": File too large");
  EXPECT_EQ(*ReadWhole(files_, At("a"), 20000), std::string(10000, 'x'));
}

// In memory where that is possible: ext4 gives out all that it has before it says that this is not
// enough, and until it has taken it back, the tests beside this one find a full disk.
TEST_F(PosixFilesTest, AFullFileSystemIsNoSpace) {
  const bool has_memory = ::access("/dev/shm", W_OK) == 0;
  const std::string path =
      has_memory ? "/dev/shm/keel-test-full-" + std::to_string(::getpid()) : At("a");
  const auto file = files_.Open(path, {.write = true, .create = true});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(files_.Remove(path).ok());
  const Result<uint64_t> free = files_.FreeBytes(has_memory ? "/dev/shm" : dir_.path());
  ASSERT_TRUE(free.ok());
  // Within the size that any file system allows to one file, and more than any test disk has.
  const uint64_t too_much = uint64_t{8} << 40;
  ASSERT_LT(*free, too_much);
  const Result<bool> reserved = (*file)->Allocate(too_much);
  if (reserved.ok()) {
    EXPECT_FALSE(*reserved) << "room promised that is not there";
  } else {
    EXPECT_EQ(reserved.error().code, Code::kNoSpace) << reserved.error().message;
  }
}

TEST_F(PosixFilesTest, WhereDirectIsRefusedTheFileIsBuffered) {
  const auto file = files_.Open("/proc/self/status", {.direct = true});
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_FALSE((*file)->direct());
  std::array<std::byte, 5> odd{};
  EXPECT_EQ(*(*file)->ReadAt(1, odd), 5u);
}

TEST_F(PosixFilesTest, APipeIsRefusedInsteadOfWaitedFor) {
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(files_.Open(At("pipe"), {}).ok());
  EXPECT_FALSE(files_.Open(At("pipe"), {.write = true}).ok());
  EXPECT_EQ(files_.List(dir_.path())->at(0).kind, FileKind::kOther);
}

TEST_F(PosixFilesTest, SymbolicLinksCountAsWhatTheyPointTo) {
  ASSERT_TRUE(files_.MakeDir(At("real")).ok());
  ASSERT_EQ(::symlink("real", At("link").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", At("dangling").c_str()), 0);
  EXPECT_EQ(*files_.List(dir_.path()), (std::vector<DirEntry>{{"dangling", FileKind::kOther},
                                                              {"link", FileKind::kDirectory},
                                                              {"real", FileKind::kDirectory}}));
  EXPECT_EQ(files_.Stat(At("link"))->kind, FileKind::kDirectory);
}

TEST_F(PosixFilesTest, ALockGoesWithItsProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = files_.Lock(At("lock"), "the child");
    ::_exit(held.ok() && !files_.Lock(At("lock"), "again").ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(files_.Lock(At("lock"), "the parent").ok());
}

TEST_F(PosixFilesTest, AShorterOwnerReplacesALongerOne) {
  (void)files_.Lock(At("lock"), "a very long owner");
  const auto held = files_.Lock(At("lock"), "me");
  const auto refused = files_.Lock(At("lock"), "you");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("\"me\""), std::string::npos);
}

TEST(FileError, NamesOperationPathCauseAndCure) {
  const Error error = FileError("write", "/ckpts/a", ENOSPC);
  EXPECT_EQ(error.code, Code::kNoSpace);
  EXPECT_EQ(error.message,
            "write /ckpts/a: No space left on device; free some space there or choose another "
            "directory");
}

TEST(FileError, TheCodeTellsTheReaction) {
  EXPECT_EQ(CodeOfErrno(ENOSPC), Code::kNoSpace);
  EXPECT_EQ(CodeOfErrno(EDQUOT), Code::kNoSpace);
  EXPECT_EQ(CodeOfErrno(ENOENT), Code::kNotFound);
  EXPECT_EQ(CodeOfErrno(EEXIST), Code::kExists);
  EXPECT_EQ(CodeOfErrno(ENOTEMPTY), Code::kExists);
  for (const int other : {EIO, EACCES, EROFS, EFBIG, EMFILE, ENOTDIR, EISDIR, ESTALE}) {
    EXPECT_EQ(CodeOfErrno(other), Code::kIo) << other;
  }
}

TEST(FileError, SaysWhetherTheFileSystemMayAnswerLater) {
  for (const int passing : {EIO, ESTALE, ETIMEDOUT, ENOTCONN, EHOSTDOWN}) {
    const Error error = FileError("open", "/ckpts/a", passing);
    EXPECT_TRUE(error.may_pass) << passing;
    EXPECT_TRUE(error.Doing("holding it").may_pass) << passing;
  }
  for (const int lasting : {ENOENT, ENOSPC, EACCES, EROFS, ENOTDIR}) {
    EXPECT_FALSE(FileError("open", "/ckpts/a", lasting).may_pass) << lasting;
  }
}

}  // namespace
}  // namespace keel
