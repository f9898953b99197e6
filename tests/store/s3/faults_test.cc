// The client against a store that fails in every way that a test can think of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "store/s3/s3_objects.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/s3/stub.h"

namespace keel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Depth = Objects::Depth;
using Kind = StubFault::Kind;

constexpr uint64_t kPart = uint64_t{64} << 10;

// Limits against hanging, and pauses that do not hold the test up.
S3Options Quick() {
  S3Options options;
  options.retry.pause_first = std::chrono::milliseconds(1);
  options.retry.pause_max = std::chrono::milliseconds(5);
  options.part_bytes_min = kPart;
  options.discard_limit = std::chrono::seconds(60);
  options.tries_sums = false;   // faults are for requests that each test counts
  return options;
}

class S3Faults : public testing::Test {
 protected:
  std::unique_ptr<S3Objects> Open(const S3Options& options = Quick()) {
    auto objects = S3Objects::Open("bucket", stub_.environment(), files_, options);
    EXPECT_OK(objects);
    return std::move(*objects);
  }
  std::string Read(const std::string& key, uint64_t offset = 0, size_t bytes_max = 100) {
    std::string text(bytes_max, '\0');
    const Result<size_t> got =
        objects_->Get(key, offset, std::as_writable_bytes(std::span(text)));
    return got.ok() ? text.substr(0, *got) : got.error().message;
  }
  Status Upload(const std::string& key, const std::string& bytes) {
    KEEL_TRY_ASSIGN(const auto upload, objects_->Upload(key, 100 * kPart));
    KEEL_TRY(upload->Append(BytesOf(bytes)));
    return upload->Finish();
  }

  MemoryFiles files_;
  S3Stub stub_;
  std::unique_ptr<S3Objects> objects_ = Open();
  const std::string large_ = std::string(5 * kPart, 'l') + "end";
};

TEST_F(S3Faults, WithoutAFaultAllGoesAtOnce) {
  EXPECT_OK(objects_->PutIfAbsent("a", "one"));
  EXPECT_EQ(objects_->PutIfAbsent("a", "two").error().code, Code::kExists);
  EXPECT_EQ(Read("a"), "one");
  EXPECT_OK(Upload("large", large_));
  EXPECT_TRUE(stub_.objects()["large"] == large_);
  EXPECT_OK(objects_->Remove({"a"}));
  EXPECT_EQ(objects_->List("", Depth::kAll)->objects.size(), 1u);
  EXPECT_EQ(objects_->Look("large")->bytes, large_.size());
  EXPECT_EQ(stub_.Count("UploadPart"), 6);
}

TEST_F(S3Faults, APutWhoseAnswerIsLostIsOurs) {
  stub_.Fail({"PutObject", Kind::kSwallow});
  EXPECT_OK(objects_->PutIfAbsent("a", "one"));
  EXPECT_EQ(stub_.objects()["a"], "one");
  stub_.Fail({"PutObject", Kind::kLateAnswer, 1, {500, {}, StubErrorBody("InternalError")}});
  EXPECT_OK(objects_->PutIfAbsent("b", "one"));
  // Not even the tries after it are heard.
  stub_.Fail({"PutObject", Kind::kSwallow, 8});
  EXPECT_OK(objects_->PutIfAbsent("c", "one"));
}

TEST_F(S3Faults, APutThatNeverHappensIsAnError) {
  stub_.Fail({"PutObject", Kind::kCut, 8});
  const Status put = objects_->PutIfAbsent("a", "one");
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code, Code::kPeerLost);
  EXPECT_THAT(put.error().message, AllOf(HasSubstr("making s3://bucket/a"),
                                         HasSubstr("the last of 8 tries")));
  stub_.SetObject("b", "other");
  stub_.Fail({"PutObject", Kind::kCut, 8});
  EXPECT_EQ(objects_->PutIfAbsent("b", "one").error().code, Code::kExists);
}

TEST_F(S3Faults, AnOverloadedStoreIsAskedAgain) {
  stub_.SetObject("a", "one");
  const StubAnswer busy{503, {{"Retry-After", "0"}}, StubErrorBody("SlowDown")};
  for (const char* operation : {"GetObject", "HeadObject", "List", "PutObject", "CreateUpload",
                                "UploadPart", "Complete", "Delete", "ListUploads"}) {
    stub_.Fail({operation, Kind::kAnswer, 2, busy});
  }
  EXPECT_EQ(Read("a"), "one");
  EXPECT_OK(objects_->Look("a"));
  EXPECT_OK(objects_->List("", Depth::kAll));
  EXPECT_OK(objects_->Replace("b", "two"));
  EXPECT_OK(Upload("large", large_));
  EXPECT_OK(objects_->Remove({"a"}));
  EXPECT_OK(objects_->Unfinished(""));
  EXPECT_EQ(stub_.Count("Complete"), 3);
  stub_.Fail({"HeadObject", Kind::kAnswer, 8, busy});
  EXPECT_EQ(objects_->Look("a").error().code, Code::kTimeout);
}

TEST_F(S3Faults, AConflictIsNoLoss) {
  stub_.Fail({"PutObject", Kind::kAnswer, 1,
              {409, {}, StubErrorBody("ConditionalRequestConflict")}});
  EXPECT_OK(objects_->PutIfAbsent("a", "one"));
  EXPECT_EQ(stub_.Count("PutObject"), 2);
}

TEST_F(S3Faults, AnErrorInsideAGoodAnswerIsAnError) {
  stub_.Fail({"Complete", Kind::kAnswer, 1, {200, {}, StubErrorBody("InternalError")}});
  EXPECT_OK(Upload("large", large_));
  EXPECT_TRUE(stub_.objects()["large"] == large_);
  stub_.Fail({"Complete", Kind::kAnswer, 1, {200, {}, StubErrorBody("InvalidPart")}});
  const Status upload = Upload("other", large_);
  ASSERT_FALSE(upload.ok());
  EXPECT_THAT(upload.error().message, HasSubstr("InvalidPart"));
  EXPECT_FALSE(stub_.objects().contains("other"));
}

TEST_F(S3Faults, AnUploadWhoseEndIsLostIsOurs) {
  stub_.Fail({"Complete", Kind::kSwallow});
  EXPECT_OK(Upload("large", large_));
  EXPECT_TRUE(stub_.objects()["large"] == large_);
  EXPECT_THAT(objects_->Unfinished("").value(), IsEmpty());
}

TEST_F(S3Faults, AnUploadThatOthersDiscardedIsNot) {
  // An older object of that size is there.
  stub_.SetObject("large", std::string(large_.size(), 'x'));
  auto upload = objects_->Upload("large", 100 * kPart);
  ASSERT_OK((*upload)->Append(BytesOf(large_)));
  const auto unfinished = objects_->Unfinished("");
  ASSERT_THAT(*unfinished, SizeIs(1));
  ASSERT_OK(objects_->Discard((*unfinished)[0]));
  EXPECT_OK(objects_->Discard((*unfinished)[0]));
  stub_.Fail({"Complete", Kind::kCut});
  const Status finished = (*upload)->Finish();
  ASSERT_FALSE(finished.ok());
  EXPECT_THAT(finished.error().message, HasSubstr("NoSuchUpload"));
}

// Whether somebody goes on with it says its newest part, and not its beginning.
TEST_F(S3Faults, AnUploadIsAsYoungAsItsNewestPart) {
  S3Options options = Quick();
  options.page_keys = 2;
  objects_ = Open(options);
  auto upload = objects_->Upload("large", 100 * kPart);
  ASSERT_OK((*upload)->Append(BytesOf(large_.substr(0, 5 * kPart))));
  stub_.Fail({"Complete", Kind::kAnswer, 1, {403, {}, StubErrorBody("AccessDenied")}});
  ASSERT_FALSE((*upload)->Finish().ok());   // all of its parts are there, and it is not finished
  ASSERT_OK_AND_ASSIGN(const auto unfinished, objects_->Unfinished(""));
  ASSERT_THAT(unfinished, SizeIs(1));
  const auto written_at_ns = objects_->LastWritten(unfinished[0]);
  ASSERT_OK(written_at_ns);
  const auto age = std::chrono::nanoseconds(*written_at_ns - unfinished[0].began_at_ns);
  EXPECT_EQ(age, std::chrono::minutes(StubMinutesOfPart(3)));
  EXPECT_EQ(stub_.Count("ListParts"), 3);
  stub_.Fail({"ListParts", Kind::kAnswer, 1, {403, {}, StubErrorBody("AccessDenied")}});
  EXPECT_EQ(objects_->LastWritten(unfinished[0]).error().code, Code::kInvalid);
  upload->reset();
  EXPECT_EQ(objects_->LastWritten(unfinished[0]).error().code, Code::kNotFound);
}

TEST_F(S3Faults, APartThatFailsForGoodFailsTheUploadAndLeavesNothing) {
  stub_.Fail({"UploadPart", Kind::kAnswer, 1, {403, {}, StubErrorBody("AccessDenied")}});
  const Status upload = Upload("large", large_);
  ASSERT_FALSE(upload.ok());
  EXPECT_EQ(upload.error().code, Code::kInvalid);
  EXPECT_THAT(upload.error().message, AllOf(HasSubstr("part "), HasSubstr("AccessDenied"),
                                            HasSubstr("check that these credentials may")));
  EXPECT_EQ(stub_.Count("Complete"), 0);
  EXPECT_EQ(stub_.Count("Abort"), 1);
  EXPECT_THAT(objects_->Unfinished("").value(), IsEmpty());
}

TEST_F(S3Faults, MoreThanWasAnnouncedIsRefused) {
  auto upload = objects_->Upload("a", 3);
  EXPECT_OK((*upload)->Append(BytesOf("abc")));
  EXPECT_EQ((*upload)->Append(BytesOf("d")).error().code, Code::kInvalid);
}

TEST_F(S3Faults, AShortAnswerIsReadAgain) {
  stub_.SetObject("a", "0123456789");
  stub_.Fail({"GetObject", Kind::kShort, 2});
  EXPECT_EQ(Read("a"), "0123456789");
  EXPECT_EQ(stub_.Count("GetObject"), 3);
  // One that announces less than it should.
  stub_.Fail({"GetObject", Kind::kAnswer, 1,
              {206, {{"Content-Range", "bytes 0-9/10"}}, "01234"}});
  EXPECT_EQ(Read("a"), "0123456789");
  stub_.Fail({"GetObject", Kind::kShort, 8});
  EXPECT_THAT(Read("a"), HasSubstr("reading s3://bucket/a: "));
}

TEST_F(S3Faults, AStoreThatIgnoresRangesIsUnderstood) {
  stub_.SetObject("a", "0123456789");
  stub_.Fail({"GetObject", Kind::kWhole, 4});
  EXPECT_EQ(Read("a", 3, 4), "3456");
  EXPECT_EQ(Read("a", 8, 4), "89");
  EXPECT_EQ(Read("a", 10, 4), "");
  EXPECT_EQ(Read("a", 0, 10), "0123456789");
  // More comes than anybody wants: the rest is not waited for.
  stub_.SetObject("large", std::string(8 << 20, 'x') + "end");
  stub_.Fail({"GetObject", Kind::kWhole});
  EXPECT_EQ(Read("large", 5, 4), "xxxx");
}

TEST_F(S3Faults, TheWrongPartIsNotTaken) {
  stub_.SetObject("a", "0123456789");
  const HttpPairs wrong = {{"Content-Range", "bytes 6-9/10"}};
  stub_.Fail({"GetObject", Kind::kAnswer, 1, {206, wrong, "6789"}});
  stub_.Fail({"GetObject", Kind::kAnswer, 1, {206, {{"Content-Range", "some"}}, "4567"}});
  stub_.Fail({"GetObject", Kind::kAnswer, 1, {206, {}, "4567"}});
  EXPECT_EQ(Read("a", 4, 4), "4567");
  EXPECT_EQ(stub_.Count("GetObject"), 4);
}

TEST_F(S3Faults, BytesAfterTheEndAreNone) {
  stub_.SetObject("a", "0123456789");
  EXPECT_EQ(Read("a", 10, 4), "");
  EXPECT_EQ(Read("a", 1000, 4), "");
  EXPECT_EQ(Read("a", 8, 4), "89");
}

TEST_F(S3Faults, DamageOnTheWayIsSentAgain) {
  const StubAnswer damaged{400, {}, StubErrorBody("BadDigest")};
  stub_.Fail({"PutObject", Kind::kAnswer, 2, damaged});
  EXPECT_OK(objects_->Replace("a", "one"));
  stub_.Fail({"PutObject", Kind::kAnswer, 3, damaged});
  EXPECT_EQ(objects_->Replace("a", "one").error().code, Code::kCorrupt);
  for (const StubRequest& request : stub_.requests()) {
    EXPECT_TRUE(request.headers.contains("x-amz-checksum-crc32c"));
  }
}

TEST_F(S3Faults, AStoreThatKnowsNoCrcGetsAnMd5) {
  const StubAnswer refusal{501, {}, StubErrorBody("NotImplemented")};
  stub_.Fail({"PutObject", Kind::kAnswer, 1, refusal});
  EXPECT_OK(objects_->Replace("a", "one"));
  EXPECT_OK(Upload("large", large_));
  const std::vector<StubRequest> requests = stub_.requests();
  EXPECT_TRUE(requests[0].headers.contains("x-amz-checksum-crc32c"));
  for (size_t i = 1; i < requests.size(); ++i) {
    EXPECT_FALSE(requests[i].headers.contains("x-amz-checksum-crc32c"));
    EXPECT_FALSE(requests[i].headers.contains("x-amz-checksum-algorithm"));
    EXPECT_THAT(requests[i].body.substr(0, 1000), Not(HasSubstr("ChecksumCRC32C")));
    if (requests[i].method == "PUT") {
      EXPECT_TRUE(requests[i].headers.contains("content-md5"));
    }
  }
}

TEST_F(S3Faults, GarbageIsNoList) {
  for (const char* garbage : {"", "<html>login</html>", "<ListBucketResult>"}) {
    stub_.Fail({"List", Kind::kAnswer, 1, {200, {}, garbage}});
  }
  EXPECT_OK(objects_->List("", Depth::kAll));
  EXPECT_EQ(stub_.Count("List"), 4);
  stub_.Fail({"List", Kind::kAnswer, 8, {200, {}, "<html>login</html>"}});
  const Result<ObjectListing> listing = objects_->List("", Depth::kAll);
  EXPECT_EQ(listing.error().code, Code::kCorrupt);
  EXPECT_THAT(listing.error().message, HasSubstr("<html>"));
}

TEST_F(S3Faults, WhatIsNoHttpIsAnError) {
  stub_.SetObject("a", "one");
  stub_.Fail({"GetObject", Kind::kRaw, 1, {0, {}, "SSH-2.0-OpenSSH_9.2\r\n"}});
  stub_.Fail({"GetObject", Kind::kRaw, 1, {0, {}, ""}});
  const std::string endless = "HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x') + "\r\n\r\n";
  stub_.Fail({"GetObject", Kind::kRaw, 1, {0, {}, endless}});
  EXPECT_EQ(Read("a"), "one");
  EXPECT_EQ(stub_.Count("GetObject"), 4);
}

TEST_F(S3Faults, ABlackHoleIsLeftAtTheLimit) {
  S3Options options = Quick();
  options.try_limit = std::chrono::milliseconds(200);
  objects_ = Open(options);
  stub_.SetObject("a", "one");
  stub_.Fail({"GetObject", Kind::kBlackHole});
  EXPECT_EQ(Read("a"), "one");
  options.limit = std::chrono::milliseconds(300);
  objects_ = Open(options);
  stub_.Fail({"GetObject", Kind::kBlackHole, 100});
  std::byte one;
  const Result<size_t> got = objects_->Get("a", 0, {&one, 1});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Code::kTimeout) << got.error().message;
}

TEST_F(S3Faults, ABeatIsTriedAgainLongBeforeItsHolderCountsAsGone) {
  S3Options options = Quick();
  options.limit = options.try_limit = std::chrono::hours(1);
  options.beat_first_limit = std::chrono::milliseconds(100);
  objects_ = Open(options);
  stub_.Fail({"PutObject", Kind::kBlackHole});
  ASSERT_OK(objects_->Replace("beat-1", "2"));
  EXPECT_EQ(stub_.Count("PutObject"), 2);
  EXPECT_EQ(Read("beat-1"), "2");
}

TEST_F(S3Faults, AndSoIsTheListOfTheBeat) {
  S3Options options = Quick();
  options.limit = options.try_limit = std::chrono::hours(1);
  options.beat_first_limit = std::chrono::milliseconds(100);
  objects_ = Open(options);
  stub_.SetObject("a", "one");
  stub_.Fail({"List", Kind::kBlackHole});
  const auto listing = objects_->List("", Objects::Depth::kAll);
  ASSERT_OK(listing);
  EXPECT_EQ(listing->objects.size(), 1u);
  EXPECT_EQ(stub_.Count("List"), 2);
}

TEST_F(S3Faults, AnUploadIsGivenUpThoughTheStoreSaysNothing) {
  stub_.Fail({"UploadPart", Kind::kBlackHole, 100});
  auto upload = objects_->Upload("large", 100 * kPart);
  ASSERT_OK((*upload)->Append(BytesOf(large_.substr(0, 2 * kPart + 1))));
  upload->reset();
  EXPECT_EQ(stub_.Count("Abort"), 1);
  EXPECT_THAT(objects_->Unfinished("").value(), IsEmpty());
}

TEST_F(S3Faults, TheServersClockIsTakenOver) {
  stub_.SetObject("a", "one");
  const HttpPairs date = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}};
  stub_.Fail({"GetObject", Kind::kAnswer, 1, {403, date, StubErrorBody("RequestTimeTooSkewed")}});
  EXPECT_EQ(Read("a"), "one");
  EXPECT_THAT(stub_.requests()[1].headers.at("x-amz-date"), HasSubstr("20130524T00"));
  // The answer to HEAD names no error.
  objects_ = Open();
  stub_.Fail({"HeadObject", Kind::kAnswer, 1, {403, date, ""}});
  EXPECT_OK(objects_->Look("a"));
}

TEST_F(S3Faults, TheBucketsRegionIsLearned) {
  stub_.SetObject("a", "one");
  stub_.Fail({"GetObject", Kind::kAnswer, 1,
              {301, {{"x-amz-bucket-region", "eu-west-3"}}, StubErrorBody("PermanentRedirect")}});
  EXPECT_EQ(Read("a"), "one");
  EXPECT_THAT(stub_.requests()[0].headers.at("authorization"), HasSubstr("/us-east-1/s3/"));
  EXPECT_THAT(stub_.requests()[1].headers.at("authorization"), HasSubstr("/eu-west-3/s3/"));
  EXPECT_EQ(Read("a"), "one");
  EXPECT_EQ(stub_.Count("GetObject"), 3);
}

TEST_F(S3Faults, ARefusalToDeleteNamesTheObject) {
  stub_.Fail({"Delete", Kind::kAnswer, 1,
              {200, {}, "<DeleteResult><Error><Key>b</Key><Code>AccessDenied</Code>"
                        "<Message>no</Message></Error></DeleteResult>"}});
  const Status removed = objects_->Remove({"a", "b"});
  EXPECT_EQ(removed.error().code, Code::kInvalid);
  EXPECT_THAT(removed.error().message, AllOf(HasSubstr("s3://bucket/b"), HasSubstr("may delete")));
}

TEST_F(S3Faults, ManyKeysAreRemovedInSeveralRequests) {
  std::vector<std::string> keys;
  for (int i = 0; i < 2500; ++i) {
    keys.push_back("k" + std::to_string(i));
    stub_.SetObject(keys.back(), "x");
  }
  ASSERT_OK(objects_->Remove(keys));
  EXPECT_EQ(stub_.Count("Delete"), 3);
  EXPECT_THAT(stub_.objects(), IsEmpty());
  EXPECT_OK(objects_->Remove({}));
}

TEST_F(S3Faults, NobodyThereIsSaid) {
  Environment environment = stub_.environment();
  environment["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:9";
  auto objects = S3Objects::Open("bucket", environment, files_, Quick());
  const Result<ObjectInfo> info = (*objects)->Look("a");
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, Code::kPeerLost);
  EXPECT_THAT(info.error().message,
              AllOf(HasSubstr("looking at s3://bucket/a"), HasSubstr("127.0.0.1:9"),
                    HasSubstr("check that the store runs, and AWS_ENDPOINT_URL_S3")));
}

TEST_F(S3Faults, ManyThreadsShareOneClient) {
  constexpr int kThreads = 8;
  for (const char* operation : {"PutObject", "UploadPart", "Complete", "GetObject"}) {
    stub_.Fail({operation, Kind::kAnswer, 5, {503, {}, StubErrorBody("SlowDown")}});
    stub_.Fail({operation, Kind::kSwallow, 2});
  }
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::string own = "own-" + std::to_string(i);
      EXPECT_OK(Upload(own, large_));
      std::string held(large_.size(), '\0');
      const auto got = objects_->Get(own, 0, std::as_writable_bytes(std::span(held)));
      EXPECT_OK(got);
      EXPECT_TRUE(held == large_);
      if (objects_->PutIfAbsent("shared", own).ok()) ++winners;
      EXPECT_OK(objects_->List("", Depth::kAll));
      EXPECT_OK(objects_->Remove({own}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(stub_.objects().size(), 1u);
}

TEST_F(S3Faults, AKeyThatS3CannotHoldIsRefused) {
  EXPECT_EQ(objects_->Look("").error().code, Code::kInvalid);
  EXPECT_EQ(objects_->Replace(std::string(1025, 'k'), "x").error().code, Code::kInvalid);
  EXPECT_OK(objects_->Replace(std::string(1024, 'k'), "x"));
}

TEST_F(S3Faults, WhatTheBucketsOwnerHasSetIsToldAsFarAsItMayBeAsked) {
  stub_.Answer("/bucket", {200, {{"x-amz-bucket-region", "eu-west-3"}}, ""});
  stub_.Answer("/bucket?lifecycle=", {404, {}, StubErrorBody("NoSuchLifecycleConfiguration")});
  stub_.Answer("/bucket?versioning=", {403, {}, StubErrorBody("AccessDenied")});
  ASSERT_OK_AND_ASSIGN(const BucketRules rules, objects_->Rules());
  EXPECT_EQ(rules.other_region, "eu-west-3");
  EXPECT_EQ(rules.ends_unfinished, false);
  EXPECT_EQ(rules.keeps_versions, std::nullopt);
}

TEST_F(S3Faults, TheRegionThatATemporaryRedirectNamesIsLearned) {
  stub_.SetObject("a", "one");
  stub_.Fail({"GetObject", Kind::kAnswer, 1,
              {307, {{"x-amz-bucket-region", "eu-west-3"}}, StubErrorBody("TemporaryRedirect")}});
  EXPECT_EQ(Read("a"), "one");
  EXPECT_THAT(stub_.requests()[1].headers.at("authorization"), HasSubstr("/eu-west-3/s3/"));
  // Without a region it is sent again as it was.
  stub_.Fail({"GetObject", Kind::kAnswer, 1, {307, {}, StubErrorBody("TemporaryRedirect")}});
  EXPECT_EQ(Read("a"), "one");
  EXPECT_THAT(stub_.requests()[3].headers.at("authorization"), HasSubstr("/eu-west-3/s3/"));
}

}  // namespace
}  // namespace keel
