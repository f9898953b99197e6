// What clouds are known to say about the end of a machine, and nonsense.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "elastic/notice/formats.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/garbage.h"

namespace keel {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(NoticeTimes, AreReadAsTheCloudsWriteThem) {
  EXPECT_EQ(*ParseIsoTime("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(*ParseIsoTime("2017-09-18T08:22:00Z"), 1505722920 * kSecond);
  EXPECT_EQ(*ParseIsoTime("2024-02-29T23:59:59.123Z"), 1709251199 * kSecond);
  EXPECT_EQ(*ParseHttpTime("Mon, 19 Sep 2016 18:29:47 GMT"), 1474309787 * kSecond);
  EXPECT_EQ(*ParseHttpTime("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
}

TEST(NoticeTimes, NothingElseIsATime) {
  for (const char* text : {"", "now", "2017-09-18", "2017-09-18T08:22:00", "2017-09-18T08:22:00+01",
                           "2017-02-29T08:22:00Z", "2017-13-01T08:22:00Z", "2017-09-18T24:00:00Z",
                           "2017-09-18T08:22:00.Z", "2017-9-18T08:22:00Z", "9999-01-01T00:00:00Z",
                           "-017-09-18T08:22:00Z", "2017-09-18T08:22:00Zz"}) {
    EXPECT_FALSE(ParseIsoTime(text).ok()) << text;
  }
  for (const char* text : {"", "Mon", "Mon, ", "Mon, 19 Sep 2016", "Mon, 19 sep 2016 18:29:47 GMT",
                           "Mon, 31 Sep 2016 18:29:47 GMT", "Mon, 19 Sep 2016 18:29:47 CET",
                           "Mon, 19 Sep 2016 18:60:47 GMT", "Monday, 19 Sep 2016 18:29:47 GMT"}) {
    EXPECT_FALSE(ParseHttpTime(text).ok()) << text;
  }
}

TEST(AwsReplies, NoActionIsNothing) {
  EXPECT_EQ(*ReadAwsAction(404, "<html>404 - Not Found</html>"), NoticeReply());
  EXPECT_EQ(*ReadAwsRebalance(404, ""), NoticeReply());
}

TEST(AwsReplies, EachActionIsAnEnd) {
  for (const std::string action : {"terminate", "stop", "hibernate"}) {
    const auto reply = ReadAwsAction(
        200, "{\"action\": \"" + action + "\", \"time\": \"2017-09-18T08:22:00Z\"}");
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(*reply, (NoticeReply{NoticeWord::kEnd, "spot interruption: " + action,
                                   1505722920 * kSecond}));
  }
  EXPECT_EQ(ReadAwsAction(200, "{\"action\":\"hibernate\"}")->at, std::nullopt);
}

TEST(AwsReplies, ARecommendationIsAHint) {
  const auto reply = ReadAwsRebalance(200, "{\"noticeTime\":\"2020-10-26T15:55:55Z\"}");
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->word, NoticeWord::kHint);
  EXPECT_THAT(reply->text, ::testing::HasSubstr("2020-10-26T15:55:55Z"));
}

TEST(AwsReplies, GarbageIsNoNotice) {
  for (const char* body : {"", "null", "[]", "terminate", "{}", "{\"action\":1}",
                           "{\"action\":\"dance\",\"time\":\"2017-09-18T08:22:00Z\"}",
                           "{\"action\":\"terminate\",\"time\":\"soon\"}",
                           "{\"action\":\"terminate\",\"time\":7}",
                           "{\"action\":\"terminate\",\"time\":\"2017-09-18T08:2",
                           "<html>terminate</html>"}) {
    EXPECT_FALSE(ReadAwsAction(200, body).ok()) << body;
  }
  for (const int status : {0, 100, 204, 301, 302, 401, 403, 500, 503}) {
    EXPECT_FALSE(ReadAwsAction(status, "{\"action\":\"terminate\"}").ok()) << status;
    EXPECT_FALSE(ReadAwsRebalance(status, "{\"noticeTime\":\"x\"}").ok()) << status;
  }
  EXPECT_FALSE(ReadAwsRebalance(200, "{\"noticeTime\":\"a\\nb\"}").ok());
  EXPECT_FALSE(ReadAwsRebalance(200, "{}").ok());
}

TEST(GcpReplies, OneWordSaysIt) {
  EXPECT_EQ(*ReadGcpPreempted(200, "FALSE"), NoticeReply());
  EXPECT_EQ(ReadGcpPreempted(200, "TRUE")->word, NoticeWord::kEnd);
  EXPECT_EQ(ReadGcpPreempted(200, "TRUE\n")->word, NoticeWord::kEnd);
  for (const char* body : {"", "TRUEish", "1", "{\"preempted\":true}", "TRUE FALSE"}) {
    EXPECT_FALSE(ReadGcpPreempted(200, body).ok()) << body;
  }
  for (const int status : {302, 403, 404, 500}) {
    EXPECT_FALSE(ReadGcpPreempted(status, "TRUE").ok()) << status;
  }
}

std::string AzureEvent(const std::string& type, const std::string& before,
                       const std::string& resource = "host_3") {
  return R"({"EventId":"A1","EventStatus":"Scheduled","EventType":")" + type +
         R"(","ResourceType":"VirtualMachine","Resources":[")" + resource +
         R"("],"NotBefore":")" + before + R"("})";
}
std::string AzureList(const std::string& events) {
  return R"({"DocumentIncarnation":2,"Events":[)" + events + "]}";
}

TEST(AzureReplies, APreemptionOfOursIsAnEnd) {
  EXPECT_EQ(*ReadAzureEvents(200, AzureList(""), "host_3"), NoticeReply());
  const std::string preempt = AzureEvent("Preempt", "Mon, 19 Sep 2016 18:29:47 GMT");
  for (const std::string own : {"host_3", "HOST_3", ""}) {
    const auto reply = ReadAzureEvents(200, AzureList(preempt), own);
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(*reply, (NoticeReply{NoticeWord::kEnd, "scheduled event: Preempt",
                                   1474309787 * kSecond}));
  }
  EXPECT_EQ(*ReadAzureEvents(200, AzureList(preempt), "host_4"), NoticeReply());
  // Who is not named at all is meant.
  const std::string bare = R"({"EventType":"Preempt","EventId":"B"})";
  EXPECT_EQ(ReadAzureEvents(200, AzureList(bare), "host_3")->word, NoticeWord::kEnd);
}

TEST(AzureReplies, TheWorstAndTheEarliestOfSeveralCounts) {
  const std::string later = AzureEvent("Terminate", "Mon, 19 Sep 2016 18:40:00 GMT");
  const std::string sooner = AzureEvent("Preempt", "Mon, 19 Sep 2016 18:29:47 GMT");
  const std::string freeze = AzureEvent("Freeze", "Mon, 19 Sep 2016 18:00:00 GMT");
  const auto both = ReadAzureEvents(200, AzureList(freeze + "," + later + "," + sooner), "host_3");
  EXPECT_EQ(both->at, 1474309787 * kSecond);
  EXPECT_EQ(ReadAzureEvents(200, AzureList(freeze), "host_3")->word, NoticeWord::kHint);
  const std::string begun = AzureEvent("Reboot", "");
  EXPECT_EQ(ReadAzureEvents(200, AzureList(later + "," + begun), "host_3")->at, std::nullopt);
}

TEST(AzureReplies, WhatIsOverIsNothing) {
  std::string over = AzureEvent("Preempt", "");
  over.replace(over.find("Scheduled"), 9, "Canceled");
  EXPECT_EQ(*ReadAzureEvents(200, AzureList(over), "host_3"), NoticeReply());
}

TEST(AzureReplies, GarbageIsNoNotice) {
  for (const std::string& body :
       {std::string("{}"), std::string("[]"), std::string("{\"Events\":7}"),
        std::string("{\"Events\":[7]}"), AzureList("{}"), AzureList("{\"EventType\":7}"),
        AzureList(AzureEvent("Preempt", "soon")), AzureList(AzureEvent("Pre\\nempt", "")),
        AzureList("{\"EventType\":\"Preempt\",\"Resources\":7}"),
        AzureList(AzureEvent("Preempt", "")).substr(0, 60)}) {
    EXPECT_FALSE(ReadAzureEvents(200, body, "host_3").ok()) << body;
  }
  for (const int status : {400, 404, 302, 500}) {
    EXPECT_FALSE(ReadAzureEvents(status, AzureList(""), "host_3").ok()) << status;
  }
}

// Pieces of real replies, cut, mixed and flipped: whatever comes, it ends, and an end needs the
// words that say so.
TEST(NoticeReplies, MangledOnesAreNeverMisread) {
  const std::vector<std::string> real = {
      "{\"action\": \"terminate\", \"time\": \"2017-09-18T08:22:00Z\"}",
      "{\"noticeTime\":\"2020-10-26T15:55:55Z\"}", "TRUE",
      AzureList(AzureEvent("Preempt", "Mon, 19 Sep 2016 18:29:47 GMT"))};
  using Reader = std::function<Result<NoticeReply>(const std::string&)>;
  const std::vector<std::pair<Reader, std::string>> readers = {
      {[](const std::string& body) { return ReadAwsAction(200, body); }, "action"},
      {[](const std::string& body) { return ReadAwsRebalance(200, body); }, "noticeTime"},
      {[](const std::string& body) { return ReadGcpPreempted(200, body); }, "RUE"},
      {[](const std::string& body) { return ReadAzureEvents(200, body, "host_3"); }, "EventType"}};
  Garbage garbage(20261122);
  for (int round = 0; round < Rounds(20'000, 4'000); ++round) {
    std::string body = garbage.OneOf(real);
    for (uint64_t change = garbage.Below(4); change > 0 && !body.empty(); --change) {
      const size_t at = garbage.Below(body.size());
      switch (garbage.Below(3)) {
        case 0: body[at] = static_cast<char>(garbage.Below(256)); break;
        case 1: body.resize(at); break;
        default: body.insert(at, garbage.Bytes(8));
      }
    }
    for (const auto& [read, word] : readers) {
      const auto reply = read(body);
      if (!reply.ok() || reply->word == NoticeWord::kNothing) continue;
      const bool says_so = body.find(word) != std::string::npos || word == "RUE" ||
                           body.find("\\u") != std::string::npos;
      EXPECT_TRUE(says_so) << garbage.Where(round) << ": " << body;
      EXPECT_EQ(reply->text.find_first_of("\n\r\t"), std::string::npos) << body;
    }
  }
}

}  // namespace
}  // namespace keel
