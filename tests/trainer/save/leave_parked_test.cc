// A worker that loses its group with a step computed but not decided, and is told to stop: what it
// saves by itself is the state before that step, to the last bit.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/line_framer.h"
#include "base/log.h"
#include "base/memory_files.h"
#include "ckpt/catalog.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/quiet_peer.h"
#include "tests/trainer/save/kept_member.h"
#include "trainer/group/whereabouts.h"
#include "trainer/loop/trainer.h"

namespace keel {
namespace {

constexpr int64_t kPendingStep = 1;   // of 3: one is made before it, one is left after it
constexpr Position kVotingOnPending = {kPendingStep, static_cast<int>(Phase::kVoting)};

// The supervisor's end of a worker's link.
class Supervisor {
 public:
  Supervisor() {
    int ends[2];
    KEEL_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    socket_ = Fd(ends[0]);
    auto link = WorkerLink::Open(Fd(ends[1]));
    KEEL_CHECK(link.ok(), link.error().message);
    worker = std::move(*link);
  }

  void Say(const SupervisorMessage& message) {
    const std::string line = *EncodeMessage(message);
    const ssize_t sent = send(socket_.number(), line.data(), line.size(), MSG_NOSIGNAL);
    ASSERT_EQ(sent, static_cast<ssize_t>(line.size()));
  }

  // Hears until the message that `is_it` is meant for; false: the worker has ended.
  template <class Message, class Predicate>
  bool Await(Predicate is_it) {
    while (const auto message = Hear()) {
      const Message* const one = std::get_if<Message>(&*message);
      if (one != nullptr && is_it(*one)) return true;
    }
    return false;
  }

  std::unique_ptr<WorkerLink> worker;

 private:
  std::optional<WorkerMessage> Hear() {
    for (;;) {
      if (const auto line = framer_.Next()) return *ParseWorkerMessage(*line);
      std::array<char, 4096> piece;
      const ssize_t got = recv(socket_.number(), piece.data(), piece.size(), 0);
      if (got <= 0) return std::nullopt;
      KEEL_CHECK(framer_.Feed({piece.data(), static_cast<size_t>(got)}).ok(), "garbage");
    }
  }

  Fd socket_;
  LineFramer framer_{kControlLineMax};
};

// Makes the first step with the worker, computes the second one, and never votes on it.
class SilentMember {
 public:
  SilentMember(GroupCrew& crew, const std::string& prefix, Files& files)
      : thread_([&crew, prefix, &files, may_end = end_.get_future().share()] {
          const KeptMember member(files);
          EpochGroup::Spec spec = crew.SpecOf(1, 2, prefix);
          spec.whereabouts = std::make_shared<Whereabouts>([&](const Whereabouts::Now& now) {
            if (now.position == kVotingOnPending) may_end.wait();
          });
          const auto outcome = RunEpoch(*member.state, spec, CancelToken::Never(), QuietPeer(),
                                        member.keeping.get());
          EXPECT_TRUE(outcome.ok() && outcome->end == EpochEnd::kBroken);
        }) {}
  ~SilentMember() {
    end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> end_;
  std::thread thread_;
};

// Its group breaks in the second step; then it is told to stop.
Result<TrainOutcome> LoseTheOtherAndStop(GroupCrew& crew, Files& files, const KeptMember& member,
                                         int64_t deadline_ms) {
  Supervisor supervisor;
  const std::string prefix = crew.NewPrefix();
  auto outcome = std::async(std::launch::async, [&] {
    return Trainer(*member.state, kKeptFingerprint,
                   {.link = supervisor.worker.get(), .keeping = member.keeping.get()})
        .Run();
  });
  const SilentMember other(crew, prefix, files);
  supervisor.Say(EpochMessage{1, 0, 2, "127.0.0.1", crew.port(), prefix, "formed", {}});
  EXPECT_TRUE(supervisor.Await<AtMessage>([](const AtMessage& at) {
    return at.position == kVotingOnPending;
  }));
  supervisor.Say(BreakMessage{1, "the other one is gone"});
  supervisor.Say(StopMessage{"SIGTERM", deadline_ms});
  const auto is_ours = [](const auto& message) { return message.step == kPendingStep; };
  EXPECT_TRUE(deadline_ms == 0 || supervisor.Await<SavedMessage>(is_ours));
  EXPECT_TRUE(supervisor.Await<LeavingMessage>(is_ours));
  return outcome.get();
}

TEST(LeavingParked, WithAStepPendingSavesWhatWasBeforeIt) {
  GroupCrew crew;
  MemoryFiles files;
  const std::string quiet = QuietBits();
  {
    const KeptMember member(files);
    const Result<TrainOutcome> left = LoseTheOtherAndStop(crew, files, member, 30000);
    ASSERT_OK(left);
    EXPECT_EQ(left->saved_step, kPendingStep);
  }

  const KeptMember resumed(files);
  ASSERT_OK(resumed.RunAlone());
  EXPECT_EQ(resumed.Bits(), quiet);
  EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(40)));
}

// Its host may be suspended: the kernel takes connections, and nobody greets.
TEST(Entering, ABreakIsHeardWhileTheStoreSaysNothing) {
  const Fd silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent.number(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent.number(), 4), 0);
  ASSERT_EQ(getsockname(silent.number(), reinterpret_cast<sockaddr*>(&address), &size), 0);

  std::mutex mutex;
  std::string log;
  LogToCallback([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    log += line;
  });
  MemoryFiles files;
  const KeptMember member(files);
  Supervisor supervisor;
  auto outcome = std::async(std::launch::async, [&] {
    return Trainer(*member.state, kKeptFingerprint,
                   {.link = supervisor.worker.get(), .keeping = member.keeping.get()})
        .Run();
  });
  supervisor.Say(EpochMessage{1, 0, 2, "127.0.0.1", ntohs(address.sin_port), "p", "formed", {}});
  supervisor.Say(BreakMessage{1, "the other one is gone"});
  EXPECT_TRUE(supervisor.Await<ParkedMessage>([](const auto& one) { return one.epoch == 1; }));
  supervisor.Say(StopMessage{"SIGTERM", 0});
  EXPECT_OK(outcome.get());
  LogToStderr();
  EXPECT_NE(log.find("was cancelled"), std::string::npos) << log;
}

TEST(LeavingParked, WithoutTimeToSaveItBeginsNone) {
  GroupCrew crew;
  MemoryFiles files;
  {
    const KeptMember member(files);
    ASSERT_OK(member.saver->SaveAlone({}));   // now it knows how long that takes
    const Result<TrainOutcome> left = LoseTheOtherAndStop(crew, files, member, 0);
    ASSERT_OK(left);
    EXPECT_EQ(left->saved_step, std::nullopt);
  }
  const auto newest = NewestComplete(files, "/c");
  ASSERT_OK(newest);
  EXPECT_EQ(newest->step, 0U);
  EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(40)));
}

}  // namespace
}  // namespace keel
