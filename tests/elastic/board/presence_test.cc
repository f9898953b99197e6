// Presence over real sockets: what each side is told, and what strangers and the dead cannot do.
#include "elastic/board/presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include "base/log.h"
#include "elastic/board/coordinator.h"
#include "elastic/board/strangers.h"
#include "store/host_port.h"
#include "store/memory_store.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr Duration kHangLimit = 60s;
// Fewer than descriptors allow.
constexpr size_t kSilentMax = 64;

// The other end, by hand: it says what it likes and reads when it is asked to.
class Peer {
 public:
  explicit Peer(uint16_t port) : socket_(io_) {
    error_code failure;
    socket_.connect({asio::ip::make_address("127.0.0.1"), port}, failure);
    EXPECT_FALSE(failure) << failure.message();
    socket_.non_blocking(true, failure);
  }

  void Say(const std::string& text) {
    error_code failure;
    asio::write(socket_, asio::buffer(text), failure);
    EXPECT_FALSE(failure) << failure.message();
  }
  // What it was told so far.
  const std::string& Heard() {
    std::array<char, 4096> piece;
    for (;;) {
      error_code failure;
      const size_t got = socket_.read_some(asio::buffer(piece), failure);
      if (failure) {
        closed_ |= failure != asio::error::would_block && failure != asio::error::try_again;
        return heard_;
      }
      heard_.append(piece.data(), got);
    }
  }
  bool IsClosed() {
    Heard();
    return closed_;
  }
  void Close() { socket_.close(); }

 private:
  asio::io_context io_;
  tcp::socket socket_;
  std::string heard_;
  bool closed_ = false;
};

class Presence : public ::testing::Test {
 protected:
  explicit Presence(std::optional<Seal> seal = {}) {
    LogToCallback([this](std::string_view line) { log_ += line; });
    PresenceServer::Events events;
    events.on_opened = [this](int64_t slot, const std::string& who) { Note("opened", slot, who); };
    events.on_closed = [this](int64_t slot, const std::string& who) { Note("closed", slot, who); };
    events.on_news = [this](int64_t) { ++news_; };
    events.on_beat = [this](int64_t slot, const std::string& who) { Note("beat", slot, who); };
    PresenceServer::Where where;
    where.silent_max = kSilentMax;
    where.seal = std::move(seal);
    auto server = PresenceServer::Open(loop_, where, std::move(events));
    EXPECT_OK(server);
    server_ = *std::move(server);
  }
  ~Presence() override { LogToStderr(); }

  void Note(const std::string& what, int64_t slot, const std::string& who) {
    told_.push_back(what + " " + std::to_string(slot) + " " + who);
  }
  // Runs both ends until it is so.
  template <class Condition>
  [[nodiscard]] bool Until(Condition is_so) {
    const TimePoint deadline = RealClock().Monotonic() + kHangLimit;
    while (!is_so()) {
      if (RealClock().Monotonic() > deadline) return false;
      loop_.run_one_for(10ms);
    }
    return true;
  }
  [[nodiscard]] bool UntilTold(size_t count) {
    return Until([&] { return told_.size() >= count; });
  }
  // A member that is known to the server when this returns.
  std::unique_ptr<Peer> Member(int64_t slot, const std::string& who) {
    auto peer = std::make_unique<Peer>(server_->port());
    const size_t before = told_.size();
    peer->Say("hello " + std::to_string(slot) + " " + who + "\n");
    EXPECT_TRUE(UntilTold(before + 1));
    return peer;
  }
  // The server serves: a member that comes now is heard and hears.
  void ExpectServed() {
    const int news = news_;
    const auto member = Member(77, "proof");
    member->Say("news\n");
    EXPECT_TRUE(Until([&] { return news_ > news; }));
    server_->Look();
    EXPECT_TRUE(Until([&] { return member->Heard() == "look\n"; }));
  }

  std::string log_;
  asio::io_context loop_;
  std::vector<std::string> told_;
  int news_ = 0;
  std::unique_ptr<PresenceServer> server_;
};

TEST_F(Presence, HelloNewsAndLookReachTheOtherSide) {
  int looks = 0;
  PresenceClient client(loop_, [&] { ++looks; });
  client.SetServer(AddressText("127.0.0.1", server_->port()));
  client.SetSelf(3, "cafe");
  ASSERT_TRUE(UntilTold(1));
  EXPECT_THAT(told_, ElementsAre("opened 3 cafe"));
  // It says so once by itself: what it wrote before it was connected is news, too.
  ASSERT_TRUE(Until([&] { return news_ == 1; }));
  client.News();
  ASSERT_TRUE(Until([&] { return news_ == 2; }));
  server_->Look();
  ASSERT_TRUE(Until([&] { return looks == 1; }));
}

TEST_F(Presence, OnlyMembersAreToldToLook) {
  Peer stranger(server_->port());
  const auto member = Member(1, "a");
  server_->Look();
  ASSERT_TRUE(Until([&] { return member->Heard() == "look\n"; }));
  EXPECT_EQ(stranger.Heard(), "");
}

TEST_F(Presence, ADestroyedClientIsSeenToClose) {
  {
    PresenceClient client(loop_, [] {});
    client.SetServer(AddressText("127.0.0.1", server_->port()));
    client.SetSelf(3, "cafe");
    ASSERT_TRUE(UntilTold(1));
  }
  ASSERT_TRUE(UntilTold(2));
  EXPECT_THAT(told_, ElementsAre("opened 3 cafe", "closed 3 cafe"));
}

// The newer connection may come before the end of the older one is seen.
TEST_F(Presence, WhoIsHereTwiceIsNotClosedWithTheFirst) {
  const auto first = Member(3, "cafe");
  const auto second = Member(3, "cafe");
  first->Close();
  ExpectServed();   // by then the end of the first one has been seen, too
  EXPECT_THAT(told_, testing::Not(testing::Contains("closed 3 cafe")));
  second->Close();
  ASSERT_TRUE(Until([&] { return told_.back() == "closed 3 cafe"; }));
}

TEST_F(Presence, AnotherIncarnationInTheSameSlotIsAnotherMember) {
  const auto first = Member(3, "cafe");
  const auto second = Member(3, "beef");
  first->Close();
  ASSERT_TRUE(UntilTold(3));
  EXPECT_THAT(told_, ElementsAre("opened 3 cafe", "opened 3 beef", "closed 3 cafe"));
}

TEST_F(Presence, ASlotChangesWithANewHello) {
  PresenceClient client(loop_, [] {});
  client.SetServer(AddressText("127.0.0.1", server_->port()));
  client.SetSelf(3, "cafe");
  ASSERT_TRUE(UntilTold(1));
  client.SetSelf(4, "cafe");
  ASSERT_TRUE(UntilTold(3));
  EXPECT_THAT(told_, testing::UnorderedElementsAre("opened 3 cafe", "closed 3 cafe",
                                                   "opened 4 cafe"));
}

TEST_F(Presence, GarbageClosesItsOwnConnectionOnly) {
  const auto member = Member(1, "a");
  const std::vector<std::string> rubbish = {
      "GET / HTTP/1.1\n", "hello\n", "hello x cafe\n", "hello 3\n", "hello 3 \n", "\n",
      "hello 99999999999999999999 cafe\n", "look\n", std::string("\0\xff\n", 3)};
  for (const std::string& line : rubbish) {
    Peer stranger(server_->port());
    stranger.Say(line);
    EXPECT_TRUE(Until([&] { return stranger.IsClosed(); })) << line;
  }
  EXPECT_THAT(told_, ElementsAre("opened 1 a"));
  EXPECT_FALSE(member->IsClosed());
  EXPECT_THAT(log_, testing::HasSubstr("presence-garbage"));
  ExpectServed();
}

TEST_F(Presence, AMemberThatSaysHelloTwiceIsClosed) {
  const auto member = Member(1, "a");
  member->Say("hello 2 a\n");
  ASSERT_TRUE(UntilTold(2));
  EXPECT_THAT(told_, ElementsAre("opened 1 a", "closed 1 a"));
}

TEST_F(Presence, ALineFarTooLongClosesItsConnection) {
  Peer stranger(server_->port());
  stranger.Say(std::string(10'000, 'x'));
  ASSERT_TRUE(Until([&] { return stranger.IsClosed(); }));
  const auto member = Member(1, "a");
  member->Say("news\n" + std::string(10'000, 'x'));
  ASSERT_TRUE(UntilTold(2));
  EXPECT_EQ(news_, 1) << "what came before it counts";
  EXPECT_THAT(told_, ElementsAre("opened 1 a", "closed 1 a"));
  ExpectServed();
}

TEST_F(Presence, ALineThatComesInPiecesIsOneLine) {
  Peer peer(server_->port());
  peer.Say("hel");
  ExpectServed();   // so that the server reads the piece alone
  const size_t before = told_.size();
  peer.Say("lo 5 cafe\nne");
  ASSERT_TRUE(UntilTold(before + 1));
  const int news = news_;
  peer.Say("ws\n");
  ASSERT_TRUE(Until([&] { return news_ == news + 1; }));
}

TEST_F(Presence, StrangersThatSayNothingAreNotKeptForEver) {
  const auto member = Member(1, "a");
  std::vector<std::unique_ptr<Peer>> strangers;
  const auto closed = [&] {
    return static_cast<size_t>(std::count_if(strangers.begin(), strangers.end(),
                                             [](const auto& one) { return one->IsClosed(); }));
  };
  const size_t more = 20;
  for (size_t i = 0; i < kSilentMax + more; ++i) {
    strangers.push_back(std::make_unique<Peer>(server_->port()));
  }
  ASSERT_TRUE(Until([&] { return closed() >= more; }));
  ExpectServed();
  for (size_t i = 0; i < more; ++i) EXPECT_TRUE(strangers[i]->IsClosed()) << i;
  // The member that was served is one more connection, silent for a moment.
  EXPECT_LE(closed(), more + 1);
  EXPECT_FALSE(member->IsClosed()) << "who has said hello is no stranger";
}

// All descriptors are taken; the connection waits, and so do we, instead of asking without end.
TEST_F(Presence, WithoutADescriptorTheServerWaitsUntilThereIsOne) {
  if (kUnderAddressSanitizer) {
    GTEST_SKIP() << "UBSan needs a descriptor for its own checks of types";
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  Peer peer(server_->port());
  peer.Say("hello 1 a\n");
  const int next = dup(0);
  close(next);
  const rlimit none = {static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(Until([&] { return log_.find("presence-accept") != std::string::npos; }));
  int done = 0;
  while (done < 100 && loop_.poll_one() > 0) ++done;
  EXPECT_LT(done, 100) << "it asks again and again";
  for (int turn = 0; turn < 6; ++turn) ASSERT_EQ(loop_.run_one_for(kHangLimit), 1U);
  EXPECT_EQ(log_.find("presence-accept"), log_.rfind("presence-accept")) << log_;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(UntilTold(1));
  EXPECT_THAT(told_, ElementsAre("opened 1 a"));
}

TEST(Seldom, TellsTheFirstAtOnceAndOfTheOthersHowManyThereWere) {
  Seldom seldom(1min);
  const TimePoint start{};
  EXPECT_EQ(seldom.Tell(start), 1);
  for (int i = 1; i <= 30; ++i) EXPECT_EQ(seldom.Tell(start + i * 1s), std::nullopt);
  EXPECT_EQ(seldom.Tell(start + 1min), 31);
  EXPECT_EQ(seldom.Tell(start + 119s), std::nullopt);
  EXPECT_EQ(seldom.Tell(start + 1h), 2);
}

// Until the loop runs nothing can be sent, so this is what is kept for one that never reads.
TEST_F(Presence, WhoDoesNotReadIsOwedAFewLinesOnly) {
  const auto deaf = Member(1, "deaf");
  const auto member = Member(2, "a");
  for (int i = 0; i < 100'000; ++i) server_->Look();
  ASSERT_TRUE(Until([&] { return !deaf->Heard().empty(); }));
  for (int turn = 0; turn < 10'000; ++turn) loop_.poll_one();
  EXPECT_LE(deaf->Heard().size(), 100 * std::string("look\n").size());
  ExpectServed();
  EXPECT_FALSE(member->IsClosed());
}

TEST_F(Presence, AServerThatComesLaterIsFound) {
  const uint16_t port = FreePort();
  PresenceClient client(loop_, [] {});
  client.SetServer(AddressText("127.0.0.1", port));
  client.SetSelf(3, "cafe");
  ExpectServed();   // many turns of the loop, in which it is refused
  tcp::acceptor late(loop_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), port));
  late.non_blocking(true);
  tcp::socket caller(loop_);
  error_code failure = asio::error::would_block;
  ASSERT_TRUE(Until([&] { return !late.accept(caller, failure); }));
  caller.non_blocking(true);
  std::string said;
  ASSERT_TRUE(Until([&] {
    std::array<char, 256> piece;
    said.append(piece.data(), caller.read_some(asio::buffer(piece), failure));
    return said == "hello 3 cafe\nnews\n";
  })) << said;
}

TEST_F(Presence, AConnectionThatIsLostIsMadeAgain) {
  PresenceClient client(loop_, [] {});
  const uint16_t port = FreePort();
  tcp::acceptor server(loop_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), port));
  server.non_blocking(true);
  client.SetServer(AddressText("127.0.0.1", port));
  client.SetSelf(3, "cafe");
  for (int time = 0; time < 3; ++time) {
    tcp::socket caller(loop_);
    error_code failure;
    ASSERT_TRUE(Until([&] { return !server.accept(caller, failure); })) << time;
  }
}

TEST_F(Presence, AnAddressThatIsNoneIsLoggedAndNotTried) {
  PresenceClient client(loop_, [] {});
  client.SetSelf(3, "cafe");
  client.SetServer("nonsense");
  EXPECT_THAT(log_, testing::HasSubstr("presence-address"));
  client.SetServer(AddressText("127.0.0.1", server_->port()));
  ASSERT_TRUE(UntilTold(1));
}

// --- With a token ---

class SealedPresence : public Presence {
 protected:
  SealedPresence() : Presence(kSeal) {}
  std::string Address() const { return AddressText("127.0.0.1", server_->port()); }

  inline static const Seal kSeal{"the secret of the job"};
};

TEST_F(SealedPresence, HelloNewsAndLookReachTheOtherSide) {
  int looks = 0;
  PresenceClient client(loop_, [&] { ++looks; }, {}, kSeal);
  client.SetServer(Address());
  client.SetSelf(3, "cafe");
  ASSERT_TRUE(UntilTold(1));
  EXPECT_THAT(told_, ElementsAre("opened 3 cafe"));
  const int news = news_;
  client.News();
  ASSERT_TRUE(Until([&] { return news_ > news; }));
  server_->Look();
  ASSERT_TRUE(Until([&] { return looks == 1; }));
  client.Beat();
  ASSERT_TRUE(UntilTold(2));
  EXPECT_THAT(told_, ElementsAre("opened 3 cafe", "beat 3 cafe"));
  EXPECT_THAT(log_, testing::Not(testing::HasSubstr("stranger")));
}

TEST_F(SealedPresence, NobodyIsHeardWhoHasNotTheToken) {
  const std::string greeting = "greet " + Seal::Nonce() + "\n";
  for (const std::string& words :
       {std::string("hello 3 cafe\n"), std::string("news\n"), greeting + "hello 3 cafe\n",
        greeting + "news 0123\n", greeting + greeting,
        greeting + SealedSession(Seal("another secret"), "a", "b", PeerEnd::kMember)
                       .Say("hello 3 cafe") + "\n"}) {
    Peer stranger(server_->port());
    stranger.Say(words);
    ASSERT_TRUE(Until([&] { return stranger.IsClosed(); })) << words;
  }
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(news_, 0);
}

// What was heard on one connection is of no use on another one.
TEST_F(SealedPresence, ARecordedMemberIsNotHeard) {
  Peer member(server_->port());
  const std::string nonce = Seal::Nonce();
  member.Say("greet " + nonce + "\n");
  ASSERT_TRUE(Until([&] { return member.Heard().ends_with("\n"); }));
  const std::string challenge = member.Heard().substr(0, member.Heard().size() - 1);
  const auto of_server = OpenChallenge(kSeal, nonce, challenge);
  ASSERT_TRUE(of_server);
  SealedSession session(kSeal, nonce, *of_server, PeerEnd::kMember);
  const std::string hello = session.Say("hello 3 cafe") + "\n";
  member.Say(hello);
  ASSERT_TRUE(UntilTold(1));
  Peer stranger(server_->port());
  stranger.Say("greet " + nonce + "\n" + hello);
  ASSERT_TRUE(Until([&] { return stranger.IsClosed(); }));
  member.Say(hello);
  ASSERT_TRUE(Until([&] { return member.IsClosed(); })) << "nor is it heard twice";
  EXPECT_THAT(told_, ElementsAre("opened 3 cafe", "closed 3 cafe"));
}

TEST_F(SealedPresence, AMemberDoesNotHearACoordinatorWithoutTheToken) {
  int looks = 0;
  PresenceClient client(loop_, [&] { ++looks; }, {}, Seal("another secret"));
  client.SetServer(Address());
  client.SetSelf(3, "cafe");
  ASSERT_TRUE(Until([&] { return log_.find("it coordinates without") != std::string::npos; }));
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(looks, 0);
}

// --- What the coordinator makes of it ---

// The server of a coordinator whose clock the test moves.
class PresenceOfACoordinator : public ::testing::Test {
 protected:
  PresenceOfACoordinator() {
    PresenceServer::Events events;
    events.on_opened = [this](int64_t slot, const std::string& who) {
      coordinator_.PresenceOpened(slot, who);
      ++opened_;
    };
    events.on_closed = [this](int64_t slot, const std::string& who) {
      coordinator_.PresenceClosed(slot, who, now_);
      ++closed_;
    };
    events.on_news = [](int64_t) {};
    auto server = PresenceServer::Open(loop_, {}, std::move(events));
    EXPECT_OK(server);
    server_ = *std::move(server);
    Poll(0ms);
    keys_ = BoardKeys("j", coordinator_.generation());
    EXPECT_OK(store_->Add(keys_.Slots(), 2));
    for (const int64_t slot : {0, 1}) {
      MemberRecord record;
      record.incarnation = slot == 0 ? "me" : "other";
      record.host = "h" + std::to_string(slot);
      record.seats.resize(1);
      EXPECT_OK(store_->Set(keys_.Member(slot), MemberText(record)));
      EXPECT_OK(store_->Add(keys_.Beat(slot), 1));
    }
    EXPECT_OK(store_->Add(keys_.News(), 1));
    Poll(1ms);
  }

  static CoordinatorConfig Config() {
    CoordinatorConfig config;
    config.job = "j";
    config.incarnation = "me";
    config.presence = "127.0.0.1:1";
    config.policy.hosts_max = config.policy.hosts_min = 3;   // it only waits
    return config;
  }
  void Poll(Duration later) {
    now_ = now_ + later;
    EXPECT_OK(coordinator_.Poll(*store_, now_).status);
  }
  bool IsExpired() {
    return ParseMemberSlot("k", **store_->Get(keys_.Member(1)))->tombstone.has_value();
  }
  [[nodiscard]] bool Until(const int& count, int wanted) {
    const TimePoint deadline = RealClock().Monotonic() + kHangLimit;
    while (count < wanted && RealClock().Monotonic() < deadline) loop_.run_one_for(10ms);
    return count >= wanted;
  }
  std::unique_ptr<Peer> Member(const std::string& who) {
    auto peer = std::make_unique<Peer>(server_->port());
    peer->Say("hello 1 " + who + "\n");
    EXPECT_TRUE(Until(opened_, opened_ + 1));
    return peer;
  }

  TimePoint now_{10s};
  asio::io_context loop_;
  int opened_ = 0;
  int closed_ = 0;
  MemoryBoard board_{RealClock()};
  const std::unique_ptr<Store> store_ = board_.Connect("coordinator");
  Coordinator coordinator_{Config(), Random(1), [](const EpochRecord&) {
                             return Result<EpochStore>(EpochStore{"127.0.0.1", 2, ""});
                           }};
  BoardKeys keys_;
  std::unique_ptr<PresenceServer> server_;
};

TEST_F(PresenceOfACoordinator, WhoClosesIsExpiredAfterTheGrace) {
  Member("other")->Close();
  ASSERT_TRUE(Until(closed_, 1));
  Poll(29ms);
  EXPECT_FALSE(IsExpired());
  EXPECT_LE(coordinator_.NextPoll(), now_ + 1ms);
  Poll(1ms);
  EXPECT_TRUE(IsExpired());
}

TEST_F(PresenceOfACoordinator, WhoComesAgainWithinTheGraceStays) {
  Member("other")->Close();
  ASSERT_TRUE(Until(closed_, 1));
  Poll(29ms);
  const auto again = Member("other");
  Poll(1ms);
  Poll(500ms);
  EXPECT_FALSE(IsExpired());
}

TEST_F(PresenceOfACoordinator, AnotherIncarnationThatClosesHarmsNobody) {
  const auto other = Member("other");
  Member("stranger")->Close();
  ASSERT_TRUE(Until(closed_, 1));
  Poll(100ms);
  EXPECT_FALSE(IsExpired());
}

// --- Strangers ---

// The list is one for the whole process, so this test, which fills it, comes last.
TEST(Strangers, AreToldOnceForEachAddressAndNotForAsManyAsTheyLike) {
  std::string log;
  LogToCallback([&](std::string_view line) { log += line; });
  TellStranger("10.1.0.1", "it says nonsense");
  TellStranger("10.1.0.1", "it says nonsense");
  for (int i = 0; i < 1000; ++i) TellStranger("10.2.0." + std::to_string(i), "?");
  LogToStderr();
  const std::string told = "stranger address=10.1.0.1 reason=\"it says nonsense\"";
  EXPECT_THAT(log, testing::HasSubstr(told));
  EXPECT_EQ(log.find(told), log.rfind(told));
  const auto lines = std::count(log.begin(), log.end(), '\n');
  EXPECT_GT(lines, 50);
  EXPECT_LE(lines, 100);
}

}  // namespace
}  // namespace keel
