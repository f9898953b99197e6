// Where keys come from, in which order, and when they are asked for again.
#include "store/s3/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "store/s3/program_output.h"
#include "store/s3/s3_objects.h"
#include "store/s3/times.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/s3/stub.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSecond = 1'000'000'000;

// A clock of the wall that a test sets.
class WallClock : public Clock {
 public:
  TimePoint Monotonic() override { return RealClock().Monotonic(); }
  int64_t WallNanos() override { return now_ns; }
  void SleepUntil(TimePoint when) override { RealClock().SleepUntil(when); }

  int64_t now_ns = ParseIsoTime("2026-01-01T00:00:00Z").value();
};

std::string KeysJson(const std::string& id, const std::string& ends) {
  return R"({"Code": "Success", "AccessKeyId": ")" + id +
         R"(", "SecretAccessKey": "its-secret", "Token": "its-token", "Expiration": ")" + ends +
         "\"}";
}

class Keys : public testing::Test {
 protected:
  S3KeyRing& Ring() {
    profile_ = ReadAwsProfile(environment_, files_).value();
    return ring_.emplace(kAwsDialect, environment_, profile_, files_, clock_, transport_);
  }
  void WriteConfig(const std::string& text) {
    ASSERT_OK(MakeDirs(files_, "/home/.aws"));
    ASSERT_OK(WriteDurably(files_, "/home/.aws/config", text));
    environment_["HOME"] = "/home";
  }
  // It has used the keys OLD, which the container's service gave.
  auto ClientWithOldKeys() {
    clients_ = {{"AWS_ENDPOINT_URL_S3", stub_.url()},
                {"AWS_CONTAINER_CREDENTIALS_FULL_URI", stub_.url() + "/container"}};
    stub_.Answer("/container", {200, {}, KeysJson("OLD", "2999-01-01T01:00:00Z")});
    stub_.SetObject("a", "one");
    auto objects = S3Objects::Open("bucket", clients_, files_);
    EXPECT_OK((*objects)->Look("a"));
    return objects;
  }
  static void OnThreads(const std::function<void()>& what) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back(what);
    for (std::thread& thread : threads) thread.join();
  }
  // How often such a request came.
  size_t Asked(const std::string& path) const {
    const auto requests = stub_.requests();
    return static_cast<size_t>(
        std::count_if(requests.begin(), requests.end(), [&](const StubRequest& request) {
          return request.path.starts_with(path);
        }));
  }

  Environment environment_ = {{"AWS_EC2_METADATA_DISABLED", "true"}};
  Environment clients_;
  AwsProfile profile_;
  MemoryFiles files_;
  WallClock clock_;
  HttpTransport transport_{""};
  S3Stub stub_;
  std::optional<S3KeyRing> ring_;
};

TEST_F(Keys, OfTheEnvironmentComeFirst) {
  WriteConfig("[default]\naws_access_key_id = F\naws_secret_access_key = S\n");
  EXPECT_EQ(Ring().Get()->key_id, "F");
  EXPECT_FALSE(ring_->can_renew());
  environment_["AWS_ACCESS_KEY_ID"] = "E";
  EXPECT_THAT(Ring().Get().error().message, HasSubstr("set both, or none"));
  environment_["AWS_SECRET_ACCESS_KEY"] = "S2";
  environment_["AWS_SESSION_TOKEN"] = "T";
  const Result<S3Credentials> keys = Ring().Get();
  EXPECT_EQ(keys->key_id, "E");
  EXPECT_EQ(keys->token, "T");
}

TEST_F(Keys, NoneAreSaidWithThePlacesThatWereLookedAt) {
  const Error error = Ring().Get().error();
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("AWS_ACCESS_KEY_ID"), HasSubstr("~/.aws")));
}

TEST_F(Keys, OfAProgram) {
  WriteConfig("[default]\ncredential_process = echo '" +
              KeysJson("PROGRAM", "2026-01-01T01:00:00Z") + "'\n");
  const Result<S3Credentials> keys = Ring().Get();
  ASSERT_OK(keys);
  EXPECT_EQ(keys->key_id, "PROGRAM");
  EXPECT_EQ(keys->token, "its-token");
  EXPECT_EQ(keys->ends_at_ns, ParseIsoTime("2026-01-01T01:00:00Z"));
  WriteConfig("[default]\ncredential_process = echo its-secret; exit 3\n");
  const Error failed = Ring().Get().error();
  EXPECT_THAT(failed.message, AllOf(HasSubstr("it ended with code 3"),
                                    Not(HasSubstr("its-secret"))));
  WriteConfig("[default]\ncredential_process = echo its-secret\n");
  EXPECT_THAT(Ring().Get().error().message,
              AllOf(HasSubstr("gave no JSON"), Not(HasSubstr("its-secret"))));
}

TEST_F(Keys, OfAProfileThatIsNotUnderstoodAreNotThoseOfTheMachine) {
  for (const char* kind : {"source_profile = base", "sso_session = mine"}) {
    WriteConfig(std::string("[default]\nrole_arn = arn:aws:iam::1:role/r\n") + kind + "\n");
    const auto keys = Ring().Get();
    ASSERT_FALSE(keys.ok());
    EXPECT_EQ(keys.error().code, Code::kInvalid);
    EXPECT_THAT(keys.error().message,
                AllOf(HasSubstr(std::string(kind).substr(0, 8)), HasSubstr("credential_process")));
  }
}

TEST_F(Keys, OfAContainer) {
  stub_.Answer("/container", {200, {}, KeysJson("CONTAINER", "2026-01-01T01:00:00Z")});
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = stub_.url() + "/container?x=1";
  ASSERT_OK(WriteDurably(files_, "token", "the-token\n"));
  environment_["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "token";
  const Result<S3Credentials> keys = Ring().Get();
  ASSERT_OK(keys);
  EXPECT_EQ(keys->key_id, "CONTAINER");
  EXPECT_EQ(stub_.requests()[0].headers.at("authorization"), "the-token");
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://far.example/keys";
  EXPECT_THAT(Ring().Get().error().message, HasSubstr("use https"));
}

TEST_F(Keys, OfAnInstance) {
  environment_.erase("AWS_EC2_METADATA_DISABLED");
  environment_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = stub_.url() + "/";
  const std::string roles = "/latest/meta-data/iam/security-credentials/";
  stub_.Answer("/latest/api/token", {200, {}, "imds-token"});
  stub_.Answer(roles, {200, {}, "my-role\n"});
  stub_.Answer(roles + "my-role", {200, {}, KeysJson("INSTANCE", "2026-01-01T06:00:00Z")});
  EXPECT_EQ(Ring().Get()->key_id, "INSTANCE");
  EXPECT_EQ(stub_.requests()[1].headers.at("x-aws-ec2-metadata-token"), "imds-token");
  EXPECT_EQ(stub_.requests()[0].method, "PUT");
}

// Many workers that begin at once may be too many for it.
TEST_F(Keys, OfAnInstanceThatIsBusyAreAnErrorThatPasses) {
  environment_.erase("AWS_EC2_METADATA_DISABLED");
  environment_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = stub_.url();
  const std::string roles = "/latest/meta-data/iam/security-credentials/";
  stub_.Answer("/latest/api/token", {503, {}, ""});
  EXPECT_EQ(Ring().Get().error().code, Code::kPeerLost);
  EXPECT_EQ(Asked("/latest/api/token"), 3u);
  stub_.Answer("/latest/api/token", {200, {}, "imds-token"});
  stub_.Answer(roles, {503, {}, ""});
  const Error busy = Ring().Get().error();
  EXPECT_EQ(busy.code, Code::kPeerLost);
  EXPECT_THAT(busy.message, HasSubstr("metadata service answered with status 503"));
  stub_.Answer(roles, {404, {}, ""});
  EXPECT_THAT(Ring().Get().error().message, HasSubstr("no AWS credentials were found"));
  stub_.Answer("/latest/api/token", {404, {}, ""});
  EXPECT_THAT(Ring().Get().error().message, HasSubstr("no AWS credentials were found"));
}

TEST_F(Keys, OfGooglesMachineThatIsBusyAreAnErrorThatPasses) {
  environment_["GCE_METADATA_HOST"] = stub_.url().substr(stub_.url().find("//") + 2);
  const std::string path = "/computeMetadata/v1/instance/service-accounts/default/token";
  stub_.Answer(path, {503, {}, ""});
  S3KeyRing ring(kGoogleDialect, environment_, profile_, files_, clock_, transport_);
  const Error busy = ring.Get().error();
  EXPECT_EQ(busy.code, Code::kPeerLost);
  EXPECT_THAT(busy.message, HasSubstr("answered with status 503"));
  environment_["GCE_METADATA_HOST"] = "127.0.0.1:1";
  EXPECT_THAT(ring.Get().error().message, HasSubstr("no credentials of Google's were found"));
}

TEST_F(Keys, OfAWebIdentity) {
  ASSERT_OK(WriteDurably(files_, "token", "web-token"));
  environment_["AWS_WEB_IDENTITY_TOKEN_FILE"] = "token";
  environment_["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/r";
  environment_["AWS_ENDPOINT_URL"] = stub_.url() + "/";   // of all services, unless one has its own
  stub_.Answer("/", {200, {}, "<AssumeRoleWithWebIdentityResponse>"
                              "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>WEB"
                              "</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t"
                              "</SessionToken><Expiration>2026-01-01T01:00:00Z</Expiration>"
                              "</Credentials></AssumeRoleWithWebIdentityResult>"
                              "</AssumeRoleWithWebIdentityResponse>"});
  const Result<S3Credentials> keys = Ring().Get();
  ASSERT_OK(keys);
  EXPECT_EQ(keys->key_id, "WEB");
  EXPECT_EQ(stub_.requests()[0].path, "/");
  EXPECT_THAT(stub_.requests()[0].body,
              AllOf(HasSubstr("Action=AssumeRoleWithWebIdentity"),
                    HasSubstr("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"),
                    HasSubstr("WebIdentityToken=web-token")));
  stub_.Answer("/sts", {403, {}, "web-token"});
  environment_["AWS_ENDPOINT_URL_STS"] = stub_.url() + "/sts";
  EXPECT_THAT(Ring().Get().error().message,
              AllOf(HasSubstr("status 403"), Not(HasSubstr("web-token"))));
}

TEST_F(Keys, AreRenewedFiveMinutesBeforeTheirEnd) {
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = stub_.url() + "/container";
  stub_.Answer("/container", {200, {}, KeysJson("FIRST", "2026-01-01T01:00:00Z")});
  S3KeyRing& ring = Ring();
  EXPECT_EQ(ring.Get()->key_id, "FIRST");
  stub_.Answer("/container", {200, {}, KeysJson("SECOND", "2026-01-01T02:00:00Z")});
  clock_.now_ns += 54 * 60 * kSecond;
  EXPECT_EQ(ring.Get()->key_id, "FIRST");
  clock_.now_ns += 2 * 60 * kSecond;
  EXPECT_EQ(ring.Get()->key_id, "SECOND");
  // A service that fails is no reason to stop while the keys hold.
  stub_.Answer("/container", {404, {}, ""});
  clock_.now_ns += 61 * 60 * kSecond;
  EXPECT_EQ(ring.Get()->key_id, "SECOND");
  const size_t asked = Asked("/container");
  EXPECT_EQ(ring.Get()->key_id, "SECOND");
  EXPECT_EQ(Asked("/container"), asked);
  clock_.now_ns += 10 * 60 * kSecond;
  EXPECT_FALSE(ring.Get().ok());
}

TEST_F(Keys, ThatHaveNotEndedAreGivenWhileOthersAreFetched) {
  const TempDir folder;
  const auto keys = [](const std::string& id, const std::string& ends) {
    return "echo '" + KeysJson(id, ends) + "'";
  };
  WriteFile(folder.File("program"),
            "if [ -e again ]; then touch asked; while [ ! -e go ]; do sleep 0.01; done; " +
                keys("SECOND", "2026-01-01T03:00:00Z") + "; else touch again; " +
                keys("FIRST", "2026-01-01T01:00:00Z") + "; fi");
  WriteConfig("[default]\ncredential_process = cd " + folder.path() + " && sh program\n");
  S3KeyRing& ring = Ring();
  EXPECT_EQ(ring.Get()->key_id, "FIRST");
  clock_.now_ns += 57 * 60 * kSecond;
  std::atomic<bool> has_ended{false};
  std::thread renewing([&] {
    EXPECT_OK(ring.Get());   // the new ones, unless the machine has no time for the program
    has_ended = true;
  });
  while (!std::ifstream(folder.File("asked"))) RealClock().SleepFor(std::chrono::milliseconds(1));
  EXPECT_EQ(ring.Get()->key_id, "FIRST");
  EXPECT_TRUE(ring.can_renew());
  EXPECT_FALSE(has_ended);
  WriteFile(folder.File("go"), "");
  renewing.join();
}

TEST_F(Keys, OfAProgramThatClosesItsOutputAreWaitedForNoLonger) {
  const auto output =
      OutputOfProgram("echo x; exec >&-; sleep 1000", std::chrono::milliseconds(50));
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, Code::kTimeout);
  EXPECT_EQ(OutputOfProgram("echo x; exec >&-; sleep 0.1", std::chrono::hours(1)).value(), "x\n");
}

TEST_F(Keys, AreAskedForByOneThread) {
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = stub_.url() + "/container";
  stub_.Answer("/container", {200, {}, KeysJson("ONE", "2026-01-01T01:00:00Z")});
  S3KeyRing& ring = Ring();
  OnThreads([&] { EXPECT_EQ(ring.Get()->key_id, "ONE"); });
  EXPECT_EQ(Asked("/container"), 1u);
}

TEST_F(Keys, ThatExpiredAreFetchedAnewByTheClient) {
  const auto objects = ClientWithOldKeys();
  stub_.Answer("/container", {200, {}, KeysJson("NEW", "2999-01-01T01:00:00Z")});
  stub_.Fail({"HeadObject", StubFault::Kind::kAnswer, 1, {400, {}, ""}});
  EXPECT_OK((*objects)->Look("a"));
  stub_.Fail({"PutObject", StubFault::Kind::kAnswer, 1, {403, {}, StubErrorBody("ExpiredToken")}});
  EXPECT_OK((*objects)->Replace("a", "two"));
  EXPECT_EQ(Asked("/container"), 3u);
  EXPECT_THAT(stub_.requests().back().headers.at("authorization"), HasSubstr("Credential=NEW/"));
  EXPECT_EQ(stub_.requests().back().headers.at("x-amz-security-token"), "its-token");
}

TEST_F(Keys, ThatAreRefusedServeOnWhereNoOthersCanBeHad) {
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = stub_.url() + "/container";
  for (const char* end : {"2026-02-01T00:00:00Z", ""}) {
    stub_.Answer("/container", {200, {}, KeysJson("FIRST", end)});
    S3KeyRing& ring = Ring();
    const S3Credentials first = ring.Get().value();
    stub_.Answer("/container", {404, {}, ""});
    const size_t asked = Asked("/container");
    // A burst of refusals asks once.
    for (int i = 0; i < 3; ++i) {
      ring.Renew(first, false);
      EXPECT_TRUE(ring.can_renew());
      EXPECT_EQ(ring.Get()->key_id, "FIRST") << end;
    }
    EXPECT_EQ(Asked("/container"), asked + 1);
    stub_.Answer("/container", {200, {}, KeysJson("SECOND", end)});
    EXPECT_EQ(ring.Get()->key_id, "FIRST");
    clock_.now_ns += 31 * kSecond;
    ring.Renew(first, false);
    EXPECT_EQ(ring.Get()->key_id, "SECOND");
    ring.Renew(first, false);   // they are gone already
    EXPECT_EQ(ring.Get()->key_id, "SECOND");
    EXPECT_EQ(Asked("/container"), asked + 2);
  }
}

TEST_F(Keys, ThatHaveEndedByTheStoresWordsAreNotGivenAgain) {
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = stub_.url() + "/container";
  stub_.Answer("/container", {200, {}, KeysJson("FIRST", "")});
  S3KeyRing& ring = Ring();
  const S3Credentials first = ring.Get().value();
  stub_.Answer("/container", {503, {}, ""});
  ring.Renew(first, true);
  EXPECT_TRUE(ring.can_renew());   // others may be refused meanwhile
  EXPECT_EQ(ring.Get().error().code, Code::kPeerLost);
  stub_.Answer("/container", {200, {}, KeysJson("SECOND", "")});
  EXPECT_EQ(ring.Get()->key_id, "SECOND");
}

TEST_F(Keys, ThatAreRefusedToManyThreadsAreRenewedOnce) {
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = stub_.url() + "/container";
  stub_.Answer("/container", {200, {}, KeysJson("FIRST", "2026-02-01T00:00:00Z")});
  S3KeyRing& ring = Ring();
  const S3Credentials first = ring.Get().value();
  stub_.Answer("/container", {200, {}, KeysJson("SECOND", "2026-02-01T00:00:00Z")});
  OnThreads([&] {
    ring.Renew(first, false);
    EXPECT_EQ(ring.Get()->key_id, "SECOND");
  });
  EXPECT_EQ(Asked("/container"), 2u);
}

TEST_F(Keys, OfAClientOutliveARefusalWithoutAReason) {
  const auto objects = ClientWithOldKeys();
  stub_.Answer("/container", {404, {}, ""});
  stub_.Fail({"HeadObject", StubFault::Kind::kAnswer, 2, {403, {}, ""}});
  EXPECT_EQ((*objects)->Look("a").error().code, Code::kInvalid);
  EXPECT_OK((*objects)->Look("a"));
  EXPECT_EQ(Asked("/container"), 2u);
  EXPECT_THAT(stub_.requests().back().headers.at("authorization"), HasSubstr("Credential=OLD/"));
}

TEST_F(Keys, OfAnInstanceThatFallsSilentAreAnErrorThatPasses) {
  environment_.erase("AWS_EC2_METADATA_DISABLED");
  environment_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = stub_.url();
  const std::string roles = "/latest/meta-data/iam/security-credentials/";
  stub_.Answer("/latest/api/token", {200, {}, "imds-token"});
  stub_.Answer(roles, {200, {}, "my-role\n"});
  stub_.Answer(roles + "my-role", {200, {}, KeysJson("INSTANCE", "2026-01-01T01:00:00Z")});
  S3KeyRing& ring = Ring();
  ASSERT_OK(ring.Get());
  clock_.now_ns += 61 * 60 * kSecond;
  const auto ask = [&] {
    const auto keys = ring.Get();
    return keys.ok() ? Error{Code::kExists, keys->key_id} : keys.error();
  };
  stub_.Answer("/latest/api/token", {403, {}, ""});
  EXPECT_THAT(ask().message, HasSubstr("metadata service answered with status 403"));
  // Silence is no proof any more that this is no instance, so it is asked three times.
  const size_t asked = Asked("/latest/api/token");
  stub_.Fail({"PutObject", StubFault::Kind::kCut, 100});
  const Error cut = ask();
  EXPECT_EQ(cut.code, Code::kPeerLost);
  EXPECT_THAT(cut.message, HasSubstr("the instance's metadata service: 127.0.0.1"));
  EXPECT_GE(Asked("/latest/api/token"), asked + 3);
  environment_["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:1";
  EXPECT_EQ(ask().code, Code::kPeerLost);
  // Nothing else is asked for keys in its place.
  environment_["AWS_ACCESS_KEY_ID"] = "E";
  environment_["AWS_SECRET_ACCESS_KEY"] = "S";
  EXPECT_EQ(ask().code, Code::kPeerLost);
}

TEST_F(Keys, OfGooglesMachineThatFallsSilentAreAnErrorThatPasses) {
  environment_["GCE_METADATA_HOST"] = stub_.url().substr(stub_.url().find("//") + 2);
  stub_.Answer("/computeMetadata/v1/instance/service-accounts/default/token",
               {200, {}, R"({"access_token": "google-token", "expires_in": 3599})"});
  S3KeyRing ring(kGoogleDialect, environment_, profile_, files_, clock_, transport_);
  ASSERT_OK(ring.Get());
  clock_.now_ns += 61 * 60 * kSecond;
  environment_["GCE_METADATA_HOST"] = "127.0.0.1:1";
  const Error silent = ring.Get().error();
  EXPECT_EQ(silent.code, Code::kPeerLost);
  EXPECT_THAT(silent.message, HasSubstr("the metadata service at 127.0.0.1:1"));
}

TEST_F(Keys, AreNotWaitedForBeyondACancel) {
  environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = stub_.url() + "/container";
  stub_.Answer("/container", {200, {}, KeysJson("ONE", "2026-01-01T01:00:00Z")});
  stub_.Fail({"GetObject", StubFault::Kind::kBlackHole, 1});
  S3KeyRing& ring = Ring();
  const CancelToken asking_ends;
  const CancelToken waiting_ends;
  std::thread asking([&] { EXPECT_EQ(ring.Get(asking_ends).error().code, Code::kCancelled); });
  EXPECT_TRUE(stub_.Await("GetObject", 1));
  // Whoever waits for the one that asks goes first.
  std::thread waiting([&] { EXPECT_EQ(ring.Get(waiting_ends).error().code, Code::kCancelled); });
  waiting_ends.Cancel();
  ring.Wake();
  waiting.join();
  EXPECT_EQ(ring.Get(waiting_ends).error().code, Code::kCancelled);
  EXPECT_EQ(Asked("/container"), 1u);
  asking_ends.Cancel();
  transport_.Wake();
  asking.join();
  // For all others nothing has failed.
  EXPECT_EQ(ring.Get(waiting_ends).error().code, Code::kCancelled);
  EXPECT_EQ(ring.Get()->key_id, "ONE");
  EXPECT_OK(ring.Get(waiting_ends));
}

}  // namespace
}  // namespace keel
