// AWS's published examples of signatures: its test suite of version 4, and S3's documentation.
#include "store/s3/sign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "store/s3/hashes.h"
#include "store/s3/times.h"

namespace keel {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

int64_t At(const std::string& iso) { return ParseIsoTime(iso).value(); }

const S3Credentials kSuiteKeys = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
const SigningScope kSuiteScope = {"us-east-1", "service", At("2015-08-30T12:36:00Z")};

// Of AWS's suite: a GET without a body.
std::string SuiteSignature(const HttpPairs& query, HttpPairs headers,
                           const S3Credentials& keys = kSuiteKeys) {
  headers.emplace_back("Host", "example.amazonaws.com");
  headers.emplace_back("X-Amz-Date", "20150830T123600Z");
  return Authorization({"GET", "/", query, headers, HexText(Sha256Of(""))}, keys, kSuiteScope);
}

TEST(SignV4, AwsSuiteGetVanilla) {
  EXPECT_EQ(SuiteSignature({}, {}),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(SignV4, AwsSuiteQueryIsSorted) {
  EXPECT_THAT(SuiteSignature({{"Param2", "value2"}, {"Param1", "value1"}}, {}),
              EndsWith("b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
}

TEST(SignV4, AwsSuiteHeadersAreTrimmedAndJoined) {
  EXPECT_THAT(SuiteSignature({}, {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\" "}}),
              EndsWith("acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"));
  EXPECT_THAT(SuiteSignature({}, {{"My-Header1", "value2"}, {"My-Header1", "value2"},
                                  {"My-Header1", "value1"}}),
              EndsWith("c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"));
}

TEST(SignV4, AwsSuiteSessionToken) {
  S3Credentials keys = kSuiteKeys;
  keys.token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
  EXPECT_THAT(SuiteSignature({}, {{"X-Amz-Security-Token", keys.token}}, keys),
              EndsWith("07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"));
}

// The examples of "Signature Calculations for the Authorization Header" in S3's documentation.
class SignS3 : public testing::Test {
 protected:
  std::string Signature(const std::string& method, const std::string& path, const HttpPairs& query,
                        HttpPairs headers, const std::string& body = "") {
    const std::string payload = HexText(Sha256Of(body));
    headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    headers.emplace_back("x-amz-content-sha256", payload);
    headers.emplace_back("x-amz-date", "20130524T000000Z");
    return Authorization({method, path, query, headers, payload},
                         {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
                         {"us-east-1", "s3", At("2013-05-24T00:00:00Z")});
  }
};

TEST_F(SignS3, GetAnObject) {
  EXPECT_EQ(Signature("GET", "/test.txt", {}, {{"Range", "bytes=0-9"}}),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_F(SignS3, PutAnObject) {
  EXPECT_THAT(Signature("PUT", "/test%24file.text", {},
                        {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                         {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                        "Welcome to Amazon S3."),
              EndsWith("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST_F(SignS3, QueriesWithAndWithoutValues) {
  EXPECT_THAT(Signature("GET", "/", {{"lifecycle", ""}}, {}),
              EndsWith("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  EXPECT_THAT(Signature("GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}),
              EndsWith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST_F(SignS3, NoSecretIsInIt) {
  EXPECT_THAT(Signature("GET", "/", {}, {}), Not(HasSubstr("wJalrXUtnFEMI")));
}

}  // namespace
}  // namespace keel
