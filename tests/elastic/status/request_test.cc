// Who is given what: methods, paths, tokens, names.
#include "elastic/status/request.h"

#include <gtest/gtest.h>

#include <string>

namespace keel {
namespace {

constexpr const char* kToken = "0123456789abcdef";

StatusAnswer Ask(std::string_view target, std::string_view method = "GET",
                 std::string_view host = "127.0.0.1:8090") {
  return JudgeRequest({method, target, host, ""}, "");
}

StatusAnswer AskWithToken(std::string_view target, std::string_view authorization = "") {
  return JudgeRequest({"GET", target, "train.example.org:8090", authorization}, kToken);
}

TEST(StatusRequest, ThereAreThreeThingsToGet) {
  EXPECT_EQ(Ask("/"), StatusAnswer::kPage);
  EXPECT_EQ(Ask("/?whatever"), StatusAnswer::kPage);
  EXPECT_EQ(Ask("/api"), StatusAnswer::kApi);
  EXPECT_EQ(Ask("/metrics?a=b"), StatusAnswer::kMetrics);
  for (const char* other : {"", "//", "/api/", "/index.html", "/../api", "*", "/API", "http://a/"}) {
    EXPECT_EQ(Ask(other), StatusAnswer::kNotFound) << other;
  }
}

TEST(StatusRequest, NothingButGetIsServed) {
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "get", ""}) {
    EXPECT_EQ(Ask("/", method), StatusAnswer::kNotGet) << method;
    EXPECT_EQ(JudgeRequest({method, "/", "", ""}, kToken), StatusAnswer::kNotGet) << method;
  }
}

TEST(StatusRequest, WhereATokenIsNeededOnlyThatOneServes) {
  const std::string token = kToken;
  EXPECT_EQ(AskWithToken("/?token=" + token), StatusAnswer::kPage);
  EXPECT_EQ(AskWithToken("/api?a=b&token=" + token + "&c"), StatusAnswer::kApi);
  EXPECT_EQ(AskWithToken("/metrics", "Bearer " + token), StatusAnswer::kMetrics);
  for (const std::string& target :
       {std::string("/"), std::string("/?token="), "/?token=" + token.substr(1),
        "/?token=" + token + "0", "/?token=" + token + token, "/?xtoken=" + token,
        "/token=" + token, std::string("/?token=0123456789abcdeF"),
        "/?token=wrong&token=" + token}) {
    EXPECT_EQ(AskWithToken(target), StatusAnswer::kNoToken) << target;
  }
  for (const std::string& header : {token, "bearer" + token, "Basic " + token, std::string("Bear"),
                                    std::string("Bearer "), "Bearer  " + token,
                                    std::string("Bearer 0123456789ABCDEF")}) {
    EXPECT_EQ(AskWithToken("/", header), StatusAnswer::kNoToken) << header;
  }
  for (const char* scheme : {"bearer ", "BEARER ", "beaREr "}) {
    EXPECT_EQ(AskWithToken("/", scheme + token), StatusAnswer::kPage) << scheme;
  }
  // Nor does who lacks it learn what there is.
  EXPECT_EQ(AskWithToken("/nothing"), StatusAnswer::kNoToken);
}

TEST(StatusRequest, WithoutATokenOnlyNamesOfThisMachineServe) {
  for (const char* host : {"", "localhost", "localhost:1", "127.0.0.1", "127.1.2.3:80", "[::1]",
                           "[::1]:8090"}) {
    EXPECT_EQ(Ask("/", "GET", host), StatusAnswer::kPage) << host;
  }
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80",
                           "[::2]", "10.0.0.1", "127.evil", "xlocalhost", "[::1].evil"}) {
    EXPECT_EQ(Ask("/", "GET", host), StatusAnswer::kOtherHost) << host;
  }
}

TEST(StatusRequest, ATokenIsLongAndPlain) {
  EXPECT_TRUE(CheckStatusToken(kToken).ok());
  EXPECT_TRUE(CheckStatusToken("aZ09-_.~aZ09-_.~").ok());
  for (const char* token : {"", "short", "0123456789abcde", "0123456789abcde f",
                            "0123456789abcde&f", "0123456789abcd%20", "0123456789abcdeé"}) {
    EXPECT_FALSE(CheckStatusToken(token).ok()) << token;
  }
}

}  // namespace
}  // namespace keel
