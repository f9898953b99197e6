// The gateway's JSON, and the list of endpoints.
#include "store/etcd/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/etcd/access.h"

namespace keel {
namespace {

Json Parsed(const std::string& text) { return ParseJson(text).value(); }

TEST(EtcdRange, OfAPrefixEndsBeforeWhatDoesNotBeginSo) {
  EXPECT_EQ(EtcdRange::Prefix("a/").end, "a0");
  EXPECT_EQ(EtcdRange::Prefix("a\xff").end, "b");
  EXPECT_EQ(EtcdRange::Prefix("").first, std::string(1, '\0'));
  EXPECT_EQ(EtcdRange::Prefix("").end, std::string(1, '\0'));
}

TEST(EtcdMessages, WriteBytesAsBase64AndNumbersAsText) {
  EtcdTxn txn;
  txn.compares = {EtcdModRevisionIs("k", 7), EtcdExists("e")};
  txn.then = {EtcdPut("k", "v", 1234567890123456789)};
  txn.otherwise = {EtcdRead({"k"})};
  EXPECT_EQ(txn.Question(), Parsed(R"({
    "compare": [{"target": "MOD", "key": "aw==", "mod_revision": "7"},
                {"target": "CREATE", "key": "ZQ==", "create_revision": "0", "result": "GREATER"}],
    "success": [{"request_put": {"key": "aw==", "value": "dg==",
                                 "lease": "1234567890123456789"}}],
    "failure": [{"request_range": {"key": "aw=="}}]})"));
}

TEST(EtcdMessages, ReadWhatATransactionFound) {
  const Result<EtcdReply> reply = EtcdTxnReply(Parsed(R"({
    "header": {"revision": "12"},
    "responses": [{"response_put": {}},
                  {"response_range": {"kvs": [{"key": "aw==", "value": "dg==",
                                              "create_revision": "3", "mod_revision": "9"}]}},
                  {"response_range": {"header": {}}}]})"));
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->revision, 12);
  EXPECT_FALSE(reply->succeeded);
  ASSERT_EQ(reply->results.size(), 3u);
  EXPECT_TRUE(reply->results[0].empty());
  ASSERT_EQ(reply->results[1].size(), 1u);
  EXPECT_EQ(reply->results[1][0].value, "v");
  EXPECT_EQ(reply->results[1][0].mod_revision, 9);
  EXPECT_TRUE(reply->results[2].empty());
}

TEST(EtcdMessages, RefuseWhatIsNoneOfEtcds) {
  for (const char* text :
       {"[]", "{}", R"({"header": 1})", R"({"header": {"revision": "x"}})",
        R"({"header": {}, "responses": 1})",
        R"({"header": {}, "responses": [{"response_range": {"kvs": 1}}]})",
        R"({"header": {}, "responses": [{"response_range": {"kvs": [1]}}]})",
        R"({"header": {}, "responses": [{"response_range": {"kvs": [{"key": "?"}]}}]})"}) {
    EXPECT_FALSE(EtcdTxnReply(Parsed(text)).ok()) << text;
  }
}

TEST(EtcdMembers, AreReadFromAList) {
  const auto members = ParseEtcdMembers("h1:2379, h2,[2001:db8::3]:1,h1:2379");
  ASSERT_TRUE(members.ok()) << members.error().message;
  EXPECT_THAT(*members, testing::ElementsAre(EtcdMember{"h1", 2379}, EtcdMember{"h2", 2379},
                                             EtcdMember{"2001:db8::3", 1}));
  EXPECT_EQ(EtcdMemberText(members->back()), "[2001:db8::3]:1");
}

TEST(EtcdMembers, OfABadListAreRefusedByName) {
  for (const char* text : {"", ",", "h1:0", "h1:x", "http://h1:2379", "h 1"}) {
    const auto members = ParseEtcdMembers(text);
    ASSERT_FALSE(members.ok()) << text;
    EXPECT_EQ(members.error().code, Code::kInvalid);
  }
  EXPECT_THAT(ParseEtcdMembers("h1,https://h2").error().message,
              testing::HasSubstr("without a scheme"));
}

}  // namespace
}  // namespace keel
