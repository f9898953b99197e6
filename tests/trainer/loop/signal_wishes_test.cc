// Signals that ask to stop or to save are wishes, whichever thread they come to; an impatient one
// does what it always did.
#include "trainer/loop/signal_wishes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

// Until the thread that acts on signals has taken it.
bool Comes(const std::function<bool()>& what) {
  const TimePoint deadline = RealClock().Monotonic() + std::chrono::seconds(30);
  while (!what()) {
    if (RealClock().Monotonic() >= deadline) return false;
    RealClock().SleepFor(std::chrono::milliseconds(1));
  }
  return true;
}

// A thread that was there before, as those of a numerical library, and blocks nothing.
class EarlierThread {
 public:
  EarlierThread() : thread_([this] {
    for (; !ending_; runs_ = true) RealClock().SleepFor(std::chrono::milliseconds(1));
  }) {
    EXPECT_TRUE(Comes([this] { return runs_.load(); }));
  }
  ~EarlierThread() {
    ending_ = true;
    thread_.join();
  }
  void Signal(int signal) { ASSERT_EQ(pthread_kill(thread_.native_handle(), signal), 0); }

 private:
  std::atomic<bool> runs_{false};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

// What a signal does, for as long as this lives.
class Disposition {
 public:
  Disposition(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = handler;
    EXPECT_EQ(sigaction(signal, &action, &before_), 0);
  }
  ~Disposition() { sigaction(signal_, &before_, nullptr); }

 private:
  const int signal_;
  struct sigaction before_ {};
};

void (*HandlerOf(int signal))(int) {
  struct sigaction now {};
  EXPECT_EQ(sigaction(signal, nullptr, &now), 0);
  return now.sa_handler;
}

bool IsBlockedHere(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

std::atomic<int> others_heard{0};
void HeardByAnother(int /*signal*/) { ++others_heard; }

// --- Wishes ---

TEST(SignalWishes, TheFirstSignalNamesTheWish) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
    EXPECT_FALSE(wishes->stop().cancelled());
    EXPECT_EQ(wishes->reason(), "");
    ASSERT_EQ(kill(getpid(), signal), 0);
    ASSERT_TRUE(Comes([&] { return wishes->stop().cancelled(); }));
    const std::string reason = wishes->reason();
    EXPECT_NE(reason, "");
    ASSERT_EQ(kill(getpid(), signal == SIGTERM ? SIGUSR1 : SIGTERM), 0);
    ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
    ASSERT_TRUE(Comes([&] { return wishes->TakeSave(); }));
    EXPECT_EQ(wishes->reason(), reason);
  }
}

TEST(SignalWishes, ASaveIsAskedForOnce) {
  ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
  EXPECT_FALSE(wishes->TakeSave());
  ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
  ASSERT_TRUE(Comes([&] { return wishes->TakeSave(); }));
  EXPECT_FALSE(wishes->TakeSave());
  EXPECT_FALSE(wishes->stop().cancelled());
}

TEST(SignalWishes, AThreadThatWasThereBeforeMayGetTheSignal) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    EarlierThread earlier;
    ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
    earlier.Signal(SIGUSR2);
    ASSERT_TRUE(Comes([&] { return wishes->TakeSave(); }));
    earlier.Signal(signal);
    ASSERT_TRUE(Comes([&] { return wishes->stop().cancelled(); }));
  }
}

// As under a parent that blocks them.
TEST(SignalWishes, TheyAreHeardWhereAllThreadsBlockThem) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  {
    ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
    ASSERT_EQ(kill(getpid(), SIGTERM), 0);
    EXPECT_TRUE(Comes([&] { return wishes->stop().cancelled(); }));
  }
  EXPECT_TRUE(IsBlockedHere(SIGTERM));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// As under `trap '' TERM` in the script of a batch system.
TEST(SignalWishes, WhatWasIgnoredIsAWishAndIsIgnoredAgain) {
  const Disposition ignored(SIGTERM, SIG_IGN);
  {
    ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
    ASSERT_EQ(kill(getpid(), SIGTERM), 0);
    EXPECT_TRUE(Comes([&] { return wishes->stop().cancelled(); }));
  }
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
}

// Each of them: what is pending when signals do again what they did ends the program.
// Whether our thread has come to it or not.
TEST(SignalWishes, WhatCameBeforeTheEndIsAWish) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK_AND_ASSIGN(auto wishes, SignalWishes::Open());
    const CancelToken stop = wishes->stop();
    ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
    ASSERT_EQ(kill(getpid(), SIGTERM), 0);
    wishes.reset();
    EXPECT_TRUE(stop.cancelled());
  }
}

// The same where another thread has handled it. That thread may have taken a signal from the kernel
// long before it runs the handler, and nobody can tell, so the test waits for the handler's note.
TEST(SignalWishes, WhatAnotherThreadHandledBeforeTheEndIsAWish) {
  EarlierThread earlier;
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK_AND_ASSIGN(auto wishes, SignalWishes::Open());
    const CancelToken stop = wishes->stop();
    ASSERT_EQ(kill(getpid(), SIGTERM), 0);
    ASSERT_TRUE(Comes([&] { return !wishes->reason().empty(); }));
    wishes.reset();
    EXPECT_TRUE(stop.cancelled());
  }
}

// Calls of ours, and of the threads that we begin, are not interrupted.
TEST(SignalWishes, TheyComeToNoThreadThatIsBegunLater) {
  ASSERT_OK_AND_ASSIGN(auto wishes, SignalWishes::Open());
  bool blocked = false;
  std::thread([&] { blocked = IsBlockedHere(SIGTERM) && IsBlockedHere(SIGUSR2); }).join();
  EXPECT_TRUE(blocked);
  wishes.reset();
  EXPECT_FALSE(IsBlockedHere(SIGTERM));
  EXPECT_FALSE(IsBlockedHere(SIGUSR2));
}

// --- Others' handlers ---

TEST(SignalWishes, AtTheEndHandlersAreWhatTheyWere) {
  const Disposition other(SIGUSR1, HeardByAnother);
  {
    ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
    EXPECT_NE(HandlerOf(SIGUSR1), HeardByAnother);
    EXPECT_NE(HandlerOf(SIGTERM), SIG_DFL);
  }
  EXPECT_EQ(HandlerOf(SIGUSR1), HeardByAnother);
  EXPECT_EQ(HandlerOf(SIGTERM), SIG_DFL);
}

TEST(SignalWishes, AHandlerThatReplacedOursStays) {
  const Disposition before(SIGUSR1, SIG_DFL);   // puts it back
  {
    ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
    ASSERT_NE(signal(SIGUSR1, HeardByAnother), SIG_ERR);
  }
  EXPECT_EQ(HandlerOf(SIGUSR1), HeardByAnother);
}

TEST(SignalWishes, TheSecondInterruptIsForWhoHadItBefore) {
  const Disposition other(SIGINT, HeardByAnother);
  ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
  others_heard = 0;
  ASSERT_EQ(kill(getpid(), SIGINT), 0);
  ASSERT_TRUE(Comes([&] { return wishes->stop().cancelled(); }));
  EXPECT_EQ(others_heard, 0);
  ASSERT_EQ(kill(getpid(), SIGINT), 0);
  EXPECT_TRUE(Comes([&] { return others_heard == 1; }));
}

std::atomic<pid_t> heard_in{0};

// There Python looks for it, and what that thread waits for ends, as time.sleep() does.
TEST(SignalWishes, TheSecondInterruptComesToTheFirstThreadOfTheProcess) {
  const Disposition other(SIGINT, [](int) { heard_in = gettid(); });
  EarlierThread earlier;
  ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
  earlier.Signal(SIGINT);
  earlier.Signal(SIGUSR2);
  ASSERT_TRUE(Comes([&] { return wishes->TakeSave(); }));
  earlier.Signal(SIGINT);
  ASSERT_TRUE(Comes([&] { return heard_in != 0; }));
  EXPECT_EQ(heard_in, getpid());
}

TEST(SignalWishesDeathTest, WhoInterruptsTwiceDoesNotWantToWait) {
  EXPECT_EXIT(
      {
        EarlierThread earlier;
        const auto wishes = SignalWishes::Open();
        kill(getpid(), SIGINT);
        Comes([&] { return (*wishes)->stop().cancelled(); });
        earlier.Signal(SIGINT);
        Comes([] { return false; });
      },
      testing::KilledBySignal(SIGINT), "");
}

// --- Several, and children ---

TEST(SignalWishes, AreOneAtATime) {
  ASSERT_OK_AND_ASSIGN(auto wishes, SignalWishes::Open());
  EXPECT_EQ(SignalWishes::Open().error().code, Code::kInvalid);
  wishes.reset();
  EXPECT_OK(SignalWishes::Open());
}

// A child has no thread that acts on wishes: a signal ends it as any process.
TEST(SignalWishes, AChildThatIsForkedIsEndedByASignal) {
  ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGINT, SIGINT, SIGINT}) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    ASSERT_GT(child, 0);
    ASSERT_EQ(kill(child, signal), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
  }
  EXPECT_FALSE(wishes->stop().cancelled());
  EXPECT_FALSE(wishes->TakeSave());
}

// They come at every moment of a life, to threads old and new.
TEST(SignalWishes, AStormOfThemHarmsNobody) {
  const Disposition ignored[] = {{SIGTERM, SIG_IGN}, {SIGUSR1, SIG_IGN}, {SIGUSR2, SIG_IGN}};
  std::atomic<bool> ending{false};
  std::vector<std::thread> senders;
  for (int i = 0; i < 3; ++i) {
    senders.emplace_back([&ending] {
      while (!ending) {
        for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2}) {
          kill(getpid(), signal);
          pthread_kill(pthread_self(), signal);
        }
        RealClock().SleepFor(std::chrono::microseconds(100));
      }
    });
  }
  for (int round = 0; round < 50; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto wishes, SignalWishes::Open());
    EXPECT_TRUE(Comes([&] { return wishes->stop().cancelled() && wishes->TakeSave(); }));
  }
  ending = true;
  for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace keel
