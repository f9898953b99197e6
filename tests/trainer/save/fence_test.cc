// A worker's fence, by the claims of a lease in a real directory.
#include "trainer/save/fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "elastic/protocol/records.h"
#include "store/lease/dir_lease.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using testing::HasSubstr;

class FenceTest : public testing::Test {
 protected:
  // As another launcher of the job does it.
  void Claim(int64_t term, int64_t epoch) {
    Random random(EntropySeed());
    ASSERT_OK_AND_ASSIGN(const auto lease, DirLease::Open(files_, random, dir_.path(), {"j", "r"}));
    LinkRecord link;
    link.place = {.term = 2, .epoch = epoch, .address = "10.0.0.7:29400", .by = "b"};
    link.epoch = "e" + std::to_string(epoch);
    ASSERT_OK(lease->Claim(term, LinkText(link)));
  }
  std::string folder() const { return JoinPath(dir_.path(), LeaseFolderName("j")); }

  TempDir dir_;
  PosixFiles files_;
};

TEST_F(FenceTest, AJobWithoutALeaseHasNone) {
  Fence fence("", "j", Duration(0));
  fence.BeginEpoch(4);
  EXPECT_OK(fence.Check());
  EXPECT_EQ(fence.lease_name(), "");
}

TEST_F(FenceTest, KeepsOffAWorkerWhoseJobIsInALaterEpoch) {
  Fence fence(folder(), "j", Duration(0));
  EXPECT_EQ(fence.lease_name(), "j.lease");
  fence.BeginEpoch(4);
  Claim(1, 3);
  EXPECT_OK(fence.Check());
  Claim(2, 4);
  EXPECT_OK(fence.Check());
  Claim(3, 5);
  const Status fenced = fence.Check();
  ASSERT_FALSE(fenced.ok());
  EXPECT_EQ(fenced.error().code, Code::kStaleEpoch);
  EXPECT_THAT(fenced.error().message, HasSubstr("epoch 5 of the job has begun"));
  EXPECT_THAT(fenced.error().message, HasSubstr("term 2 at '10.0.0.7:29400'"));
  EXPECT_THAT(fenced.error().message, HasSubstr("still in epoch 4"));
  fence.BeginEpoch(5);
  EXPECT_OK(fence.Check());
}

TEST_F(FenceTest, WaitsForWordOfTheEpochThatTheWorkerIsAboutToEnter) {
  Fence fence(folder(), "j", std::chrono::minutes(5));
  fence.BeginEpoch(4);
  Claim(1, 5);
  auto checked = std::async(std::launch::async, [&] { return fence.Check(); });
  fence.BeginEpoch(5);
  EXPECT_OK(checked.get());
}

TEST_F(FenceTest, ALeaseThatCannotBeReadKeepsNobodyOff) {
  Fence fence(folder(), "j", Duration(0));
  fence.BeginEpoch(1);
  EXPECT_OK(fence.Check());   // it is not there
  EXPECT_EQ(files_.Stat(folder()).error().code, Code::kNotFound) << "a look makes nothing";
  Claim(1, 1);
  ASSERT_OK_AND_ASSIGN(const auto before, files_.List(folder()));
  EXPECT_OK(fence.Check());
  EXPECT_EQ(files_.List(folder())->size(), before.size());
  Fence other(folder(), "k", Duration(0));   // it is another job's
  other.BeginEpoch(0);
  EXPECT_OK(other.Check());
}

TEST_F(FenceTest, ADamagedClaimKeepsNobodyOff) {
  Fence fence(folder(), "j", Duration(0));
  fence.BeginEpoch(1);
  Claim(1, 2);
  ASSERT_FALSE(fence.Check().ok());
  const std::string claim = JoinPath(folder(), "term-1");
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List(claim));
  ASSERT_EQ(entries.size(), 1u);
  const auto write = [&](const std::string& bytes) {
    ASSERT_OK_AND_ASSIGN(const auto file, files_.Open(JoinPath(claim, entries[0].name),
                                                      {.write = true, .truncate = true}));
    ASSERT_OK(file->WriteAt(0, BytesOf(bytes)));
  };
  write("{");
  EXPECT_OK(fence.Check());
  Random random(EntropySeed());
  ASSERT_OK_AND_ASSIGN(const auto lease, DirLease::Open(files_, random, dir_.path(), {"j", "r"}));
  ASSERT_OK(lease->Claim(2, "no link"));
  EXPECT_OK(fence.Check());
}

}  // namespace
}  // namespace keel
