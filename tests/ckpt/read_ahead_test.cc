// Whether the newest checkpoint's bytes come into the page cache, on a real disk.
#include "ckpt/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "ckpt/catalog.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

// Of all files in `dir`: pages, and those in memory.
struct Pages {
  size_t all = 0, here = 0;
};

template <class Visit>
void EachFile(const std::string& dir, Visit visit) {
  PosixFiles files;
  const auto names = files.List(dir);
  ASSERT_OK(names);
  for (const DirEntry& name : *names) {
    const std::string path = JoinPath(dir, name.name);
    const auto info = files.Stat(path);
    ASSERT_OK(info);
    if (info->bytes == 0) continue;   // a lock
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    visit(fd, info->bytes);
    close(fd);
  }
}

Pages PagesOf(const std::string& dir) {
  Pages pages;
  EachFile(dir, [&](int fd, size_t bytes) {
    void* const map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(map, MAP_FAILED);
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> states((bytes + page - 1) / page);
    EXPECT_EQ(mincore(map, bytes, states.data()), 0);
    munmap(map, bytes);
    pages.all += states.size();
    pages.here += static_cast<size_t>(
        std::count_if(states.begin(), states.end(), [](unsigned char one) { return one & 1; }));
  });
  return pages;
}

void Evict(const std::string& dir) {
  sync();
  EachFile(dir, [](int fd, size_t) { posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); });
}

Status SaveStep(Files& files, const TestState& state, const std::string& root, uint64_t step) {
  MemorySource source(state.Spans());
  KEEL_TRY_ASSIGN(const auto save, Save::Begin(files, PlanOf(state, root, step, step)));
  KEEL_TRY(save->WriteShard(source, {}));
  KEEL_TRY(save->Commit(0));
  return Ok();
}

TEST(ReadAheadTest, BringsTheNewestCheckpointIntoMemory) {
  TempDir temp;
  PosixFiles files;
  const TestState state = TestState::Make(1, 3'000'000);
  for (const uint64_t step : {1, 2}) ASSERT_OK(SaveStep(files, state, temp.path(), step));
  const std::string older = temp.File("step-000000001"), newest = temp.File("step-000000002");
  Evict(older);
  Evict(newest);
  if (PagesOf(older).here + PagesOf(newest).here > 0) {
    GTEST_SKIP() << "this file system's files never leave memory";
  }

  ReadAhead ahead(temp.path());
  ahead.Wait();
  const TimePoint limit = RealClock().Monotonic() + 60s;   // the disk does it in its own time
  Pages pages = PagesOf(newest);
  while (pages.here < pages.all && RealClock().Monotonic() < limit) {
    RealClock().SleepFor(10ms);
    pages = PagesOf(newest);
  }
  EXPECT_EQ(pages.here, pages.all);
  EXPECT_GT(pages.all, 2000u) << "more than one piece";
  EXPECT_LT(PagesOf(older).here, 8u) << "its manifest was looked at, and that is all";
}

TEST(ReadAheadTest, WhereNothingIsThereIsNothingToDo) {
  TempDir temp;
  for (const std::string& root : {std::string(), temp.path(), temp.File("none")}) {
    ReadAhead ahead(root);
    ahead.Wait();
  }
}

}  // namespace
}  // namespace keel
