// The client against stores that leave out, without a word, what others do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "store/s3/s3_objects.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/s3/stub.h"

namespace keel {
namespace {

using testing::IsEmpty;
using Kind = StubFault::Kind;

constexpr uint64_t kSmallPart = uint64_t{64} << 10;

class S3Manners : public testing::Test {
 protected:
  std::unique_ptr<S3Objects> Open(bool is_unguarded = false) {
    S3Options options;
    options.retry.pause_first = std::chrono::milliseconds(1);
    options.part_bytes_min = kSmallPart;
    options.is_unguarded = is_unguarded;
    auto objects = S3Objects::Open("bucket", stub_.environment(), files_, options);
    EXPECT_OK(objects);
    return std::move(*objects);
  }
  Status Upload(const std::string& key, const std::string& bytes) {
    KEEL_TRY_ASSIGN(const auto upload, objects_->Upload(key, 100 * kSmallPart));
    KEEL_TRY(upload->Append(BytesOf(bytes)));
    return upload->Finish();
  }
  // Of what was put whole or in parts: how many had a header of that name.
  int PutsWith(const std::string& header) const {
    int count = 0;
    for (const StubRequest& request : stub_.requests()) {
      count += request.method == "PUT" && request.headers.contains(header) ? 1 : 0;
    }
    return count;
  }

  MemoryFiles files_;
  S3Stub stub_;
  std::unique_ptr<S3Objects> objects_ = Open();
  const std::string large_ = std::string(2 * kSmallPart, 'l') + "end";
};

constexpr const char* kCrcHeader = "x-amz-checksum-crc32c";
constexpr const char* kMd5Header = "content-md5";

TEST_F(S3Manners, AStoreThatComparesIsAskedOnce) {
  ASSERT_OK(Upload("small", "bytes"));
  ASSERT_OK(Upload("large", large_));
  ASSERT_OK(Upload("more", "bytes"));
  EXPECT_EQ(stub_.objects()["small"], "bytes");
  EXPECT_TRUE(stub_.objects()["large"] == large_);
  EXPECT_EQ(stub_.Count("PutObject"), 2);
  EXPECT_EQ(stub_.Count("UploadPart"), 4);   // one of them refused
  EXPECT_EQ(stub_.Count("Abort"), 1);
  EXPECT_EQ(PutsWith(kCrcHeader), 6);
}

TEST_F(S3Manners, AStoreThatTakesAWrongCrcGetsMd5s) {
  stub_.Behave({.compares_crc = false});
  ASSERT_OK(Upload("small", "bytes"));
  ASSERT_OK(Upload("large", large_));
  EXPECT_EQ(stub_.objects()["small"], "bytes");
  EXPECT_TRUE(stub_.objects()["large"] == large_);
  EXPECT_EQ(PutsWith(kCrcHeader), 1);
  EXPECT_EQ(PutsWith(kMd5Header), 5);   // one of them wrong, and refused
  EXPECT_THAT(*objects_->Unfinished(""), IsEmpty());
}

TEST_F(S3Manners, AStoreThatComparesNothingGetsACrcAllTheSame) {
  stub_.Behave({.compares_crc = false, .compares_md5 = false});
  ASSERT_OK(Upload("small", "bytes"));
  ASSERT_OK(Upload("more", "bytes"));
  EXPECT_EQ(stub_.objects()["small"], "bytes");
  EXPECT_EQ(PutsWith(kMd5Header), 1);
  EXPECT_EQ(PutsWith(kCrcHeader), 3);
  EXPECT_THAT(*objects_->Unfinished(""), IsEmpty());
}

TEST_F(S3Manners, WhatIsThereIsNotTouchedByTheQuestion) {
  stub_.Behave({.compares_crc = false, .compares_md5 = false});
  stub_.SetObject("a", "of the user");
  stub_.Fail({"PutObject", Kind::kAnswer, 1, {403, {}, StubErrorBody("AccessDenied")}});
  EXPECT_FALSE(Upload("a", "new").ok());
  EXPECT_EQ(stub_.objects()["a"], "of the user");
}

TEST_F(S3Manners, AnUnclearAnswerIsAskedForAgainAFewTimes) {
  for (int upload = 0; upload < kSumTriesMax + 1; ++upload) {
    stub_.Fail({"UploadPart", Kind::kAnswer, 1, {503, {}, StubErrorBody("SlowDown")}});
    ASSERT_OK(Upload("small", "bytes"));
  }
  EXPECT_EQ(stub_.Count("UploadPart"), kSumTriesMax);
  EXPECT_EQ(stub_.Count("Abort"), kSumTriesMax);
}

TEST_F(S3Manners, UnguardedAPutLooksBeforeAndAfter) {
  stub_.Behave({.knows_conditions = false});
  const auto unguarded = Open(/*is_unguarded=*/true);
  ASSERT_OK(unguarded->PutIfAbsent("a", "first"));
  EXPECT_OK(unguarded->PutIfAbsent("a", "first"));
  EXPECT_EQ(unguarded->PutIfAbsent("a", "second").error().code, Code::kExists);
  EXPECT_EQ(stub_.objects()["a"], "first");
  // Another one is faster by the time between the two looks.
  stub_.SetObject("b", "of another");
  stub_.Fail({"GetObject", Kind::kAnswer, 1, {404, {}, StubErrorBody("NoSuchKey")}});
  stub_.Fail({"PutObject", Kind::kAnswer, 1, {200, {}, ""}});
  EXPECT_EQ(unguarded->PutIfAbsent("b", "ours").error().code, Code::kExists);
  // A store that cannot be asked is not written to.
  stub_.Fail({"GetObject", Kind::kAnswer, 1, {403, {}, StubErrorBody("AccessDenied")}});
  EXPECT_EQ(unguarded->PutIfAbsent("c", "ours").error().code, Code::kInvalid);
  EXPECT_FALSE(stub_.objects().contains("c"));
}

}  // namespace
}  // namespace keel
