// A worker's end of the link over a real socket pair, with all that the other end may do.
#include "elastic/worker_link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>

#include "base/process_setup.h"
#include "elastic/decisions/hangs.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/garbage.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TimePoint Limit() { return RealClock().Monotonic() + 60s; }
TimePoint Now() { return RealClock().Monotonic(); }

class WorkerLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    supervisor_ = Fd(ends[0]);
    ASSERT_OK_AND_ASSIGN(link_, WorkerLink::Open(Fd(ends[1])));
  }

  void Say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(supervisor_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void Say(const SupervisorMessage& message) { Say(*EncodeMessage(message)); }

  // The next line from the worker; nothing at the end.
  std::optional<WorkerMessage> Hear() {
    for (;;) {
      if (const auto line = framer_.Next()) {
        auto message = ParseWorkerMessage(*line);
        EXPECT_OK(message);
        return *message;
      }
      std::array<char, 4096> piece;
      const ssize_t got = recv(supervisor_.number(), piece.data(), piece.size(), 0);
      if (got <= 0) return std::nullopt;
      EXPECT_OK(framer_.Feed({piece.data(), static_cast<size_t>(got)}));
    }
  }

  Fd supervisor_;
  LineFramer framer_{kControlLineMax};
  std::unique_ptr<WorkerLink> link_;
};

const EpochMessage kEpoch{3, 0, 1, "127.0.0.1", 1234, "e3/", "formed", {"here/0"}};

TEST_F(WorkerLinkTest, MessagesGoBothWaysInOrder) {
  ASSERT_OK(link_->Send(HelloMessage{kControlVersion, "print"}));
  ASSERT_OK(link_->Send(ReadyMessage{kNoStep}));
  EXPECT_EQ(Hear(), WorkerMessage(HelloMessage{kControlVersion, "print"}));
  EXPECT_EQ(Hear(), WorkerMessage(ReadyMessage{kNoStep}));
  Say(kEpoch);
  Say(JoinMessage{3});
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(kEpoch));
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(JoinMessage{3}));
  EXPECT_FALSE(link_->TryReceive()->has_value());
}

TEST_F(WorkerLinkTest, HalfLinesWaitForTheirRest) {
  const std::string line = *EncodeMessage(SupervisorMessage(kEpoch));
  for (const char byte : line) Say(std::string_view(&byte, 1));
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(kEpoch));
}

TEST_F(WorkerLinkTest, WaitingEndsAtTheLimitAndWhenCancelled) {
  const auto late = link_->Receive(Now());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kTimeout);
  const CancelToken cancel;
  auto waiting = std::async(std::launch::async, [&] { return link_->Receive(kNever, cancel); });
  cancel.Cancel();
  EXPECT_EQ(waiting.get().error().code, Code::kCancelled);
}

TEST_F(WorkerLinkTest, AClosedLinkGivesItsLastMessagesAndThenTheLoss) {
  Say(RefusedMessage{"fingerprint differs"});
  supervisor_.Close();
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(RefusedMessage{"fingerprint differs"}));
  const auto lost = link_->Receive(Limit());
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Code::kPeerLost);
  EXPECT_TRUE(link_->closed());
  EXPECT_EQ(link_->TryReceive().error().code, Code::kPeerLost);
  EXPECT_EQ(link_->Send(ReadyMessage{1}).error().code, Code::kPeerLost);
}

TEST_F(WorkerLinkTest, ABreakIsKnownWithoutAnybodyReceiving) {
  std::promise<std::string> called;
  const CancelToken before = link_->BreakToken(3);
  const CancelToken later = link_->BreakToken(4);
  const auto watch = link_->WatchBreak(3, [&](const std::string& why) { called.set_value(why); });
  const auto other = link_->WatchBreak(4, [](const std::string&) { FAIL() << "4 goes on"; });
  Say(BreakMessage{3, "worker 2 died"});
  EXPECT_EQ(called.get_future().get(), "worker 2 died");
  EXPECT_TRUE(before.cancelled());
  EXPECT_FALSE(later.cancelled());
  EXPECT_TRUE(link_->BreakToken(2).cancelled());
  EXPECT_TRUE(link_->BreakToken(3).cancelled());
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(BreakMessage{3, "worker 2 died"}));
}

TEST_F(WorkerLinkTest, TellsWhereTheWorkerIsAgainAndAgain) {
  const AtMessage first{{7, 1}, {"lane 0", Activity::kNobody}};
  ASSERT_OK(link_->Send(first));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Hear(), WorkerMessage(first));
  const AtMessage now{{7, 1}, {"bucket 2", 1}};
  link_->TellWhere([now] { return now; });
  std::optional<WorkerMessage> heard = Hear();
  while (heard == WorkerMessage(first)) heard = Hear();   // one may have been on its way
  EXPECT_EQ(heard, WorkerMessage(now));
}

TEST_F(WorkerLinkTest, TellsNothingByItselfOnceTheWorkerHasParked) {
  ASSERT_OK(link_->Send(AtMessage{{7, 1}}));
  ASSERT_OK(link_->Send(ParkedMessage{3, 7, false}));
  std::optional<WorkerMessage> heard = Hear();
  while (heard == WorkerMessage(AtMessage{{7, 1}})) heard = Hear();
  EXPECT_EQ(heard, WorkerMessage(ParkedMessage{3, 7, false}));
  pollfd readable = {supervisor_.number(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, static_cast<int>(3 * kTellPause / 1ms)), 0);
}

TEST_F(WorkerLinkTest, APositionThatWaitsToBeSentStaysBeforeWhatWasSaidAfterIt) {
  // Until the socket takes no more.
  while (link_->Flush(Now()).ok()) ASSERT_OK(link_->Send(SavedMessage{1}));
  ASSERT_OK(link_->Send(AtMessage{{7, 1}}));
  ASSERT_OK(link_->Send(LeavingMessage{7}));
  // For long enough to be told again, were it not still waiting.
  EXPECT_EQ(link_->Receive(Now() + 3 * kTellPause).error().code, Code::kTimeout);
  std::optional<WorkerMessage> heard = Hear();
  while (heard == WorkerMessage(SavedMessage{1})) heard = Hear();
  EXPECT_EQ(heard, WorkerMessage(AtMessage{{7, 1}}));
}

TEST_F(WorkerLinkTest, AWatchOfAnEpochThatIsOverIsCalledAtOnce) {
  Say(BreakMessage{5, "over"});
  ASSERT_OK(link_->Receive(Limit()));
  std::string why;
  const auto watch = link_->WatchBreak(4, [&](const std::string& reason) { why = reason; });
  EXPECT_EQ(why, "over");
}

TEST_F(WorkerLinkTest, ADestroyedWatchIsNotCalled) {
  std::atomic<bool> called = false;
  { const auto watch = link_->WatchBreak(3, [&](const std::string&) { called = true; }); }
  Say(BreakMessage{3, "late"});
  ASSERT_OK(link_->Receive(Limit()));
  Say(JoinMessage{4});   // read after the break's calls
  ASSERT_OK(link_->Receive(Limit()));
  EXPECT_FALSE(called);
}

TEST_F(WorkerLinkTest, AClosedLinkBreaksEveryEpoch) {
  std::promise<std::string> called;
  const auto watch = link_->WatchBreak(9, [&](const std::string& why) { called.set_value(why); });
  supervisor_.Close();
  EXPECT_THAT(called.get_future().get(), HasSubstr("closed"));
  EXPECT_TRUE(link_->BreakToken(1'000'000).cancelled());
}

TEST_F(WorkerLinkTest, ASupervisorThatFallsSilentBreaksTheEpochAndKeepsTheLink) {
  Say(kEpoch);
  Say(AliveMessage{50});
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(kEpoch));
  std::promise<std::string> called;
  const auto watch = link_->WatchBreak(3, [&](const std::string& why) { called.set_value(why); });
  EXPECT_THAT(called.get_future().get(), HasSubstr("said nothing for 50 ms"));
  ASSERT_OK_AND_ASSIGN(const SupervisorMessage message, link_->Receive(Limit()));
  ASSERT_TRUE(std::holds_alternative<BreakMessage>(message));
  EXPECT_EQ(std::get<BreakMessage>(message).epoch, 3);
  EXPECT_FALSE(link_->closed());
  // It goes on: the next epoch is as good as any.
  EpochMessage next = kEpoch;
  next.epoch = 4;
  Say(AliveMessage{60000});
  Say(next);
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(next));
  EXPECT_FALSE(link_->BreakToken(4).cancelled());
}

TEST_F(WorkerLinkTest, ASupervisorThatPromisedNothingMayBeSilent) {
  Say(kEpoch);
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(kEpoch));
  const Result<SupervisorMessage> nothing = link_->Receive(Now() + 200ms);
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, Code::kTimeout);
}

TEST_F(WorkerLinkTest, GarbageAndHugeLinesCloseTheLinkForBothSides) {
  Say(JoinMessage{1});
  Say("{\"type\":\"break\",\"epoch\":\"three\"}\n");
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(JoinMessage{1}));
  const auto lost = link_->Receive(Limit());
  ASSERT_FALSE(lost.ok());
  EXPECT_THAT(lost.error().message, HasSubstr("no message of the control link"));
  EXPECT_EQ(Hear(), std::nullopt);
}

TEST_F(WorkerLinkTest, AnEndlessLineClosesTheLink) {
  const std::string piece(4096, 'x');
  // It may close while we still write.
  while (send(supervisor_.number(), piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
  }
  const auto lost = link_->Receive(Limit());
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Code::kPeerLost);
}

TEST_F(WorkerLinkTest, AnUnknownMessageIsPassedOver) {
  Say("{\"type\":\"sing\"}\n");
  Say(JoinMessage{2});
  EXPECT_EQ(*link_->Receive(Limit()), SupervisorMessage(JoinMessage{2}));
}

TEST_F(WorkerLinkTest, SendingNeverWaitsAndKeepsOnlyTheNewestPosition) {
  // Nobody reads: positions replace each other, however many there are.
  for (int step = 0; step < 20'000; ++step) {
    ASSERT_OK(link_->Send(AtMessage{{step, 1}}));
  }
  ASSERT_OK(link_->Send(SavedMessage{19'999}));
  EXPECT_EQ(link_->Flush(Now()).error().code, Code::kTimeout);
  int positions = 0;
  int64_t last = -1;
  for (;;) {
    const auto message = Hear();
    ASSERT_TRUE(message.has_value());
    if (std::holds_alternative<SavedMessage>(*message)) break;
    const int64_t step = std::get<AtMessage>(*message).position.step;
    EXPECT_GT(step, last);
    last = step;
    ++positions;
  }
  EXPECT_EQ(last, 19'999);
  EXPECT_LT(positions, 10'000);
  EXPECT_OK(link_->Flush(Limit()));
}

// Each kind for itself: the last position stays, whatever figures come behind it.
TEST_F(WorkerLinkTest, SendingKeepsOnlyTheNewestFigures) {
  for (int step = 0; step < 20'000; ++step) {
    FiguresMessage figures;
    figures.step = step;
    figures.parts = {{"forward", step}, {"a part with a longer name", step}};
    if (step == 15'000) {
      ASSERT_OK(link_->Send(AtMessage{{step, 1}}));
    }
    ASSERT_OK(link_->Send(figures));
  }
  ASSERT_OK(link_->Send(SavedMessage{1}));
  int told = 0;
  int64_t last = -1;
  bool has_position = false;
  for (;;) {
    const auto message = Hear();
    ASSERT_TRUE(message.has_value());
    if (std::holds_alternative<SavedMessage>(*message)) break;
    has_position |= std::holds_alternative<AtMessage>(*message);
    const auto* const figures = std::get_if<FiguresMessage>(&*message);
    if (figures == nullptr) continue;
    EXPECT_GT(figures->step, last);
    last = figures->step;
    ++told;
  }
  EXPECT_EQ(last, 19'999);
  EXPECT_LT(told, 10'000);
  EXPECT_TRUE(has_position);
}

TEST_F(WorkerLinkTest, WhatCannotBeDroppedIsRefusedWhenTheSupervisorReadsNothing) {
  Status sent;
  for (int i = 0; i < 100'000 && sent.ok(); ++i) {
    sent = link_->Send(ByeMessage{0, std::string(1000, 'b')});
  }
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, Code::kNoSpace);
}

TEST_F(WorkerLinkTest, ItsReadyDescriptorSaysWhenThereIsSomething) {
  const auto is_ready = [this] {
    pollfd ready{link_->ready_fd().number(), POLLIN, 0};
    return poll(&ready, 1, 0) == 1;
  };
  EXPECT_FALSE(is_ready());
  Say(JoinMessage{1});
  EXPECT_TRUE(WaitReadable(link_->ready_fd(), Limit()));
  EXPECT_TRUE(link_->TryReceive()->has_value());
  EXPECT_FALSE(is_ready());
  supervisor_.Close();
  EXPECT_TRUE(WaitReadable(link_->ready_fd(), Limit()));
}

TEST_F(WorkerLinkTest, ManyThreadsAtOnceSendAndWatchWhileBreaksComeIn) {
  constexpr int kThreads = 4;
  constexpr int kEpochs = 200;
  std::atomic<int> calls = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
        const auto watch = link_->WatchBreak(epoch, [&](const std::string&) { ++calls; });
        EXPECT_OK(link_->Send(ParkedMessage{epoch, t}));
        const CancelToken over = link_->BreakToken(epoch);
        while (!over.cancelled()) std::this_thread::yield();
      }
    });
  }
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    for (int t = 0; t < kThreads; ++t) ASSERT_TRUE(Hear().has_value());
    Say(BreakMessage{epoch, "next"});
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(calls, kThreads * kEpochs);
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) ASSERT_OK(link_->Receive(Limit()));
}

TEST_F(WorkerLinkTest, GarbageOfAnyKindNeverHangsOrKills) {
  Garbage garbage(5);
  for (int round = 0; round < 200; ++round) {
    SetUp();
    const std::string bytes = garbage.Bytes(3000) + "\n";
    (void)send(supervisor_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    const auto received = link_->Receive(Limit());
    EXPECT_FALSE(received.ok()) << garbage.Where(round);
    EXPECT_EQ(received.error().code, Code::kPeerLost) << garbage.Where(round);
  }
}

TEST(WorkerLinkEnvironment, WithoutASupervisorThereIsNoLink) {
  EXPECT_EQ(WorkerLink::FromEnvironment({}).error().code, Code::kNotFound);
}

TEST(WorkerLinkEnvironment, AVariableThatLeadsNowhereIsNamed) {
  ASSERT_OK_AND_ASSIGN(const PipeEnds pipe, MakePipe());
  for (const std::string& text :
       {std::string("x"), std::string("-1"), std::string("1"), std::string("99999"),
        std::to_string(pipe.read.number())}) {
    const auto link = WorkerLink::FromEnvironment({{kControlFdVariable, text}});
    ASSERT_FALSE(link.ok()) << text;
    EXPECT_EQ(link.error().code, Code::kInvalid) << text;
    EXPECT_THAT(link.error().message, HasSubstr(kControlFdVariable));
  }
}

TEST(WorkerLinkEnvironment, TheDescriptorIsTakenAndKeptFromChildren) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Fd supervisor(ends[0]);
  ASSERT_OK_AND_ASSIGN(const auto link, WorkerLink::FromEnvironment(
                                            {{kControlFdVariable, std::to_string(ends[1])}}));
  EXPECT_EQ(fcntl(ends[1], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

}  // namespace
}  // namespace keel
