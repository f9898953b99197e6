// TensorBoard's own reader finds in our event files what was written, also behind a torn record.
#include "trainer/log/event_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/clock.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

constexpr int kNoTensorBoard = 77;

class TensorBoard : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(KEEL_TEST_PYTHON, X_OK) != 0) {
      GTEST_SKIP() << "there is no " << KEEL_TEST_PYTHON << ": tools/setup.sh --tests makes it";
    }
    if (Read().exit_code == kNoTensorBoard) {
      GTEST_SKIP() << "TensorBoard is not installed: tools/setup.sh --tests does it";
    }
  }

  struct Seen {
    int exit_code = -1;
    std::string scalars;
  };
  Seen Read() {
    const std::string command = KEEL_TEST_PYTHON " -B " KEEL_SOURCE_DIR
                                                 "/tests/python/check_event_file.py " +
                                dir_.path() + " 2>" + dir_.File("stderr");
    Seen seen;
    FILE* const pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return seen;
    char buffer[4096];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
      seen.scalars.append(buffer, got);
    }
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) seen.exit_code = WEXITSTATUS(status);
    return seen;
  }

  std::unique_ptr<EventFile> Create() {
    auto file = EventFile::Create(files_, dir_.path(), RealClock().WallNanos());
    EXPECT_OK(file);
    return *std::move(file);
  }
  static Status Add(EventFile& file, uint64_t step, double loss) {
    const std::vector<EventScalar> scalars = {{"train/loss", loss}, {"train/lr", 0.25}};
    return file.Add(RealClock().WallNanos(), step, scalars);
  }

  const TempDir dir_;
  PosixFiles files_;
};

TEST_F(TensorBoard, FindsWhatWasWritten) {
  const auto file = Create();
  ASSERT_OK(Add(*file, 1, 2.5));
  ASSERT_OK(Add(*file, 300, 0.125));
  EXPECT_EQ(Read().scalars,
            "train/loss 1 2.5\ntrain/loss 300 0.125\ntrain/lr 1 0.25\ntrain/lr 300 0.25\n");
}

TEST_F(TensorBoard, FindsWhatAKilledWriterLeft) {
  const auto file = Create();
  ASSERT_OK(Add(*file, 1, 2.5));
  ASSERT_OK_AND_ASSIGN(const FileInfo whole, files_.Stat(file->path()));
  ASSERT_OK(Add(*file, 2, 1.5));
  ASSERT_OK_AND_ASSIGN(const auto again, files_.Open(file->path(), {.write = true}));
  ASSERT_OK(again->Truncate(whole.bytes + 9));
  EXPECT_EQ(Read().scalars, "train/loss 1 2.5\ntrain/lr 1 0.25\n");
}

}  // namespace
}  // namespace keel
