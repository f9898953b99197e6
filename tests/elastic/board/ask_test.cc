// Asking other supervisors, over real sockets: who answers what, and who does not answer.
#include "elastic/board/ask.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "elastic/board/presence.h"
#include "store/listen_socket.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using Kind = PeerAnswer::Kind;

constexpr Duration kHangLimit = 60s;

std::string Here(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

Kind Ask(uint16_t port, Duration limit = kHangLimit, const std::string& job = "j") {
  return AskPeers({Here(port)}, job, limit, CancelToken::Never()).front().kind;
}

// A supervisor's peer port, with a loop of its own.
class PeerPort : public testing::Test {
 protected:
  PeerPort() {
    PresenceServer::Events events;
    events.on_opened = events.on_closed = [](int64_t, const std::string&) {};
    events.on_news = [](int64_t) {};
    events.on_ask = [this](const std::string& job) { return AnswerText(job == "j", sight_); };
    auto server = PresenceServer::Open(loop_, {"127.0.0.1", 0}, std::move(events));
    EXPECT_OK(server);
    server_ = *std::move(server);
  }
  void Start() {
    runs_ = std::thread([this] {
      while (!done_) {
        loop_.run_for(5ms);
        loop_.restart();
      }
    });
  }
  ~PeerPort() override {
    done_ = true;
    runs_.join();
  }

  boost::asio::io_context loop_;
  std::optional<PeerSight> sight_;
  std::unique_ptr<PresenceServer> server_;
  std::atomic<bool> done_ = false;
  std::thread runs_;
};

TEST_F(PeerPort, SaysWhatItFollows) {
  Start();
  EXPECT_EQ(Ask(server_->port()), Kind::kUnknown);
  EXPECT_EQ(Ask(server_->port(), kHangLimit, "another"), Kind::kOtherJob);
}

TEST_F(PeerPort, AnswersEachThatAsks) {
  sight_ = PeerSight{{3, 12, "10.0.0.7:29400", "cafe"}, 1500ms};
  Start();
  const std::vector<std::string> all(20, Here(server_->port()));
  for (const PeerAnswer& answer : AskPeers(all, "j", kHangLimit, CancelToken::Never())) {
    ASSERT_EQ(answer.kind, Kind::kSight);
    EXPECT_EQ(answer.sight.place, sight_->place);
    EXPECT_EQ(answer.sight.heard_ago, 1500ms);
  }
}

TEST(AskPeers, NobodyAndSilenceAreToldApart) {
  const auto silent = ListenSocket::Listen("127.0.0.1", 0);
  ASSERT_OK(silent);
  EXPECT_EQ(Ask(silent->port(), 50ms), Kind::kNothing);
  EXPECT_EQ(Ask(FreePort()), Kind::kRefused);
  EXPECT_EQ(AskPeers({"no address", "host:1", ""}, "j", 50ms, CancelToken::Never()).size(), 3u);
  CancelToken cancelled;
  cancelled.Cancel();
  EXPECT_EQ(AskPeers({Here(silent->port())}, "j", kHangLimit, cancelled).front().kind,
            Kind::kNothing);
}

}  // namespace
}  // namespace keel
