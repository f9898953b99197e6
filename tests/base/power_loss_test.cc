// The model test: a commit crashed at every call, then read back from every disk that may be left.
// It must find nothing wrong with the right order of calls, and something with every wrong one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"

namespace keel {
namespace {

constexpr int kMixes = 40;
constexpr uint64_t kSeed = 20261121;

const std::string kOld = "old " + std::string(5000, 'o');
const std::string kNew = "new " + std::string(9000, 'n');

// The commit under test, and the steps that a careless author may leave out or swap.
struct Commit {
  bool sync_content = true;
  bool sync_names = true;
  bool through_temporary = true;
};

Status Run(Files& files, const Commit& how) {
  const std::string written = how.through_temporary ? "/d/a.tmp" : "/d/a";
  KEEL_TRY_ASSIGN(const auto file,
                  files.Open(written, {.write = true, .create = true, .truncate = true}));
  const std::string_view content = kNew;
  for (size_t at = 0; at < content.size(); at += 3000) {
    KEEL_TRY(file->WriteAt(at, BytesOf(content.substr(at, 3000))));
  }
  if (how.sync_content) KEEL_TRY(file->Sync());
  if (how.through_temporary) KEEL_TRY(files.Rename(written, "/d/a"));
  if (how.sync_names) KEEL_TRY(files.SyncDir("/d"));
  return Ok();
}

struct Findings {
  int crashes = 0;
  int disks = 0;
  std::vector<std::string> bad;  // which call, and what was read
};

// Reads /d/a on each disk that may be left. `finished`: the commit has reported success.
void Judge(const MemoryFiles& memory, bool finished, const std::string& when, Findings* findings) {
  for (const auto& disk : memory.PossibleDisks(kMixes, kSeed)) {
    ++findings->disks;
    const Result<std::string> read = ReadWhole(*disk, "/d/a", 1 << 20);
    if (read.ok() && (*read == kNew || (!finished && *read == kOld))) continue;
    findings->bad.push_back(
        when + ": " +
        (read.ok() ? read->substr(0, 4) + "... of " + std::to_string(read->size()) + " bytes"
                   : read.error().message));
  }
}

Findings CrashEverywhere(const Commit& how) {
  Findings findings;
  for (int n = 1;; ++n) {
    MemoryFiles memory;
    EXPECT_TRUE(MakeDirs(memory, "/d").ok());
    EXPECT_TRUE(WriteDurably(memory, "/d/a", kOld).ok());
    FaultyFiles faulty(memory);
    faulty.Plan({.kind = Fault::Kind::kCrash, .at_call = n, .written_bytes = 1000});
    const Status status = Run(faulty, how);
    const bool crashed = faulty.strikes() > 0;
    EXPECT_EQ(status.ok(), !crashed);
    Judge(memory, !crashed, "call " + std::to_string(n), &findings);
    if (!crashed) return findings;
    ++findings.crashes;
  }
}

TEST(PowerLossModel, ACommitIsOldOrNewOnEveryPossibleDisk) {
  const Findings findings = CrashEverywhere({});
  EXPECT_EQ(findings.crashes, 8);  // open, 4 writes, sync, rename, sync of the directory
  EXPECT_GT(findings.disks, 300);
  EXPECT_TRUE(findings.bad.empty()) << findings.bad.front();
}

TEST(PowerLossModel, WriteDurablyIsOldOrNewOnEveryPossibleDisk) {
  Findings findings;
  for (int n = 1;; ++n) {
    MemoryFiles memory;
    ASSERT_TRUE(MakeDirs(memory, "/d").ok());
    ASSERT_TRUE(WriteDurably(memory, "/d/a", kOld).ok());
    FaultyFiles faulty(memory);
    faulty.Plan({.kind = Fault::Kind::kCrash, .at_call = n});
    const bool finished = WriteDurably(faulty, "/d/a", kNew).ok();
    Judge(memory, finished, "call " + std::to_string(n), &findings);
    if (finished) break;
    ++findings.crashes;
  }
  EXPECT_GE(findings.crashes, 5);
  EXPECT_TRUE(findings.bad.empty()) << findings.bad.front();
}

TEST(PowerLossModel, ALeftOutSyncOfTheContentIsFound) {
  EXPECT_FALSE(CrashEverywhere({.sync_content = false}).bad.empty());
}

TEST(PowerLossModel, ALeftOutSyncOfTheDirectoryIsFound) {
  EXPECT_FALSE(CrashEverywhere({.sync_names = false}).bad.empty());
}

TEST(PowerLossModel, WritingInPlaceIsFound) {
  EXPECT_FALSE(CrashEverywhere({.through_temporary = false}).bad.empty());
}

}  // namespace
}  // namespace keel
