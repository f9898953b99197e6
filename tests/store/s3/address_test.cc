// Where buckets are, by their URL, the environment and the user's files.
#include "store/s3/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "store/s3/profile.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using testing::HasSubstr;

TEST(BucketUrl, HasABucketAndAPrefix) {
  EXPECT_EQ(ParseBucketUrl("s3://bucket")->bucket, "bucket");
  EXPECT_EQ(ParseBucketUrl("s3://bucket/")->prefix, "");
  const auto url = ParseBucketUrl("s3://my.bucket-1/runs/a b/");
  ASSERT_OK(url);
  EXPECT_EQ(url->bucket, "my.bucket-1");
  EXPECT_EQ(url->prefix, "runs/a b");
}

TEST(BucketUrl, OthersAreRefused) {
  for (const char* text : {"", "bucket", "s3:/bucket", "gcs://bucket", "gs://", "s3://", "s3://a", "s3:///a",
                           "s3://a b", "s3://a..b", "s3://user@host/x",
                           "s3://a234567890123456789012345678901234567890123456789012345678901234"}) {
    const auto url = ParseBucketUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().code, Code::kInvalid);
    EXPECT_THAT(url.error().message, HasSubstr("s3://BUCKET"));
  }
}

TEST(BucketUrl, GooglesHasItsOwnScheme) {
  const auto url = ParseBucketUrl("gs://bucket/run");
  ASSERT_OK(url);
  EXPECT_EQ(url->dialect, &kGoogleDialect);
  EXPECT_EQ(url->bucket + " " + url->prefix, "bucket run");
  EXPECT_EQ(ParseBucketUrl("s3://bucket")->dialect, &kAwsDialect);
}

TEST(S3Address, AwsIsAskedByTheBucketsHost) {
  const S3Address plain{"bucket", "eu-west-1"};
  EXPECT_EQ(plain.scheme() + "://" + plain.host() + plain.PathOf("a b/c"),
            "https://bucket.s3.eu-west-1.amazonaws.com/a%20b/c");
  EXPECT_EQ(plain.PathOf(""), "/");
  const S3Address dotted{"my.bucket", "eu-west-1"};
  EXPECT_EQ(dotted.host() + dotted.PathOf("a"), "s3.eu-west-1.amazonaws.com/my.bucket/a");
  EXPECT_EQ(S3Address({"bucket", "cn-north-1"}).host(), "bucket.s3.cn-north-1.amazonaws.com.cn");
}

TEST(S3Address, AnOwnStoreIsAskedByPath) {
  S3Address own{"bucket", "us-east-1"};
  own.own = *ParseStoreUrl("http://127.0.0.1:9000/", "a test");
  EXPECT_EQ(own.scheme() + "://" + own.host() + own.PathOf("a"), "http://127.0.0.1:9000/bucket/a");
  EXPECT_EQ(own.PathOf(""), "/bucket");
  own.own = *ParseStoreUrl("https://store.example:443/below", "a test");
  EXPECT_EQ(own.host() + own.PathOf("a"), "store.example/below/bucket/a");
  for (const char* url : {"", "127.0.0.1:9000", "ftp://h", "http://", "http://u@h", "http://h?x"}) {
    EXPECT_FALSE(ParseStoreUrl(url, "a test").ok()) << url;
  }
}

class Profiles : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_OK(MakeDirs(files_, "/home/.aws"));
    ASSERT_OK(WriteDurably(files_, "/home/.aws/" + name, text));
  }
  MemoryFiles files_;
  Environment environment_{{"HOME", "/home"}};
};

TEST_F(Profiles, BothFilesGiveOneProfile) {
  Write("credentials", "[default]\naws_access_key_id = A\n[work]\naws_access_key_id = W\n");
  Write("config", "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-west-2\n"
                  "endpoint_url = http://store:9000\n");
  const auto usual = ReadAwsProfile(environment_, files_);
  ASSERT_OK(usual);
  EXPECT_EQ(usual->Get("aws_access_key_id"), "A");
  EXPECT_EQ(AwsRegion(environment_, *usual), "eu-west-1");
  environment_["AWS_PROFILE"] = "work";
  const auto work = ReadAwsProfile(environment_, files_);
  ASSERT_OK(work);
  EXPECT_EQ(work->Get("aws_access_key_id"), "W");
  EXPECT_EQ(AddressOf("bucket", environment_, *work)->host(), "store:9000");
  environment_["AWS_REGION"] = "us-west-1";
  environment_["AWS_ENDPOINT_URL"] = "http://other:1";
  EXPECT_EQ(AddressOf("bucket", environment_, *work)->region, "us-west-1");
  EXPECT_EQ(AddressOf("bucket", environment_, *work)->host(), "other:1");
  environment_["AWS_ENDPOINT_URL_S3"] = "http://best:1";
  EXPECT_EQ(AddressOf("bucket", environment_, *work)->host(), "best:1");
}

TEST_F(Profiles, WithoutFilesThereAreDefaults) {
  const auto profile = ReadAwsProfile({}, files_);
  ASSERT_OK(profile);
  EXPECT_EQ(AddressOf("bucket", {}, *profile)->host(), "bucket.s3.us-east-1.amazonaws.com");
}

TEST_F(Profiles, OneThatIsAskedForMustBeThere) {
  environment_["AWS_PROFILE"] = "nowhere";
  const auto profile = ReadAwsProfile(environment_, files_);
  ASSERT_FALSE(profile.ok());
  EXPECT_THAT(profile.error().message, HasSubstr("'nowhere'"));
}

}  // namespace
}  // namespace keel
