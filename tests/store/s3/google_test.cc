// Google's dialect, against a store of our own that speaks both. Google's own was never reached.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "store/s3/s3_objects.h"
#include "store/s3/times.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/s3/stub.h"

namespace keel {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr uint64_t kPartOfGoogles = uint64_t{64} << 10;

class Google : public testing::Test {
 protected:
  std::unique_ptr<S3Objects> Open(const Environment& environment) {
    S3Options options;
    options.retry.pause_first = std::chrono::milliseconds(1);
    options.retry.pause_max = std::chrono::milliseconds(5);
    options.part_bytes_min = kPartOfGoogles;
    auto objects = S3Objects::Open("bucket", environment, files_, options, kGoogleDialect);
    EXPECT_OK(objects);
    return std::move(*objects);
  }
  // Of requests to the store itself.
  std::vector<StubRequest> Asked() const {
    std::vector<StubRequest> asked;
    for (const StubRequest& one : stub_.requests()) {
      if (one.path.starts_with("/bucket")) asked.push_back(one);
    }
    return asked;
  }

  MemoryFiles files_;
  S3Stub stub_;
};

TEST_F(Google, AllGoesWithTheMachinesTokenAndNoHeaderOfAwss) {
  const auto objects = Open(stub_.google_environment());
  EXPECT_EQ(objects->name(), "gs://bucket");
  ASSERT_OK(objects->PutIfAbsent("a", "one"));
  EXPECT_EQ(objects->PutIfAbsent("a", "two").error().code, Code::kExists);
  ASSERT_OK(objects->Replace("b", "two"));
  const std::string large = std::string(3 * kPartOfGoogles, 'l') + "end";
  ASSERT_OK_AND_ASSIGN(const auto upload, objects->Upload("large", 10 * kPartOfGoogles));
  ASSERT_OK(upload->Append(BytesOf(large)));
  ASSERT_OK(upload->Finish());
  EXPECT_TRUE(stub_.objects()["large"] == large);
  EXPECT_EQ(objects->List("", Objects::Depth::kAll)->objects.size(), 3u);
  ASSERT_OK(objects->Remove({"a", "b", "none"}));
  EXPECT_EQ(stub_.objects().size(), 1u);
  for (const StubRequest& one : Asked()) {
    EXPECT_EQ(one.headers.at("authorization"), "Bearer google-token") << one.path;
    for (const auto& [name, value] : one.headers) {
      EXPECT_THAT(name, Not(StartsWith("x-amz-"))) << one.operation;
    }
    const bool has_body = one.operation == "PutObject" || one.operation == "UploadPart";
    EXPECT_EQ(one.headers.contains("x-goog-hash"), has_body) << one.operation;
    if (has_body) {
      EXPECT_THAT(one.headers.at("x-goog-hash"), StartsWith("crc32c="));
    }
  }
  EXPECT_EQ(Asked()[0].headers.at("x-goog-if-generation-match"), "0");
  // One for a key; and once for the token.
  EXPECT_EQ(stub_.Count("DeleteObject"), 3);
  EXPECT_EQ(stub_.requests()[0].headers.at("metadata-flavor"), "Google");
  EXPECT_EQ(stub_.requests().size(), Asked().size() + 1);
}

TEST_F(Google, AnUploadWhoseLastAnswerIsLostIsKnownByItsMark) {
  const auto objects = Open(stub_.google_environment());
  stub_.Fail({"Complete", StubFault::Kind::kSwallow});
  ASSERT_OK_AND_ASSIGN(const auto upload, objects->Upload("large", 10 * kPartOfGoogles));
  ASSERT_OK(upload->Append(BytesOf(std::string(2 * kPartOfGoogles, 'l'))));
  EXPECT_OK(upload->Finish());
  EXPECT_EQ(stub_.objects()["large"].size(), 2 * kPartOfGoogles);
}

TEST_F(Google, ATokenThatIsRefusedIsAskedForAgain) {
  const auto objects = Open(stub_.google_environment());
  ASSERT_OK(objects->Replace("a", "one"));
  stub_.Fail({"PutObject", StubFault::Kind::kAnswer, 1,
              {401, {}, StubErrorBody("AuthenticationRequired")}});
  EXPECT_OK(objects->Replace("a", "two"));
  EXPECT_EQ(stub_.requests().size(), Asked().size() + 2);
  stub_.Fail({"PutObject", StubFault::Kind::kAnswer, 9,
              {401, {}, StubErrorBody("AuthenticationRequired")}});
  const Status refused = objects->Replace("a", "three");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("check Google's credentials"));
}

TEST_F(Google, KeysOfTheEnvironmentSignInGooglesWay) {
  Environment environment = stub_.google_environment();
  environment["GS_ACCESS_KEY_ID"] = "GOOGID";
  environment["GS_SECRET_ACCESS_KEY"] = "secret";
  const auto objects = Open(environment);
  ASSERT_OK(objects->Replace("a", "one"));
  ASSERT_EQ(stub_.requests().size(), 1u) << "nobody else is asked";
  EXPECT_THAT(stub_.requests()[0].headers.at("authorization"),
              StartsWith("GOOG4-HMAC-SHA256 Credential=GOOGID/"));
  environment.erase("GS_ACCESS_KEY_ID");
  const Status half = Open(environment)->Replace("a", "two");
  EXPECT_THAT(half.error().message,
              HasSubstr("only one of GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY is set"));
}

// The expected value was computed by a program of its own, after Google's description.
TEST(GoogleSignature, IsThatOfItsDescription) {
  const std::string empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const RequestToSign request{"GET", "/bucket/a", {},
                              {{"Host", "storage.googleapis.com"},
                               {"x-goog-content-sha256", empty},
                               {"x-goog-date", "20260102T030405Z"}}, empty};
  const std::string value = Authorization(
      request, {"GOOGID", "secret"},
      {"auto", "storage", *ParseIsoTime("2026-01-02T03:04:05Z"), &kGoogleDialect});
  EXPECT_EQ(value, "GOOG4-HMAC-SHA256 Credential=GOOGID/20260102/auto/storage/goog4_request, "
                   "SignedHeaders=host;x-goog-content-sha256;x-goog-date, "
                   "Signature="
                   "9280256fac30c7a8601ad91b35cd46a5a427383588a829b179a1a11812958cde");
}

TEST_F(Google, WithoutAnyCredentialsItSaysWhatToSet) {
  const auto objects = Open({{"STORAGE_EMULATOR_HOST", stub_.url()},
                             {"GCE_METADATA_HOST", "127.0.0.1:1"}});
  const Status refused = objects->Replace("a", "one");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("GS_ACCESS_KEY_ID"));
}

TEST(GoogleAddress, IsGooglesByPath) {
  MemoryFiles files;
  const auto address = GoogleAddressOf("bucket", {});
  ASSERT_OK(address);
  EXPECT_EQ(address->scheme() + "://" + address->host() + address->PathOf("a"),
            "https://storage.googleapis.com/bucket/a");
  EXPECT_FALSE(GoogleAddressOf("bucket", {{"STORAGE_EMULATOR_HOST", "host"}}).ok());
}

}  // namespace
}  // namespace keel
