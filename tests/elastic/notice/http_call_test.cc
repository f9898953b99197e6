// What comes back of a request, and what a bad server can do: nothing but cost its own request.
#include "elastic/notice/http_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/notice/poller.h"
#include "tests/harness/fake_http.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class Calls : public ::testing::Test {
 protected:
  HttpBase Base(const std::string& prefix = "") const {
    return {"127.0.0.1", server_.port(), prefix};
  }
  // `limit`: against hanging, where the server is to answer.
  Result<HttpReply> Call(const HttpRequest& request, const std::string& prefix = "") {
    std::optional<Result<HttpReply>> got;
    HttpCall call(loop_, Base(prefix), request, [&](const auto& reply) {
      EXPECT_FALSE(got.has_value());
      got = reply;
    });
    loop_.restart();
    loop_.run();
    return got.value_or(Error{Code::kForeign, "nothing was called"});
  }
  Result<HttpReply> Get(const std::string& target, Duration limit = 60s) {
    return Call({"GET", target, {}, limit});
  }

  FakeHttp server_;
  boost::asio::io_context loop_;
};

TEST_F(Calls, AReplyComesWithItsStatusBodyAndTag) {
  server_.Answer("GET /a/b", 200, "TRUE", "ETag: 1a2b\r\n");
  const auto reply = Call({"GET", "/b", {{"Metadata-Flavor", "Google"}}, 60s}, "/a");
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "TRUE");
  EXPECT_EQ(reply->etag, "1a2b");
  EXPECT_THAT(server_.requests().at(0), HasSubstr("Metadata-Flavor: Google\r\n"));
  EXPECT_THAT(server_.requests().at(0), HasSubstr("Host: 127.0.0.1:"));
  EXPECT_EQ(Get("/else")->status, 404);
}

TEST_F(Calls, APutSaysThatItHasNoBody) {
  server_.Answer("PUT /token", 200, "abc");
  EXPECT_EQ(Call({"PUT", "/token", {{"X-Life", "60"}}, 60s})->body, "abc");
  EXPECT_THAT(server_.requests().at(0), HasSubstr("Content-Length: 0\r\n"));
}

TEST_F(Calls, ARedirectionIsAReplyAndNotFollowed) {
  server_.Answer("GET /here", 302, "", "Location: " + server_.url() + "/there\r\n");
  EXPECT_EQ(Get("/here")->status, 302);
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(Calls, ASilentServerCostsItsLimit) {
  server_.Hang("GET /silent");
  server_.Hang("GET /half", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nTRU");
  server_.Hang("GET /head", "HTTP/1.1 200 OK\r\nX-A: ");
  for (const char* target : {"/silent", "/half", "/head"}) {
    const auto reply = Get(target, 100ms);
    ASSERT_FALSE(reply.ok()) << target;
    EXPECT_EQ(reply.error().code, Code::kTimeout) << reply.error().message;
    EXPECT_THAT(reply.error().message, HasSubstr("did not answer within 100 ms"));
  }
}

TEST_F(Calls, FloodsAndGarbageAreErrors) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  server_.Answer("GET /huge", 200, std::string(1 << 20, 'x'));
  server_.AnswerRaw("GET /endless", ok + "\r\n" + std::string(1 << 20, 'x'));
  server_.AnswerRaw("GET /chunks", ok + "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" +
                                       std::string(1 << 20, 'x'));
  server_.AnswerRaw("GET /headers", ok + "X-A: " + std::string(1 << 20, 'x'));
  server_.AnswerRaw("GET /garbage", std::string("\0\1\2\xff\r\n\r\n", 8));
  server_.AnswerRaw("GET /nothing", "");
  server_.AnswerRaw("GET /short", ok + "Content-Length: 100\r\n\r\nTRUE");
  server_.AnswerRaw("GET /negative", ok + "Content-Length: -1\r\n\r\nTRUE");
  for (const char* target : {"/huge", "/endless", "/chunks", "/headers", "/garbage", "/nothing",
                             "/short", "/negative"}) {
    const auto reply = Get(target);
    ASSERT_FALSE(reply.ok()) << target;
    EXPECT_NE(reply.error().code, Code::kTimeout) << reply.error().message;
  }
}

TEST_F(Calls, AServerThatIsGoneIsAnError) {
  server_.Close();
  const auto reply = Get("/");
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, Code::kPeerLost);
}

TEST_F(Calls, OneThatIsNotWantedAnyMoreIsNeverHeardOf) {
  server_.Hang("GET /silent");
  { const HttpCall call(loop_, Base(), {"GET", "/silent", {}, 60s}, [](const auto&) { FAIL(); }); }
  loop_.run();
}

TEST_F(Calls, APollerPassesOnWhatItsWatchSays) {
  server_.Answer("GET /computeMetadata/v1/instance/preempted", 200, "FALSE");
  server_.Hang("GET /computeMetadata/v1/instance/preempted?wait_for_change=true");
  std::vector<NoticeEvent::Kind> kinds;
  NoticePoller poller(loop_, RealClock(), Base(), {.clouds = {Cloud::kGcp}},
                      [&](const NoticeEvent& event) {
                        kinds.push_back(event.kind);
                        if (event.kind == NoticeEvent::Kind::kLeave) loop_.stop();
                      });
  std::thread preempts([&] {
    const std::string waits = "GET /computeMetadata/v1/instance/preempted?wait_for_change=true";
    EXPECT_TRUE(server_.AwaitAsked(waits, 1));
    server_.Answer(waits, 200, "TRUE");
  });
  loop_.run();
  preempts.join();
  using Kind = NoticeEvent::Kind;
  EXPECT_THAT(kinds, ::testing::ElementsAre(Kind::kFound, Kind::kAnnounced, Kind::kLeave));
}

}  // namespace
}  // namespace keel
