// A worker that loses its group with a step computed but not decided, and is told to stop: what it
// saves by itself is the state before that step, to the last bit.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "base/memory_files.h"
#include "elastic/line_framer.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/tasks.h"
#include "trainer/tensor_digest.h"
#include "trainer/trainer.h"

namespace keel {
namespace {

constexpr int64_t kPendingStep = 1;   // of 3: one is made before it, one is left after it
constexpr int kVotingPhase = 2;
const std::string kFingerprint = "threads=1 lanes=4 lane_batch=4 steps=3 seed=3 samples=50";

// Its BatchNorm's averages change while lanes are computed, not when the step is applied.
std::unique_ptr<TrainState> MakeState() {
  static std::mutex mutex;   // building draws from the one generator that all threads share
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  Task task = MakeTask("resnet");
  TrainProgram program{.model = task.model, .loss = task.loss, .dataset = std::move(task.dataset),
                       .optimizer = *MakeAdamW(TensorsOf(*task.model).parameters, {})};
  auto state = TrainState::Make({.steps = 3, .seed = 3, .lanes = 4, .lane_batch = 4},
                                std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  return std::move(*state);
}

// A state, and what keeps it in `files`.
struct Member {
  explicit Member(Files& files) : state(MakeState()) {
    auto opened = Checkpointer::Open(*state, {.root = "/c", .fingerprint = kFingerprint}, files,
                                     RealClock());
    KEEL_CHECK(opened.ok(), opened.error().message);
    saver = std::move(*opened);
    keeping.reset(new Keeping{*saver, {.root = "/c", .fingerprint = kFingerprint}, files, {}});
  }
  std::string Bits() const {
    return state->trail().Hex() + " " + state->registry().StateDigest().Hex();
  }

  std::unique_ptr<TrainState> state;
  std::unique_ptr<Checkpointer> saver;
  std::unique_ptr<Keeping> keeping;
};

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
  SilentMember(Crew& crew, const std::string& prefix, Files& files)
      : thread_([&crew, prefix, &files, may_end = end_.get_future().share()] {
          const Member member(files);
          EpochPeer peer;
          peer.watch = [](auto) { return std::shared_ptr<void>(); };
          peer.wishes = [] { return EpochPeer::Wishes{}; };
          peer.at = [&](Position position) {
            if (position.step == kPendingStep && position.phase == kVotingPhase) may_end.wait();
          };
          const auto outcome = RunEpoch(*member.state, crew.SpecOf(1, 2, prefix),
                                        CancelToken::Never(), peer, member.keeping.get());
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

TEST(LeavingParked, WithAStepPendingSavesWhatWasBeforeIt) {
  Crew crew;
  MemoryFiles undisturbed, files;
  const Member quiet(undisturbed);
  ASSERT_OK(Trainer(*quiet.state, kFingerprint, {.keeping = quiet.keeping.get()}).Run());

  {
    const Member member(files);
    Supervisor supervisor;
    const std::string prefix = crew.NewPrefix();
    auto outcome = std::async(std::launch::async, [&] {
      return Trainer(*member.state, kFingerprint,
                     {.link = supervisor.worker.get(), .keeping = member.keeping.get()})
          .Run();
    });
    const SilentMember other(crew, prefix, files);
    supervisor.Say(EpochMessage{1, 0, 2, "127.0.0.1", crew.port(), prefix, "formed", {}});
    ASSERT_TRUE(supervisor.Await<AtMessage>([](const AtMessage& at) {
      return at.position == Position{kPendingStep, kVotingPhase};
    }));
    supervisor.Say(BreakMessage{1, "the other one is gone"});
    supervisor.Say(StopMessage{"SIGTERM", 30000});
    EXPECT_TRUE(supervisor.Await<SavedMessage>(
        [](const SavedMessage& saved) { return saved.step == kPendingStep; }));
    const Result<TrainOutcome> left = outcome.get();
    ASSERT_OK(left);
    EXPECT_EQ(left->saved_step, kPendingStep);
  }

  const Member resumed(files);
  ASSERT_OK(Trainer(*resumed.state, kFingerprint, {.keeping = resumed.keeping.get()}).Run());
  EXPECT_EQ(resumed.Bits(), quiet.Bits());
  EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(40)));
}

}  // namespace
}  // namespace keel
