// Asking other supervisors, over real sockets: who answers what, and who does not answer.
#include "elastic/board/ask.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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
  return AskPeers({Here(port)}, {job}, limit, CancelToken::Never()).front().kind;
}

// A supervisor's peer port, with a loop of its own.
class PeerPort : public testing::Test {
 protected:
  explicit PeerPort(std::optional<Seal> seal = {}) {
    PresenceServer::Events events;
    events.on_opened = events.on_closed = [](int64_t, const std::string&) {};
    events.on_news = [](int64_t) {};
    events.on_ask = [this](const std::string& job) { return AnswerText(job == "j", sight_); };
    events.on_vouch = [](const std::string& generation) { return generation == "cafe"; };
    PresenceServer::Where where{.bind = "127.0.0.1"};
    where.seal = std::move(seal);
    auto server = PresenceServer::Open(loop_, std::move(where), std::move(events));
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
  for (const PeerAnswer& answer : AskPeers(all, {"j"}, kHangLimit, CancelToken::Never())) {
    ASSERT_EQ(answer.kind, Kind::kSight);
    EXPECT_EQ(answer.sight.place, sight_->place);
    EXPECT_EQ(answer.sight.heard_ago, 1500ms);
  }
}

// --- With a token ---

class SealedPeerPort : public PeerPort {
 protected:
  SealedPeerPort() : PeerPort(kSeal) {
    sight_ = PeerSight{{3, 12, "10.0.0.7:29400", "cafe"}, 1500ms};
    Start();
  }
  Kind AskWith(std::optional<Seal> seal) {
    return AskPeers({Here(server_->port())}, {"j", std::move(seal)}, kHangLimit,
                    CancelToken::Never()).front().kind;
  }

  inline static const Seal kSeal{"the secret of the job"};
};

TEST_F(SealedPeerPort, AnswersThoseWhoHaveTheTokenAlone) {
  EXPECT_EQ(AskWith(kSeal), Kind::kSight);
  EXPECT_EQ(AskWith(std::nullopt), Kind::kClosed);
  EXPECT_EQ(AskWith(Seal("another secret")), Kind::kClosed);
}

TEST_F(SealedPeerPort, VouchesForTheBoardThatIsKeptThere) {
  const std::string here = Here(server_->port());
  const auto vouches = [&](const std::string& generation, const Seal& seal) {
    return Vouches(here, generation, seal, kHangLimit, CancelToken::Never());
  };
  EXPECT_TRUE(vouches("cafe", kSeal));
  EXPECT_FALSE(vouches("beef", kSeal));
  EXPECT_FALSE(vouches("cafe", Seal("another secret")));
  EXPECT_FALSE(Vouches(Here(FreePort()), "cafe", kSeal, kHangLimit, CancelToken::Never()));
}

TEST_F(PeerPort, WithoutATokenItIsClosedToThoseWhoHaveOne) {
  Start();
  EXPECT_EQ(AskPeers({Here(server_->port())}, {"j", Seal("a secret")}, kHangLimit,
                     CancelToken::Never()).front().kind,
            Kind::kClosed);
}

// Somebody at a peer's address says what he likes: a good answer, but for its seal.
TEST(AskPeers, AnAnswerWithoutASealIsNone) {
  const PeerSight sight{{3, 12, "10.0.0.7:29400", "cafe"}, 0ms};
  const auto ask_stranger = [&](std::optional<Seal> seal) {
    auto listener = ListenSocket::Listen("127.0.0.1", 0);
    EXPECT_OK(listener);
    std::thread stranger([&] {
      const int peer = accept(listener->number(), nullptr, nullptr);
      char heard[1024];
      for (const std::string& says : {std::string(kPeerReply), AnswerText(true, sight)}) {
        EXPECT_GT(recv(peer, heard, sizeof heard, 0), 0);
        EXPECT_GT(send(peer, (says + "\n").data(), says.size() + 1, 0), 0);
      }
      close(peer);
    });
    const Kind kind = AskPeers({Here(listener->port())}, {"j", std::move(seal)}, kHangLimit,
                               CancelToken::Never()).front().kind;
    stranger.join();
    return kind;
  };
  EXPECT_EQ(ask_stranger(Seal("a secret")), Kind::kNothing);
  EXPECT_EQ(ask_stranger(std::nullopt), Kind::kSight);
}

TEST(AskPeers, NobodyAndSilenceAreToldApart) {
  const auto silent = ListenSocket::Listen("127.0.0.1", 0);
  ASSERT_OK(silent);
  EXPECT_EQ(Ask(silent->port(), 50ms), Kind::kNothing);
  EXPECT_EQ(Ask(FreePort()), Kind::kRefused);
  EXPECT_EQ(AskPeers({"no address", "host:1", ""}, {"j"}, 50ms, CancelToken::Never()).size(), 3u);
  CancelToken cancelled;
  cancelled.Cancel();
  EXPECT_EQ(AskPeers({Here(silent->port())}, {"j"}, kHangLimit, cancelled).front().kind,
            Kind::kNothing);
}

}  // namespace
}  // namespace keel
