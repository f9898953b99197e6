// A lease in a directory: its names, damage by others, old claims, and directories that will not
// do.
#include "store/lease/dir_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/store/lease/racer.h"
#include "tests/store/lease/unsynced_files.h"
#include "tests/support/garbage.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using testing::HasSubstr;

Result<std::unique_ptr<DirLease>> OpenIn(Files& files, const std::string& dir,
                                         const std::string& job = "job") {
  Random random(EntropySeed());
  return DirLease::Open(files, random, dir, {job, "run"});
}

class DirLeaseTest : public testing::Test {
 protected:
  DirLeaseTest() { EXPECT_OK(files_.MakeDir("/shared")); }

  std::unique_ptr<DirLease> Open(const std::string& job = "job") {
    auto lease = OpenIn(files_, "/shared", job);
    EXPECT_OK(lease);
    return std::move(*lease);
  }
  void Write(const std::string& path, const std::string& bytes) {
    const auto file = files_.Open(path, {.write = true, .create = true, .truncate = true});
    ASSERT_OK(file);
    ASSERT_OK((*file)->WriteAt(0, BytesOf(bytes)));
  }
  std::string Read(const std::string& path) { return *ReadWhole(files_, path, 1 << 20); }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto entries = files_.List("/shared/job.lease");
    for (const DirEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }

  MemoryFiles files_;
};

TEST(LeaseFolderName, IsAFileNameOfItsJobAlone) {
  EXPECT_EQ(LeaseFolderName("my-job_7.b"), "my-job_7.b.lease");
  EXPECT_EQ(LeaseFolderName("a/b c"), "a%2fb%20c.lease");
  EXPECT_EQ(LeaseFolderName(".."), "%2e..lease");
  EXPECT_EQ(LeaseFolderName("\xff%"), "%ff%25.lease");
  const std::string name = LeaseFolderName(std::string(5000, 'x'));
  EXPECT_LE(name.size(), 200u);
  EXPECT_NE(name, LeaseFolderName(std::string(5001, 'x')));
}

TEST_F(DirLeaseTest, LongNamesFitOrAreRefused) {
  for (const size_t size : {size_t{1}, size_t{127}, size_t{128}, kLeaseTextBytesMax - 3}) {
    const auto lease = Open(std::string(size, '/'));
    ASSERT_OK(lease->Claim(1, std::string(kLeaseTextBytesMax, '\1')));
    EXPECT_EQ(lease->Look()->damage, "");
  }
  EXPECT_EQ(OpenIn(files_, "/shared", std::string(kLeaseTextBytesMax, 'x')).error().code,
            Code::kInvalid);
}

TEST_F(DirLeaseTest, KeepsTheClaimsOfTheLastTermsAlone) {
  const auto lease = Open();
  for (int64_t term = 1; term <= 20; ++term) {
    ASSERT_OK(lease->Claim(term, "x"));
    ASSERT_OK(lease->Beat());
  }
  const std::vector<std::string> names = Names();
  EXPECT_EQ(names.size(), 2u * DirLease::kTermsKept);
  EXPECT_THAT(names, testing::Contains("term-13"));
  EXPECT_THAT(names, testing::Not(testing::Contains("term-12")));
  // A process that was suspended for long claims one that is gone, and is told.
  EXPECT_EQ(Open()->Claim(3, "late").error().code, Code::kStaleEpoch);
  EXPECT_EQ(Open()->Look()->term, 20);
}

TEST_F(DirLeaseTest, AFarTermRemovesAllOthers) {
  const auto lease = Open();
  ASSERT_OK(lease->Claim(1, "x"));
  ASSERT_OK(lease->Claim(kLeaseTermMax, "last"));
  EXPECT_EQ(Names(), std::vector<std::string>{"term-" + std::to_string(kLeaseTermMax)});
  EXPECT_EQ(lease->Look()->text, "last");
}

// Whatever is done to the claim of a holder that is gone, it is never read as another one, and the
// next term can be claimed.
TEST_F(DirLeaseTest, WhoOnlyLooksSeesTheSameAndMakesNothing) {
  EXPECT_EQ(DirLease::LookInto(files_, "/shared/job.lease", "job").error().code, Code::kNotFound);
  EXPECT_TRUE(files_.List("/shared")->empty());
  const auto lease = Open();
  ASSERT_OK_AND_ASSIGN(const LeaseSight nothing,
                       DirLease::LookInto(files_, lease->folder(), "job"));
  EXPECT_EQ(nothing.term, 0);
  ASSERT_OK(lease->Claim(3, "text"));
  const auto names = Names();
  ASSERT_OK_AND_ASSIGN(const LeaseSight seen, DirLease::LookInto(files_, lease->folder(), "job"));
  EXPECT_EQ(seen, *lease->Look());
  EXPECT_EQ(seen.text, "text");
  EXPECT_EQ(DirLease::LookInto(files_, lease->folder(), "other").error().code, Code::kInvalid);
  EXPECT_EQ(Names(), names);
}

TEST_F(DirLeaseTest, DamageIsSeenAndKeepsNobodyFromTheNextTerm) {
  const auto holder = Open();
  int64_t term = 0;
  const auto damage = [&](const std::string& what, const auto& damaged) {
    SCOPED_TRACE(what);
    ASSERT_OK(holder->Claim(++term, "held"));
    ASSERT_OK(holder->Beat());
    damaged("/shared/job.lease/term-" + std::to_string(term));
    const auto lease = Open();
    ASSERT_OK_AND_ASSIGN(const LeaseSight sight, lease->Look());
    EXPECT_EQ(sight.term, term);
    EXPECT_EQ(sight.text, "");
    EXPECT_EQ(sight.run, "");
    EXPECT_NE(sight.damage, "");
    EXPECT_FALSE(lease->Claim(term, "x").ok());
    EXPECT_FALSE(holder->Beat().ok());
    ASSERT_OK(lease->Claim(++term, "next"));
    EXPECT_EQ(lease->Look()->text, "next");
  };
  damage("cut", [&](const std::string& path) {
    const std::string whole = Read(path + "/content");
    Write(path + "/content", whole.substr(0, whole.size() / 2));
  });
  damage("empty", [&](const std::string& path) { Write(path + "/content", ""); });
  damage("a bit flipped", [&](const std::string& path) {
    std::string bytes = Read(path + "/content");
    bytes[bytes.find("held")] ^= 1;
    Write(path + "/content", bytes);
  });
  damage("far too long", [&](const std::string& path) {
    Write(path + "/content", std::string(1 << 20, 'x'));
  });
  damage("the claim of another term", [&](const std::string& path) {
    const std::string other = term > 1 ? "/shared/job.lease/term-" + std::to_string(term - 1) : "";
    Write(path + "/content", Read(other + "/content"));
  });
  damage("a file in place of it", [&](const std::string& path) {
    ASSERT_OK(files_.Remove(path + "/content"));
    ASSERT_OK(files_.RemoveDir(path));
    Write(path, "x");
  });
}

TEST_F(DirLeaseTest, AFlippedBitAnywhereIsNeverReadAsAnotherText) {
  ASSERT_OK(Open()->Claim(1, "10.0.0.7:29400"));
  const auto lease = Open();
  const std::string path = "/shared/job.lease/term-1/content", whole = Read(path);
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    Write(path, flipped);
    ASSERT_OK_AND_ASSIGN(const LeaseSight sight, lease->Look());
    EXPECT_EQ(sight.term, 1);
    EXPECT_EQ(sight.text, "") << bit;
  }
}

// An empty directory of that name could be claimed over, and the former holder is told.
TEST_F(DirLeaseTest, AClaimThatSomebodyEmptiedIsLost) {
  const auto holder = Open(), next = Open();
  ASSERT_OK(holder->Claim(1, "held"));
  ASSERT_OK(files_.Remove("/shared/job.lease/term-1/content"));
  EXPECT_EQ(next->Look()->term, 1);
  EXPECT_NE(next->Look()->damage, "");
  EXPECT_EQ(next->Claim(1, "x").error().code, Code::kExists);
  EXPECT_EQ(holder->Beat().error().code, Code::kExists);
  ASSERT_OK(next->Claim(2, "next"));
}

TEST_F(DirLeaseTest, ALeaseThatSomebodyRemovedIsNoLongerHeld) {
  const auto holder = Open();
  ASSERT_OK(holder->Claim(1, "held"));
  ASSERT_OK(files_.Rename("/shared/job.lease", "/shared/away"));
  EXPECT_EQ(holder->Beat().error().code, Code::kNotFound);
  ASSERT_OK(files_.MakeDir("/shared/job.lease"));
  EXPECT_EQ(holder->Beat().error().code, Code::kNotFound);
}

TEST_F(DirLeaseTest, AGarbledBeatIsNoRelease) {
  const auto holder = Open(), looker = Open();
  ASSERT_OK(holder->Claim(1, "held"));
  ASSERT_OK(holder->Beat());
  const std::string path = "/shared/job.lease/beat-1";
  Garbage garbage(7);
  std::string last = looker->Look()->beat;
  for (int round = 0; round < 500; ++round) {
    Write(path, garbage.Bytes(200));
    ASSERT_OK_AND_ASSIGN(const LeaseSight sight, looker->Look());
    EXPECT_FALSE(sight.released) << garbage.Where(round);
    EXPECT_EQ(sight.text, "held");
  }
  Write(path, std::string(1 << 20, 'x'));
  EXPECT_FALSE(looker->Look()->released);
  ASSERT_OK(holder->Beat());   // and the next one is whole again
  EXPECT_NE(looker->Look()->beat, last);
  ASSERT_OK(holder->Release());
  EXPECT_TRUE(looker->Look()->released);
}

TEST_F(DirLeaseTest, OtherNamesMeanNothing) {
  const auto lease = Open();
  for (const char* name : {"term-", "term-0", "term-07", "term--3", "term-x", "term-9.tmp",
                           "TERM-9", "term-99999999999999999999", "term-1000000000001", "beat-9",
                           "README"}) {
    ASSERT_OK(files_.MakeDir(std::string("/shared/job.lease/") + name));
  }
  EXPECT_EQ(lease->Look()->term, 0);
  ASSERT_OK(lease->Claim(1, "x"));
  ASSERT_OK(lease->Beat());
}

TEST_F(DirLeaseTest, RemovesWhatKilledClaimantsLeft) {
  const auto lease = Open();
  for (const char* name : {"putting-term-4-0123", "removing-term-1-0123", "putting-term-21-0123",
                           "putting-probe-4567-0123"}) {
    ASSERT_OK(files_.MakeDir(std::string("/shared/job.lease/") + name));
    Write(std::string("/shared/job.lease/") + name + "/content", "x");
  }
  Write("/shared/job.lease/beat-1.tmp", "x");
  ASSERT_OK(lease->Claim(20, "x"));
  // Those of a later term, and of a host that is starting, may be in use.
  EXPECT_THAT(Names(), testing::ElementsAre("putting-probe-4567-0123", "putting-term-21-0123",
                                            "term-20"));
}

TEST_F(DirLeaseTest, AForeignJobsLeaseIsNamed) {
  ASSERT_OK(Open("Train")->Claim(3, "x"));
  ASSERT_OK(files_.Rename("/shared/Train.lease", "/shared/train.lease"));
  const auto lease = OpenIn(files_, "/shared", "train");
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error().code, Code::kInvalid);
  EXPECT_EQ(lease.error().message,
            "/shared/train.lease holds the lease of job 'Train', and this is job 'train': name "
            "another lease directory for one of them");
}

// What another host has done since may not be seen for a while; the claim decides all the same.
class LateFiles : public FaultyFiles {
 public:
  using FaultyFiles::FaultyFiles;
  Result<std::vector<DirEntry>> List(const std::string& path) override {
    if (!late_) return FaultyFiles::List(path);
    if (!seen_) seen_ = FaultyFiles::List(path);
    return *seen_;
  }
  // As NFS has it: a change of one's own makes the host's caches of that directory void.
  Status Rename(const std::string& from, const std::string& to) override {
    late_ = false;
    return FaultyFiles::Rename(from, to);
  }
  void BeLate() {
    late_ = true;
    seen_.reset();
  }

 private:
  bool late_ = false;
  std::optional<Result<std::vector<DirEntry>>> seen_;
};

TEST_F(DirLeaseTest, ALateLookDelaysAndNeverDoubles) {
  LateFiles late(files_);
  ASSERT_OK_AND_ASSIGN(const auto looker, OpenIn(late, "/shared"));
  const auto first = Open(), second = Open();
  ASSERT_OK(first->Claim(1, "first"));
  late.BeLate();
  EXPECT_EQ(looker->Look()->term, 1);
  ASSERT_OK(second->Claim(2, "second"));
  EXPECT_EQ(looker->Look()->term, 1);
  EXPECT_EQ(looker->Claim(2, "late").error().code, Code::kExists);
  EXPECT_EQ(looker->Look()->text, "second");
  late.BeLate();
  EXPECT_EQ(looker->Look()->term, 2);
  for (int64_t term = 3; term <= 30; ++term) ASSERT_OK(second->Claim(term, "second"));
  EXPECT_EQ(looker->Claim(3, "very late").error().code, Code::kStaleEpoch);
  // So does a beat, after which a holder finds that it is none any more.
  ASSERT_OK(looker->Claim(31, "holder"));
  late.BeLate();
  EXPECT_EQ(looker->Look()->term, 31);
  ASSERT_OK(second->Claim(32, "second"));
  EXPECT_EQ(looker->Beat().error().code, Code::kStaleEpoch);
}

// It does not learn of the claim by that, but by the next one.
TEST_F(DirLeaseTest, AHolderThatBeatJustBeforeTheClaimHasLostTheLease) {
  FaultyFiles files(files_);
  ASSERT_OK_AND_ASSIGN(const auto claimant, OpenIn(files, "/shared"));
  const auto holder = Open();
  ASSERT_OK(holder->Claim(1, "holder"));
  ASSERT_OK(holder->Beat());
  files.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kRename, .path_part = "term-2",
              .act = [&] { EXPECT_OK(holder->Beat()); }});
  ASSERT_OK(claimant->Claim(2, "claimant"));
  EXPECT_EQ(files.strikes(), 1);
  EXPECT_EQ(holder->Beat().error().code, Code::kStaleEpoch);
}

// The server has renamed, and its answer is lost: the second try finds no source.
class LostAnswers : public FaultyFiles {
 public:
  using FaultyFiles::FaultyFiles;
  Status Rename(const std::string& from, const std::string& to) override {
    const Status renamed = FaultyFiles::Rename(from, to);
    if (!loses_ || !renamed.ok()) return renamed;
    return FaultyFiles::Rename(from, to);
  }
  bool loses_ = false;
};

TEST_F(DirLeaseTest, AClaimWhoseAnswerWasLostIsFound) {
  LostAnswers files(files_);
  ASSERT_OK_AND_ASSIGN(const auto lease, OpenIn(files, "/shared"));
  files.loses_ = true;
  EXPECT_OK(lease->Claim(1, "mine"));
  files.loses_ = false;
  EXPECT_OK(lease->Beat());
  EXPECT_EQ(Open()->Claim(1, "x").error().code, Code::kExists);
}

// A file system on which a rename replaces whatever is there.
class ReplacingFiles : public FaultyFiles {
 public:
  using FaultyFiles::FaultyFiles;
  Status Rename(const std::string& from, const std::string& to) override {
    (void)Remove(to + "/content");
    return FaultyFiles::Rename(from, to);
  }
};

TEST_F(DirLeaseTest, ADirectoryThatIsNotAtomicIsRefused) {
  ReplacingFiles files(files_);
  const auto lease = OpenIn(files, "/shared");
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error().code, Code::kInvalid);
  EXPECT_EQ(lease.error().message,
            "two claims of one name in /shared/job.lease both succeeded: its file system is not "
            "atomic; name a directory on another one that all hosts share");
}

TEST_F(DirLeaseTest, ADirectoryThatIsNotThereIsRefused) {
  const auto missing = OpenIn(files_, "/nowhere");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().message,
            "the lease directory /nowhere is not there: mount it, or make it once where all hosts "
            "see it");
  EXPECT_FALSE(*Exists(files_, "/nowhere"));
  Write("/file", "");
  EXPECT_EQ(OpenIn(files_, "/file").error().message,
            "the lease directory /file is not a directory: name one that all hosts share");
}

TEST_F(DirLeaseTest, ADirectoryThatCannotBeWrittenIsRefused) {
  FaultyFiles files(files_);
  files.Plan({.op = FileOp::kMakeDir, .error_number = EACCES});
  const auto closed = OpenIn(files, "/shared");
  ASSERT_FALSE(closed.ok());
  EXPECT_THAT(closed.error().message,
              testing::StartsWith("the lease directory /shared cannot be written: make directory "
                                  "/shared/job.lease: Permission denied; check its owner"));
  MemoryFiles full({.capacity_bytes = 0});
  ASSERT_OK(full.MakeDir("/shared"));
  const auto none = OpenIn(full, "/shared");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kNoSpace);
  EXPECT_THAT(none.error().message,
              testing::StartsWith("the lease directory /shared cannot be written: write "));
  EXPECT_THAT(none.error().message, HasSubstr("No space left on device"));
}

TEST_F(DirLeaseTest, ADirectoryThatCannotBeReadShowsNothing) {
  FaultyFiles files(files_);
  ASSERT_OK_AND_ASSIGN(const auto lease, OpenIn(files, "/shared"));
  ASSERT_OK(lease->Claim(1, "x"));
  ASSERT_OK(lease->Beat());
  files.Plan({.op = FileOp::kList, .error_number = EACCES});
  const auto sight = lease->Look();
  ASSERT_FALSE(sight.ok());
  EXPECT_THAT(sight.error().message,
              testing::StartsWith("the lease in /shared/job.lease: list /shared/job.lease: "));
  files.Plan({.op = FileOp::kOpen, .path_part = "beat-1", .error_number = EIO});
  EXPECT_FALSE(lease->Look().ok());
  EXPECT_OK(lease->Look());
}

// Thousands of terms on a real disk, of each of which one claimant is given one.
TEST(DirLeaseRace, EachTermHasOneWinner) {
  constexpr int kRacers = 6;
  constexpr int64_t kLast = Rounds(3000, 600);
  TempDir dir;
  UnsyncedFiles files;
  std::vector<std::unique_ptr<DirLease>> leases;
  std::vector<Racer> racers;
  for (int i = 0; i < kRacers; ++i) {
    auto lease = OpenIn(files, dir.path());
    ASSERT_OK(lease);
    leases.push_back(std::move(*lease));
    racers.emplace_back(*leases.back(), "racer " + std::to_string(i));
  }
  std::vector<std::thread> threads;
  for (Racer& racer : racers) threads.emplace_back([&] { EXPECT_OK(racer.Run(kLast)); });
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> won;
  for (const Racer& racer : racers) won.insert(won.end(), racer.won().begin(), racer.won().end());
  EXPECT_EQ(WhyNotOneWinnerEach(won, kLast), "");
}

}  // namespace
}  // namespace keel
