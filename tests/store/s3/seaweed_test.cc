// The client over a real server, SeaweedFS: every method, races, and a server that is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/file_helpers.h"
#include "base/random.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"
#include "tests/store/s3/weed_test.h"

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Depth = Objects::Depth;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string RandomText(size_t bytes) {
  Random random(7);
  std::string text(bytes, '\0');
  random.Bytes(std::as_writable_bytes(std::span(text)));
  return text;
}

// Up to so many bytes of the object, or the error in words.
std::string Read(Objects& objects, const std::string& key, uint64_t offset = 0,
                 size_t bytes_max = 100) {
  std::string text(bytes_max, '\0');
  const Result<size_t> got =
      objects.Get(key, offset, std::as_writable_bytes(std::span(text)));
  return got.ok() ? text.substr(0, *got) : got.error().message;
}

std::vector<std::string> KeysOf(const Result<ObjectListing>& listing) {
  EXPECT_OK(listing);
  std::vector<std::string> keys;
  if (!listing.ok()) return keys;
  for (const ObjectInfo& one : listing->objects) keys.push_back(one.key);
  return keys;
}

TEST_F(Seaweed, AnObjectIsThereOnceItIsPut) {
  const std::string key = "step-000000001/manifest.json";
  EXPECT_EQ(objects_->Look(key).error().code, Code::kNotFound);
  std::byte one;
  EXPECT_EQ(objects_->Get(key, 0, {&one, 1}).error().code, Code::kNotFound);
  ASSERT_OK(objects_->PutIfAbsent(key, "first"));
  EXPECT_EQ(Read(*objects_, key), "first");
  const Result<ObjectInfo> info = objects_->Look(key);
  ASSERT_OK(info);
  EXPECT_EQ(info->key, key);
  EXPECT_EQ(info->bytes, 5u);
  const int64_t age_ns = RealClock().WallNanos() - info->changed_at_ns;
  EXPECT_LT(std::abs(age_ns), 600'000'000'000);
  const Result<ObjectListing> listing = objects_->List("", Depth::kAll);
  EXPECT_THAT(KeysOf(listing), ElementsAre(key));
  EXPECT_EQ(listing->objects[0].bytes, 5u);
}

TEST_F(Seaweed, APutOfWhatIsThereIsRefusedUnlessItsBytesAreEqual) {
  ASSERT_OK(objects_->PutIfAbsent("a", "first"));
  EXPECT_OK(objects_->PutIfAbsent("a", "first"));
  for (const char* other : {"second", "", "firs", "first2"}) {
    const Status refused = objects_->PutIfAbsent("a", other);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kExists);
    EXPECT_THAT(refused.error().message, HasSubstr("s3://" + bucket_ + "/a"));
  }
  EXPECT_EQ(Read(*objects_, "a"), "first");
  ASSERT_OK(objects_->Replace("a", "third"));
  EXPECT_EQ(Read(*objects_, "a"), "third");
  ASSERT_OK(objects_->Remove({"a", "never there"}));
  EXPECT_EQ(objects_->Look("a").error().code, Code::kNotFound);
  EXPECT_OK(objects_->PutIfAbsent("a", "second"));
}

TEST_F(Seaweed, OfTwelvePutsAtOnceOneWins) {
  constexpr int kRaces = 5;
  constexpr int kThreads = 12;
  for (int race = 0; race < kRaces; ++race) {
    const std::string key = "race/" + std::to_string(race);
    std::atomic<int> ready{0};
    std::atomic<int> winners{0};
    std::atomic<int> losers{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const std::string bytes = std::string(2000, static_cast<char>('a' + i));
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        const Status put = objects_->PutIfAbsent(key, bytes);
        if (put.ok()) ++winners;
        if (!put.ok() && put.error().code == Code::kExists) ++losers;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1) << key;
    EXPECT_EQ(losers, kThreads - 1) << key;
  }
}

TEST_F(Seaweed, PartsOfAnObjectAreRead) {
  const std::string bytes = RandomText(100'000);
  ASSERT_OK(objects_->Replace("a", bytes));
  EXPECT_EQ(Read(*objects_, "a", 0, 200'000), bytes);
  EXPECT_EQ(Read(*objects_, "a", 50'000, 100), bytes.substr(50'000, 100));
  EXPECT_EQ(Read(*objects_, "a", 99'990, 100), bytes.substr(99'990));
  EXPECT_EQ(Read(*objects_, "a", 100'000, 100), "");
  EXPECT_EQ(Read(*objects_, "a", 5'000'000, 100), "");
  ASSERT_OK(objects_->Replace("empty", ""));
  EXPECT_EQ(Read(*objects_, "empty"), "");
  EXPECT_EQ(objects_->Get("a", 7, {}).value(), 0u);
  EXPECT_EQ(objects_->Get("nothing", 7, {}).error().code, Code::kNotFound);
}

TEST_F(Seaweed, ListsGoOnFromPageToPage) {
  const std::unique_ptr<S3Objects> paged = server_->Open(bucket_, {.page_keys = 7});
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(100 + i);
    keys.push_back("run/step-" + number + "/shard");
    ASSERT_OK(objects_->Replace(keys.back(), number));
  }
  ASSERT_OK(objects_->Replace("run/latest", "x"));
  ASSERT_OK(objects_->Replace("runs-of-others/a", "x"));
  EXPECT_EQ(KeysOf(paged->List("run/step-", Depth::kAll)), keys);
  const Result<ObjectListing> steps = paged->List("run/", Depth::kToSlash);
  EXPECT_THAT(KeysOf(steps), ElementsAre("run/latest"));
  ASSERT_THAT(steps->prefixes, SizeIs(40));
  EXPECT_EQ(steps->prefixes.front(), "run/step-100/");
  EXPECT_EQ(steps->prefixes.back(), "run/step-139/");
  EXPECT_THAT(KeysOf(paged->List("nothing/", Depth::kAll)), IsEmpty());
  ASSERT_OK(paged->Remove(keys));
  EXPECT_THAT(KeysOf(paged->List("run/", Depth::kAll)), ElementsAre("run/latest"));
}

TEST_F(Seaweed, KeysMayHoldWhateverAUrlWouldTakeForItsOwn) {
  const std::vector<std::string> keys = {"a b+c", "k=v&x?y#z", "p%41", "ünï/ß", "q'\"<&>"};
  for (const std::string& key : keys) {
    ASSERT_OK(objects_->PutIfAbsent(key, key));
    EXPECT_EQ(Read(*objects_, key), key);
    EXPECT_OK(objects_->Look(key));
  }
  EXPECT_EQ(KeysOf(objects_->List("", Depth::kAll)).size(), keys.size());
  for (const std::string& key : KeysOf(objects_->List("", Depth::kAll))) {
    EXPECT_THAT(keys, testing::Contains(key));
  }
  ASSERT_OK(objects_->Remove(keys));
  EXPECT_THAT(KeysOf(objects_->List("", Depth::kAll)), IsEmpty());
}

TEST_F(Seaweed, ALargeObjectIsSentInPartsAndSeenOnlyWhole) {
  const std::string bytes = RandomText(40 * kMiB + 12345);
  Result<std::unique_ptr<ObjectUpload>> upload = objects_->Upload("large", bytes.size());
  ASSERT_OK(upload);
  constexpr size_t kPiece = 1'000'000;
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    ASSERT_OK((*upload)->Append(BytesOf(std::string_view(bytes).substr(at, kPiece))));
  }
  EXPECT_EQ(objects_->Look("large").error().code, Code::kNotFound);
  EXPECT_THAT(objects_->Unfinished("").value(), SizeIs(1));
  ASSERT_OK((*upload)->Finish());
  EXPECT_EQ(objects_->Look("large")->bytes, bytes.size());
  EXPECT_TRUE(Read(*objects_, "large", 0, bytes.size() + 1) == bytes);
  EXPECT_EQ(Read(*objects_, "large", 8 * kMiB - 5, 10), bytes.substr(8 * kMiB - 5, 10));
  EXPECT_THAT(objects_->Unfinished("").value(), IsEmpty());
}

TEST_F(Seaweed, ASmallObjectIsSentAtOnce) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8 * kMiB}}) {
    const std::string bytes = RandomText(size);
    Result<std::unique_ptr<ObjectUpload>> upload = objects_->Upload("small", 100 * kMiB);
    ASSERT_OK(upload);
    ASSERT_OK((*upload)->Append(BytesOf(bytes)));
    EXPECT_THAT(objects_->Unfinished("").value(), IsEmpty());
    ASSERT_OK((*upload)->Finish());
    EXPECT_EQ(objects_->Look("small")->bytes, size);
  }
}

TEST_F(Seaweed, AnUploadThatIsGivenUpLeavesNothing) {
  const std::string bytes = RandomText(20 * kMiB);
  {
    Result<std::unique_ptr<ObjectUpload>> upload = objects_->Upload("given-up", 30 * kMiB);
    ASSERT_OK(upload);
    ASSERT_OK((*upload)->Append(BytesOf(bytes)));
    EXPECT_THAT(objects_->Unfinished("").value(), SizeIs(1));
  }
  EXPECT_THAT(objects_->Unfinished("").value(), IsEmpty());
  EXPECT_EQ(objects_->Look("given-up").error().code, Code::kNotFound);
}

TEST_F(Seaweed, UnfinishedUploadsAreListedAndDiscarded) {
  const std::unique_ptr<S3Objects> paged = server_->Open(bucket_, {.page_keys = 2});
  const std::string bytes = RandomText(9 * kMiB);
  std::vector<std::unique_ptr<ObjectUpload>> uploads;
  for (const char* key : {"run/a", "run/b", "run/b", "run/c", "else/d"}) {
    Result<std::unique_ptr<ObjectUpload>> upload = objects_->Upload(key, 20 * kMiB);
    ASSERT_OK(upload);
    ASSERT_OK((*upload)->Append(BytesOf(bytes)));
    uploads.push_back(std::move(*upload));
  }
  Result<std::vector<UnfinishedObject>> found = paged->Unfinished("run/");
  ASSERT_OK(found);
  EXPECT_THAT(*found, SizeIs(4));
  for (const UnfinishedObject& one : *found) {
    EXPECT_THAT(one.key, HasSubstr("run/"));
    const auto written_at_ns = paged->LastWritten(one);
    ASSERT_OK(written_at_ns);
    EXPECT_GE(*written_at_ns, one.began_at_ns);
    ASSERT_OK(paged->Discard(one));
    EXPECT_OK(paged->Discard(one));
  }
  EXPECT_THAT(paged->Unfinished("run/").value(), IsEmpty());
  EXPECT_THAT(paged->Unfinished("").value(), SizeIs(1));
  // Its parts, or its end, find no upload any more.
  EXPECT_FALSE(uploads[0]->Finish().ok());
  EXPECT_EQ(objects_->Look("run/a").error().code, Code::kNotFound);
}

TEST_F(Seaweed, WrongKeysAndAWrongBucketAreNamed) {
  Environment environment = server_->environment();
  const auto refused = [&](const std::string& bucket) {
    auto objects = S3Objects::Open(bucket, environment, files_);
    const Result<ObjectListing> listing = (*objects)->List("", Depth::kAll);
    EXPECT_FALSE(listing.ok());
    return listing.ok() ? Error{} : listing.error();
  };
  const Error no_bucket = refused("no-such-bucket");
  EXPECT_EQ(no_bucket.code, Code::kInvalid);
  EXPECT_THAT(no_bucket.message, HasSubstr("NoSuchBucket"));
  EXPECT_THAT(no_bucket.message, HasSubstr("make the bucket, or correct its name"));
  auto missing = S3Objects::Open("no-such-bucket", environment, files_);
  EXPECT_EQ((*missing)->Look("a").error().code, Code::kInvalid);
  environment["AWS_SECRET_ACCESS_KEY"] = "wrong-secret";
  const Error wrong_secret = refused(bucket_);
  EXPECT_EQ(wrong_secret.code, Code::kInvalid);
  EXPECT_THAT(wrong_secret.message, HasSubstr("SignatureDoesNotMatch"));
  EXPECT_THAT(wrong_secret.message, HasSubstr("check the AWS credentials"));
  EXPECT_THAT(wrong_secret.message, Not(HasSubstr("wrong-secret")));
  environment["AWS_ACCESS_KEY_ID"] = "NOBODY";
  const Error nobody = refused(bucket_);
  EXPECT_EQ(nobody.code, Code::kInvalid);
  EXPECT_THAT(nobody.message, HasSubstr("InvalidAccessKeyId"));
}

TEST_F(Seaweed, AWrongChecksumIsRefused) {
  const Environment environment = server_->environment();
  const auto profile = ReadAwsProfile(environment, files_);
  ASSERT_OK(profile);
  const auto address = AddressOf(bucket_, environment, *profile);
  ASSERT_OK(address);
  S3Client client(*address, environment, *profile, files_, RealClock(), {});
  SumChoice sums;
  sums.Find(client, "a", "a", CancelToken::Never());
  EXPECT_EQ(sums.found(), SumChoice::Found::kCompared);
  EXPECT_TRUE(client.has_crc());
  // And of MD5s.
  client.SendMd5();
  SumChoice again;
  again.Find(client, "a", "a", CancelToken::Never());
  EXPECT_EQ(again.found(), SumChoice::Found::kCompared);
  EXPECT_EQ(objects_->Look("a").error().code, Code::kNotFound);
  EXPECT_THAT(*objects_->Unfinished(""), IsEmpty());
}

TEST_F(Seaweed, AServerThatIsKilledAmidAnUploadLeavesNoObject) {
  S3Options options;
  options.limit = std::chrono::seconds(3);
  options.try_limit = std::chrono::seconds(3);
  const std::unique_ptr<S3Objects> objects = server_->Open(bucket_, options);
  ASSERT_OK(objects->Replace("before", "kept"));
  const std::string bytes = RandomText(16 * kMiB + 1);
  Result<std::unique_ptr<ObjectUpload>> upload = objects->Upload("cut-off", 30 * kMiB);
  ASSERT_OK(upload);
  ASSERT_OK((*upload)->Append(BytesOf(bytes)));
  server_->Kill();
  const Status appended = (*upload)->Append(BytesOf(std::string(8 * kMiB, 'x')));
  const Status finished = appended.ok() ? (*upload)->Finish() : appended;
  ASSERT_FALSE(finished.ok());
  EXPECT_THAT(finished.error().message, HasSubstr("s3://" + bucket_ + "/cut-off"));
  EXPECT_EQ(finished.error().code, Code::kPeerLost) << finished.error().message;
  server_->Restart();
  upload->reset();
  EXPECT_EQ(objects_->Look("cut-off").error().code, Code::kNotFound);
  EXPECT_EQ(Read(*objects_, "before"), "kept");
  EXPECT_THAT(objects_->Unfinished("").value(), IsEmpty());
}

TEST(SeaweedTls, AServerMustHaveACertificateOfAnAuthorityThatWeTrust) {
  const std::string why = WhyNoWeed();
  if (!why.empty()) GTEST_SKIP() << "there is no SeaweedFS: " << why;
  WeedServer server(WeedServer::Speaks::kHttps);
  const std::unique_ptr<S3Objects> objects = server.Open("bucket");
  const std::string bytes = RandomText(3 * kMiB);
  ASSERT_OK(objects->PutIfAbsent("a", bytes));
  EXPECT_TRUE(Read(*objects, "a", 0, bytes.size() + 1) == bytes);
  PosixFiles files;
  Environment environment = server.environment();
  const auto refused = [&] {
    auto client = S3Objects::Open("bucket", environment, files);
    const Result<ObjectInfo> info = (*client)->Look("a");
    EXPECT_FALSE(info.ok());
    return info.ok() ? Error{} : info.error();
  };
  environment["AWS_CA_BUNDLE"] = "";
  const Error unknown = refused();
  EXPECT_EQ(unknown.code, Code::kInvalid);
  EXPECT_THAT(unknown.message, HasSubstr("certificate"));
  EXPECT_THAT(unknown.message, HasSubstr("check AWS_ENDPOINT_URL_S3 and AWS_CA_BUNDLE"));
  environment["AWS_CA_BUNDLE"] = "/nonexistent/ca.pem";
  EXPECT_THAT(refused().message, HasSubstr("/nonexistent/ca.pem"));
  // Plain HTTP to a server that wants TLS.
  environment["AWS_ENDPOINT_URL_S3"].replace(0, 5, "http");
  EXPECT_FALSE(refused().message.empty());
}

}  // namespace
}  // namespace keel
