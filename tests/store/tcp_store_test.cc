// The board on c10d::TCPStore: the contract, and what happens when the other side is gone, frozen,
// taken, or no store at all.
#include "store/tcp_store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/log.h"
#include "store/torch_log.h"
#include "tests/store/store_contract.h"

namespace keel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TcpStore::Limits kLimits{.connect = seconds(30), .operation = seconds(30)};

std::unique_ptr<TcpStoreHost> OpenHost(const TcpStoreHost::Where& where = {"127.0.0.1", 0}) {
  auto host = TcpStoreHost::Open(where);
  KEEL_CHECK(host.ok(), host.error().message);
  return std::move(host).value();
}

std::unique_ptr<TcpStore> ConnectTo(uint16_t port, const TcpStore::Limits& limits = kLimits) {
  auto store = TcpStore::Connect({"127.0.0.1", port}, limits);
  KEEL_CHECK(store.ok(), store.error().message);
  return std::move(store).value();
}

class TcpTestBoard : public TestBoard {
 public:
  std::unique_ptr<Store> Client() override { return ConnectTo(host_->port()); }

 private:
  const std::unique_ptr<TcpStoreHost> host_ = OpenHost();
};

INSTANTIATE_TEST_SUITE_P(Tcp, StoreContract, testing::Values(MakeBoard([] {
                           return std::make_unique<TcpTestBoard>();
                         })));

// Something that listens on loopback, takes connections, and answers with what it is told: nothing,
// by default.
class Listener {
 public:
  explicit Listener(std::string answer = "") : answer_(std::move(answer)) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    KEEL_CHECK(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, errno);
    KEEL_CHECK(listen(fd_, 16) == 0, errno);
    socklen_t bytes = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes);
    port_ = ntohs(address.sin_port);
    if (!answer_.empty()) thread_ = std::thread([this] { Answer(); });
  }
  ~Listener() {
    shutdown(fd_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(fd_);
  }
  uint16_t port() const { return port_; }

 private:
  void Answer() {
    const int client = accept(fd_, nullptr, nullptr);
    if (client < 0) return;
    (void)!send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    char ignored[256];
    while (recv(client, ignored, sizeof ignored, 0) > 0) {
    }
    close(client);
  }

  const std::string answer_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST(TcpStore, NobodyListeningIsATimeoutThatNamesTheAddress) {
  uint16_t port = 0;
  {
    port = Listener().port();
  }
  const auto store = TcpStore::Connect({"127.0.0.1", port}, {.connect = seconds(1)});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Code::kTimeout);
  EXPECT_THAT(store.error().message, testing::HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(store.error().message, testing::HasSubstr("nobody listens there"));
}

TEST(TcpStore, AListenerThatSaysNothingIsNotWaitedForForEver) {
  const Listener silent;
  const auto store = TcpStore::Connect({"127.0.0.1", silent.port()}, {.connect = seconds(1)});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Code::kTimeout);
  EXPECT_THAT(store.error().message, testing::HasSubstr("did not greet as a store"));
}

// As one whose host is suspended: the kernel takes the connection, and nobody greets.
TEST(TcpStore, ConnectingIsCancelledWhateverItWaitsFor) {
  uint16_t nobody = 0;
  {
    nobody = Listener().port();
  }
  const Listener silent;
  for (const uint16_t port : {nobody, silent.port()}) {
    const CancelToken cancel;
    std::thread canceller([&] {
      RealClock().SleepFor(std::chrono::milliseconds(50));
      cancel.Cancel();
    });
    const auto store = TcpStore::Connect({"127.0.0.1", port}, {.connect = seconds(60)}, cancel);
    canceller.join();
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.error().code, Code::kCancelled) << store.error().message;
  }
}

TEST(TcpStore, AListenerThatTalksSomethingElseIsRefused) {
  const Listener web("HTTP/1.1 400 Bad Request\r\n\r\n");
  const auto store = TcpStore::Connect({"127.0.0.1", web.port()}, {.connect = seconds(2)});
  EXPECT_FALSE(store.ok());
}

TEST(TcpStore, ALostHostIsAnErrorAndStaysOne) {
  auto host = OpenHost();
  const auto store = ConnectTo(host->port());
  ASSERT_TRUE(store->Set("a", "x").ok());
  host.reset();
  const auto read = store->Get("a");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::kPeerLost);
  EXPECT_EQ(store->Set("a", "y").error().code, Code::kPeerLost);
}

// c10d does not acknowledge a set: without more ado the loss of the host would be noticed one call
// later.
TEST(TcpStore, ASetThatDidNotArriveIsAnError) {
  auto host = OpenHost();
  const auto store = ConnectTo(host->port());
  host.reset();
  EXPECT_FALSE(store->Set("a", "x").ok());
}

TEST(TcpStore, ALostHostWakesAWaiter) {
  auto host = OpenHost();
  const auto store = ConnectTo(host->port());
  std::thread waiter([&] {
    EXPECT_EQ(store->Wait({"never"}, kTestLimit * 10).error().code, Code::kPeerLost);
  });
  RealClock().SleepFor(milliseconds(20));
  host.reset();
  waiter.join();
}

TEST(TcpStoreHost, ATakenPortIsNamed) {
  const auto host = OpenHost();
  const auto second = TcpStoreHost::Open({"127.0.0.1", host->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::kExists);
  EXPECT_THAT(second.error().message, testing::HasSubstr("choose another port"));
}

TEST(TcpStoreHost, ANameInPlaceOfANumberIsRefused) {
  EXPECT_EQ(TcpStoreHost::Open({"some.host", 0}).error().code, Code::kInvalid);
}

TEST(TcpStoreHost, ListensOnAllAddressesByDefault) {
  const auto host = OpenHost({"", 0});
  EXPECT_TRUE(ConnectTo(host->port())->Set("a", "x").ok());
  const auto six = TcpStore::Connect({"::1", host->port()}, kLimits);
  ASSERT_TRUE(six.ok()) << six.error().message;
  EXPECT_EQ(*(*six)->Get("a"), "x");
}

TEST(TcpStoreHost, BoundToLoopbackItIsNotReachedByOtherAddresses) {
  const auto host = OpenHost({"127.0.0.1", 0});
  EXPECT_FALSE(TcpStore::Connect({"127.0.0.2", host->port()}, {.connect = seconds(1)}).ok());
}

TEST(TcpStoreHost, GarbageOnItsPortDisturbsNobody) {
  const auto host = OpenHost();
  const auto store = ConnectTo(host->port());
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(5000, '\xff'), std::string(5000, '\0'),
        std::string("\x09\x0c\x54\x3c\x08")}) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(host->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    (void)!send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    close(fd);
    ASSERT_TRUE(store->Set("a", garbage.substr(0, 8)).ok());
    ASSERT_EQ(*store->Get("a"), garbage.substr(0, 8));
  }
}

TEST(TcpStore, ManyClientsComeAndGoWithoutLeavingSockets) {
  const auto host = OpenHost();
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 4096; ++fd) count += fcntl(fd, F_GETFD) != -1;
    return count;
  };
  const auto keeper = ConnectTo(host->port());
  const int before = open_files();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(ConnectTo(host->port())->Add("n", 1).ok());
  }
  EXPECT_EQ(*keeper->Add("n", 0), 200);
  // The server closes its ends when it gets to it; the clients' ends are closed at once.
  EXPECT_LE(open_files(), before + 200);
}

TEST(TorchLog, MessagesOfLibTorchBecomeEvents) {
  std::string logged;
  std::mutex mutex;
  RouteTorchLog();
  LogToCallback([&](std::string_view line) {
    std::lock_guard lock(mutex);
    logged += line;
  });
  {
    const Listener silent;
    EXPECT_FALSE(TcpStore::Connect({"127.0.0.1", silent.port()}, {.connect = seconds(1)}).ok());
  }
  LogToStderr();
  std::lock_guard lock(mutex);
  EXPECT_THAT(logged, testing::HasSubstr(" torch "));
  EXPECT_THAT(logged, testing::ContainsRegex("at=[A-Za-z]+.cpp:"));
}

}  // namespace
}  // namespace keel
