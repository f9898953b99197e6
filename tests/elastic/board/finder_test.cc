// BoardFinder: where it leads a host, with real sockets at each place, a clock that only sleeping
// moves, and boards in memory behind them.
#include "elastic/board/finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "elastic/protocol/board_keys.h"
#include "store/listen_socket.h"
#include "store/memory_store.h"
#include "store/store_hail.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SleptClock : public Clock {
 public:
  TimePoint Monotonic() override { return now_; }
  int64_t WallNanos() override { return 0; }
  void SleepUntil(TimePoint when) override { now_ = std::max(now_, when); }

 private:
  TimePoint now_{1h};
};

// Somebody who listens: a store, or a supervisor with that answer to the question for its board.
class Answering {
 public:
  explicit Answering(uint16_t port = 0, std::string answer = "")
      : socket_(*ListenSocket::Listen("127.0.0.1", port)), answer_(std::move(answer)),
        thread_([this] { Run(); }) {}
  ~Answering() {
    done_ = true;
    thread_.join();
  }

  uint16_t port() const { return socket_.port(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port()); }

 private:
  static bool IsReady(int number) {
    pollfd one{number, POLLIN, 0};
    return poll(&one, 1, 5) > 0;
  }
  void Run() {
    while (!done_) {
      if (!IsReady(socket_.number())) continue;
      const int peer = accept(socket_.number(), nullptr, nullptr);
      Serve(peer);
      close(peer);
    }
  }
  // The hail, then the question.
  void Serve(int peer) const {
    const std::string first(answer_.empty() ? kStoreReply : kPeerReply);
    for (const std::string& reply : {first, answer_}) {
      char piece[512];
      while (!done_ && !IsReady(peer)) continue;
      if (done_ || recv(peer, piece, sizeof piece, 0) <= 0) return;
      (void)send(peer, (reply + "\n").data(), reply.size() + 1, MSG_NOSIGNAL);
    }
  }

  ListenSocket socket_;
  const std::string answer_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Each port has a board of its own.
class BoardsByPort : public StoreMaker {
 public:
  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket) override {
    return Error{Code::kForeign, "this test opens no stores"};
  }
  Result<std::unique_ptr<Store>> Connect(const std::string& host, uint16_t port, Duration,
                                         const CancelToken& cancel) override {
    tried.push_back(port);
    const std::string address = host + ":" + std::to_string(port);
    if (AskPeers({address}, {"j"}, 60s, cancel).front().kind != PeerAnswer::Kind::kStore) {
      return Error{Code::kTimeout, "there is no store at " + address};
    }
    connected.push_back(port);
    return BoardAt(port).Connect("finder");
  }
  MemoryBoard& BoardAt(uint16_t port) {
    return boards_.try_emplace(port, RealClock()).first->second;
  }

  std::vector<uint16_t> tried, connected;

 private:
  std::map<uint16_t, MemoryBoard> boards_;
};

class BoardFinderTest : public testing::Test {
 protected:
  BoardFinder& FinderOf(uint16_t endpoint) {
    BoardFinder::Config config;
    config.job = "j";
    config.incarnation = "me";
    config.endpoints = {{"127.0.0.1", endpoint}};
    config.own_peer = [] { return std::string("127.0.0.2:1"); };
    config.lease = [] { return std::optional<LinkView>(); };
    config.may_open = true;
    config.beat_limit = 10s;
    config.fence_limit = 90s;
    config.ask_limit = 60s;
    return finder_.emplace(
        config, clock_, stores_,
        BoardFinder::Events{
            [this](const std::string& who, bool refused) { lost_.emplace_back(who, refused); },
            [this](const BoardPlace& place, const std::string&) { followed_.push_back(place.by); },
            [this](const BoardPlace& place, const std::string&) {
              turns_.push_back(place.term);
            }});
  }
  std::string Failure() {
    const auto store = finder_->Connect(CancelToken::Never());
    return store.ok() ? "" : store.error().message;
  }
  // The first board, read over a connection, says that the job goes on at a port of this machine,
  // where nobody listens.
  uint16_t MovedToNobody(uint16_t endpoint) {
    const uint16_t port = FreePort();
    FinderOf(endpoint);
    const BoardPlace next{2, 0, "127.0.0.1:" + std::to_string(port), "second"};
    finder_->NoteSuccession({.coordinator = "first", .address = "127.0.0.1:1", .moved = next});
    return port;
  }

  SleptClock clock_;
  BoardsByPort stores_;
  std::optional<BoardFinder> finder_;
  std::vector<std::pair<std::string, bool>> lost_;
  std::vector<std::string> followed_;
  std::vector<int64_t> turns_;
};

TEST_F(BoardFinderTest, AtFirstTheStoreAtTheEndpointIsTheBoard) {
  Answering store;
  FinderOf(store.port());
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(stores_.connected, ElementsAre(store.port()));
  EXPECT_THAT(followed_, IsEmpty());
}

TEST_F(BoardFinderTest, ASupervisorAtTheEndpointLeadsToTheBoardThatItFollows) {
  Answering store;
  Answering supervisor(0, AnswerText(true, PeerSight{{3, 7, store.address(), "c"}, 20ms}));
  FinderOf(supervisor.port());
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(stores_.connected, ElementsAre(store.port()));
  EXPECT_THAT(followed_, ElementsAre("c"));
}

TEST_F(BoardFinderTest, ABoardThatIsNamedAndGoneIsNotFollowed) {
  const std::string gone = "127.0.0.1:" + std::to_string(FreePort());
  Answering supervisor(0, AnswerText(true, PeerSight{{3, 7, gone, "c"}, 20ms}));
  FinderOf(supervisor.port());
  EXPECT_THAT(Failure(), HasSubstr("or that one does not answer"));
  EXPECT_THAT(stores_.tried, IsEmpty()) << "a supervisor is no store";
  EXPECT_THAT(followed_, IsEmpty());
}

TEST_F(BoardFinderTest, ASupervisorOfAnotherJobRefusesAtOnce) {
  Answering supervisor(0, AnswerText(false, std::nullopt));
  FinderOf(supervisor.port());
  const auto store = finder_->Connect(CancelToken::Never());
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, Code::kExists);
  EXPECT_THAT(store.error().message, HasSubstr("--rdzv-id"));
}

TEST_F(BoardFinderTest, ALostBoardThatAnswersIsTakenAgain) {
  Answering endpoint, board;
  FinderOf(endpoint.port());
  finder_->NoteSuccession({.coordinator = "first", .address = board.address()});
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(stores_.connected, ElementsAre(board.port()));
}

// What is at the endpoint may be behind what was read, so it is taken only as the last resort.
TEST_F(BoardFinderTest, ABoardThatRefusesIsLookedForAgainBeforeTheEndpointsStoreIsTaken) {
  Answering endpoint;
  MovedToNobody(endpoint.port());
  const TimePoint begin = clock_.Monotonic();
  int looks = 0;
  for (; clock_.Monotonic() - begin < 9s; clock_.SleepFor(1s)) {
    EXPECT_NE(Failure(), "") << looks;
    ++looks;
  }
  EXPECT_THAT(stores_.connected, IsEmpty()) << "in " << looks << " looks";
  clock_.SleepFor(2s);
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(stores_.connected, ElementsAre(endpoint.port()));
}

TEST_F(BoardFinderTest, ABoardThatRefusedAndAnswersIsFollowed) {
  Answering endpoint;
  const uint16_t port = MovedToNobody(endpoint.port());
  for (int look = 0; look < 3; ++look) EXPECT_NE(Failure(), "");
  Answering board(port);
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(stores_.connected, ElementsAre(port));
  EXPECT_THAT(followed_, ElementsAre("second"));
}

TEST_F(BoardFinderTest, TheFirstHeirOpensTheNextBoardOnceTheLostOneRefuses) {
  Answering endpoint;
  FinderOf(endpoint.port());
  finder_->NoteSuccession({.coordinator = "first",
                           .address = "127.0.0.1:" + std::to_string(FreePort()),
                           .heirs = {{"me", "127.0.0.2:1"}}});
  EXPECT_THAT(Failure(), HasSubstr("nobody listens there"));
  EXPECT_THAT(turns_, ElementsAre(2));
  ASSERT_FALSE(lost_.empty());
  EXPECT_EQ(lost_.back(), (std::pair<std::string, bool>("first", true)));
}

// --- The store at the endpoint is another job's ---

class BesideFinderTest : public BoardFinderTest {
 protected:
  // What that store says of our job; nothing: no place.
  void Begin(const std::string& posted = "") {
    FinderOf(endpoint_.port());
    ASSERT_OK(other_job_->Set(kKeeperKey, "other"));
    if (posted.empty()) return;
    ASSERT_OK(other_job_->Set(BesideKey("j"), BoardPlaceText({1, 0, posted, "them"})));
  }
  void OpenBoardAt(const Answering& store) {
    ASSERT_OK(stores_.BoardAt(store.port()).Connect("")->Set(GenerationKey("j"), "g"));
  }

  Answering endpoint_;
  const std::unique_ptr<Store> other_job_ = stores_.BoardAt(endpoint_.port()).Connect("");
};

TEST_F(BesideFinderTest, TheBoardThatItNamesIsFollowed) {
  Answering board;
  OpenBoardAt(board);
  Begin(board.address());
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(followed_, ElementsAre("them"));
  EXPECT_THAT(turns_, IsEmpty());
}

TEST_F(BesideFinderTest, ABoardWhosePortAnotherStoreHasByNowIsGone) {
  Answering store;
  Begin(store.address());
  EXPECT_NE(Failure(), "");
  EXPECT_THAT(followed_, IsEmpty());
  EXPECT_THAT(turns_, ElementsAre(1));
}

TEST_F(BesideFinderTest, ABoardWhosePortASupervisorHasByNowIsGone) {
  for (const bool is_our_job : {true, false}) {
    turns_.clear();
    Answering supervisor(0, AnswerText(is_our_job, std::nullopt));
    Begin(supervisor.address());
    EXPECT_NE(Failure(), "");
    EXPECT_THAT(turns_, ElementsAre(1)) << is_our_job;
  }
}

TEST_F(BesideFinderTest, ASupervisorThatHasThePortByNowLeadsToTheBoardThatItFollows) {
  Answering board;
  OpenBoardAt(board);
  Answering supervisor(0, AnswerText(true, PeerSight{{2, 7, board.address(), "heir"}, 20ms}));
  Begin(supervisor.address());
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(followed_, ElementsAre("heir"));
}

TEST_F(BesideFinderTest, ABoardIsReplacedOnceItsPlaceHasBeenSilentForTheFenceLimit) {
  Answering silent(0, "nothing that is understood");
  Begin(silent.address());
  EXPECT_THAT(Failure(), HasSubstr(silent.address() + ", which does not answer; after 1 min 30 s"));
  clock_.SleepFor(89s);
  EXPECT_NE(Failure(), "");
  EXPECT_THAT(turns_, IsEmpty());
  clock_.SleepFor(1s);
  EXPECT_NE(Failure(), "");
  EXPECT_THAT(turns_, ElementsAre(1));
}

TEST_F(BesideFinderTest, TheOwnBoardIsNamedOnceItIsOpen) {
  Begin();
  EXPECT_NE(Failure(), "");
  EXPECT_THAT(turns_, ElementsAre(1));
  Answering board;
  const BoardPlace own{1, 0, board.address(), "me"};
  finder_->SetOwn(own);
  EXPECT_NE(Failure(), "");
  EXPECT_FALSE(*other_job_->Get(BesideKey("j")));
  OpenBoardAt(board);
  EXPECT_NE(Failure(), "");
  EXPECT_EQ(**other_job_->Get(BesideKey("j")), BoardPlaceText(own));
  EXPECT_EQ(Failure(), "");
  EXPECT_THAT(followed_, ElementsAre("me"));
  EXPECT_TRUE(finder_->is_beside());
}

// Another newcomer was wrong about the coordinator, which was out of its reach for a while.
TEST_F(BesideFinderTest, ACoordinatorThatLivesTakesThePostBackFromABoardThatIsBehind) {
  Answering own_board, newcomers;
  OpenBoardAt(newcomers);
  Begin(newcomers.address());
  const BoardKeys keys("j", "g");
  const std::unique_ptr<Store> there = stores_.BoardAt(newcomers.port()).Connect("");
  ASSERT_OK(there->Set(keys.NewestEpoch(), "0"));
  ASSERT_OK(there->Set(keys.Succession(), SuccessionText({.coordinator = "them",
                                                          .address = newcomers.address()})));
  const BoardPlace own{1, 4, own_board.address(), "me"};
  EXPECT_FALSE(finder_->Scout(own, {}, CancelToken::Never()));
  EXPECT_EQ(**other_job_->Get(BesideKey("j")), BoardPlaceText(own));
  EXPECT_EQ(**there->Get(keys.Offer()), BoardPlaceText(own)) << "which the newcomer follows";
}

}  // namespace
}  // namespace keel
