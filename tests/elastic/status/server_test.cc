// The server, over real connections: what it answers, and what bad clients can do: nothing but cost
// their own connection.
#include "elastic/status/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "elastic/status/http_server.h"
#include "tests/elastic/status/some_status.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/raw_client.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "0123456789abcdef";

class StatusServerTest : public ::testing::Test {
 protected:
  void Open(const std::string& token = "", JobStatus status = JobStatus(JobOf())) {
    auto server = StatusServer::Open({"127.0.0.1", 0, token}, std::move(status), RealClock());
    ASSERT_OK(server);
    server_ = *std::move(server);
  }
  HttpText Get(const std::string& target, const std::string& headers = "") const {
    return HttpGet(server_->port(), target, headers);
  }
  HttpText Ask(const std::string& request) const { return HttpAsk(server_->port(), request); }
  // What was posted so far can be seen from then on.
  void AwaitPosted() const {
    std::promise<void> done;
    server_->Post([&done](JobStatus&) { done.set_value(); });
    done.get_future().wait();
  }

  std::unique_ptr<StatusServer> server_;
};

TEST_F(StatusServerTest, ServesThePageTheJsonAndTheMetrics) {
  Open();
  server_->Post([](JobStatus& status) { status.OnEpoch(EpochOf(3, 4, 2), kBegin); });
  AwaitPosted();
  const HttpText page = Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.head, HasSubstr("Content-Type: text/html; charset=utf-8"));
  EXPECT_THAT(page.head, HasSubstr("Content-Length: " + std::to_string(page.body.size())));
  EXPECT_THAT(page.head, HasSubstr("Cache-Control: no-store"));
  EXPECT_THAT(page.head, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(page.body, HasSubstr("</html>"));
  // Only what the header's policy names may run.
  const size_t nonce_at = page.head.find("script-src 'nonce-");
  ASSERT_NE(nonce_at, std::string::npos) << page.head;
  const std::string nonce = page.head.substr(nonce_at + 18, 16);
  EXPECT_THAT(page.body, HasSubstr("<script nonce=\"" + nonce + "\""));
  const HttpText api = Get("/api");
  EXPECT_THAT(api.head, HasSubstr("Content-Type: application/json"));
  const auto json = ParseJson(api.body);
  ASSERT_OK(json);
  EXPECT_EQ((*json)["epoch"]["number"], 3);
  const HttpText metrics = Get("/metrics");
  EXPECT_THAT(metrics.head, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(metrics.body, HasSubstr("\nkeel_epoch 3\n"));
  EXPECT_EQ(Get("/else").status, 404);
}

TEST_F(StatusServerTest, RefusesWhatIsNotGet) {
  Open();
  for (const char* method : {"POST", "PUT", "HEAD", "DELETE", "OPTIONS", "BREW"}) {
    const HttpText reply = Ask(std::string(method) + " / HTTP/1.1\r\nHost: localhost\r\n"
                                                     "Content-Length: 0\r\n\r\n");
    EXPECT_EQ(reply.status, 405) << method;
    EXPECT_THAT(reply.head, HasSubstr("Allow: GET"));
  }
  // However much comes behind.
  const HttpText reply = Ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40000\r\n\r\n" +
                             std::string(40'000, 'x'));
  EXPECT_EQ(reply.status, 405);
}

TEST_F(StatusServerTest, NeedsTheTokenThatItWasGiven) {
  Open(kToken);
  for (const char* target : {"/", "/api", "/metrics", "/else"}) {
    const HttpText reply = Get(target);
    EXPECT_EQ(reply.status, 401) << target;
    EXPECT_THAT(reply.head, HasSubstr("WWW-Authenticate: Bearer"));
    EXPECT_THAT(reply.body, Not(HasSubstr("run7")));
  }
  EXPECT_EQ(Get("/?token=0123456789abcdeF").status, 401);
  EXPECT_EQ(Get(std::string("/?token=") + kToken).status, 200);
  EXPECT_EQ(Get("/metrics", std::string("Authorization: Bearer ") + kToken + "\r\n").status, 200);
}

TEST_F(StatusServerTest, AnotherSitesNameForThisMachineReadsNothing) {
  Open();
  EXPECT_EQ(Ask("GET / HTTP/1.1\r\nHost: rebound.example:80\r\n\r\n").status, 403);
  EXPECT_EQ(Ask("GET / HTTP/1.0\r\n\r\n").status, 200);
}

TEST_F(StatusServerTest, GarbageCostsItsOwnConnection) {
  Open();
  const std::string garbage[] = {
      "\r\n\r\n",
      "hello\r\n\r\n",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET / HTTP/1.1\r\nno colon\r\n\r\n",
      "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(500, '\x7f'),
      std::string(1000, '\0'),
      "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n",
      "GET / HTTP/1.1\r\n" + [] {
        std::string headers;
        for (int i = 0; i < 5000; ++i) headers += "X" + std::to_string(i) + ": y\r\n";
        return headers;
      }() + "\r\n",
  };
  for (const std::string& bytes : garbage) {
    const HttpText reply = Ask(bytes);
    EXPECT_NE(reply.status, 200) << bytes.substr(0, 60);
    EXPECT_LT(reply.body.size(), 100U);
  }
  EXPECT_EQ(Get("/").status, 200);
}

TEST_F(StatusServerTest, RandomBytesAndCutRequestsCostTheirOwnConnection) {
  Open();
  const uint64_t seed = EntropySeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const std::string whole = "GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (int i = 0; i < 200; ++i) {
    std::string bytes = whole.substr(0, random.Uniform(whole.size()));
    for (uint64_t n = random.Uniform(20); n > 0; --n) {
      bytes += static_cast<char>(random.Uniform(256));
    }
    const RawClient client(server_->port());
    ASSERT_TRUE(client.connected());
    (void)client.Send(bytes);   // and closes
  }
  EXPECT_EQ(Get("/").status, 200);
}

// More than there are places, none of which says a word: who speaks is still served, and they are
// all sent away in the end.
TEST_F(StatusServerTest, SilentClientsKeepNobodyOut) {
  Open();
  std::vector<std::unique_ptr<RawClient>> silent;
  for (size_t i = 0; i < kHttpConnectionsMax + 20; ++i) {
    silent.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(silent.back()->connected());
    EXPECT_TRUE(silent.back()->Send(i % 2 == 0 ? "GET / HTTP/1.1\r\nHost: local" : ""));
  }
  EXPECT_EQ(Get("/").status, 200);
  for (const auto& client : silent) EXPECT_EQ(client->ReadToEnd(), "");
}

// ... and who takes none of a large answer holds up nobody else.
TEST_F(StatusServerTest, ClientsThatDoNotReadHoldUpNobody) {
  Open("", BigStatus());
  std::vector<std::unique_ptr<RawClient>> deaf;
  for (size_t i = 0; i < kHttpConnectionsMax / 2; ++i) {
    deaf.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(deaf.back()->Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  for (int i = 0; i < 3; ++i) {
    const HttpText page = Get("/");
    EXPECT_EQ(page.status, 200);
    EXPECT_THAT(page.body, HasSubstr("</html>"));
  }
}

TEST_F(StatusServerTest, ManyAskAtOnceAndAllAreServed) {
  Open("", BigStatus());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(clients.back()->connected()) << i;
    ASSERT_TRUE(clients.back()->Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")) << i;
  }
  for (const auto& client : clients) {
    EXPECT_THAT(client->ReadToEnd(), HasSubstr("keel_epochs_total 2500"));
  }
}

TEST_F(StatusServerTest, APortThatIsTakenIsNamed) {
  Open();
  const auto second = StatusServer::Open({"127.0.0.1", server_->port(), ""}, JobStatus(JobOf()),
                                         RealClock());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr(server_->where()));
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

TEST_F(StatusServerTest, NobodyListensOnceItIsGone) {
  Open();
  const uint16_t port = server_->port();
  const RawClient waiting(port);
  ASSERT_TRUE(waiting.connected());
  server_.reset();
  EXPECT_EQ(waiting.ReadToEnd(), "");
  EXPECT_FALSE(RawClient(port).connected());
}

}  // namespace
}  // namespace keel
