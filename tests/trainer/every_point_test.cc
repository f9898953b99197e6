// A member is lost at every point of a step: before each send and receive that it makes, from the
// first contact to the vote, and between the vote and the optimizer; also while one catches up. The
// others meet again, and nobody disagrees: all end with the bits of a quiet run.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/log.h"
#include "examples/models/mlp.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/quiet_peer.h"
#include "trainer/group/whereabouts.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

constexpr uint64_t kSteps = 2;
// Enough for a newcomer that comes after the first one to catch up.
constexpr uint64_t kStepsToCatchUp = 11;
// A member is lost at every so many-th point.
constexpr int64_t kStride = Rounds(1, 3);

std::unique_ptr<TrainState> MakeState(int lanes, uint64_t steps = kSteps) {
  // Building draws from the one generator that all threads share.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  TrainProgram program;
  const auto model = std::make_shared<Mlp>(MlpOptions{.inputs = 8, .hidden = {16}, .dropout = 0});
  program.model = model;
  program.loss = [model](const Batch& batch) {
    return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  };
  program.dataset = *SyntheticClasses({.samples = 50, .shape = {8}});
  program.optimizer = *MakeAdamW(TensorsOf(*model).parameters, {});
  // Buckets so small that there are two, with points between them; survivors compare by pieces.
  const TrainConfig config{.steps = steps, .lanes = static_cast<uint64_t>(lanes),
                           .lane_batch = 2, .bucket_bytes = 600, .piece_bytes = 1 << 10};
  auto state = TrainState::Make(config, std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  return std::move(*state);
}

// Who is lost, and when: before its n-th operation, or as it has voted on a step.
struct Loss {
  int rank = 0;
  int64_t operation = -1;
  int64_t after_vote_of = -1;
};

// Who reads the memory of the others, instead of being sent to.
enum class Readers { kNone, kAll, kEven };

struct Job {
  int members = 1;
  int lanes = 1;
  Readers readers = Readers::kNone;
  bool newcomer = false;   // the last member comes after the first step
  int64_t one_of = 1;      // a member is lost at one of so many points

  uint64_t steps() const { return newcomer ? kStepsToCatchUp : kSteps; }
  std::string Name() const {
    const char* const readers_text[] = {"", "OfReaders", "OfWhomHalfRead"};
    return std::to_string(members) + readers_text[static_cast<int>(readers)] + "With" +
           std::to_string(lanes) + "Lanes" + (newcomer ? "AndANewcomer" : "");
  }
};

// Threads take the place of workers; who loses a member is told, as by its supervisor.
class Survival {
 public:
  Survival(GroupCrew& crew, const Job& job, const Loss& loss)
      : crew_(crew), size_(job.members), readers_(job.readers), loss_(loss),
        newcomer_(job.newcomer) {
    for (int i = 0; i < size_; ++i) states_.push_back(MakeState(job.lanes, job.steps()));
    breaks_.resize(states_.size());
  }

  // Whether the loss came to pass: a run may have fewer operations.
  bool Run() {
    if (newcomer_) RunEpochOf(size_ - 1, false, 1);
    RunEpochOf(size_, true);
    if (!lost_) return false;
    states_.erase(states_.begin() + loss_.rank);
    breaks_.assign(states_.size(), {});
    RunEpochOf(size_ - 1, false);
    return true;
  }
  const std::vector<std::unique_ptr<TrainState>>& states() const { return states_; }

 private:
  // `parks_at`: somebody asks to join at that step; 0: nobody does.
  void RunEpochOf(int size, bool with_loss, uint64_t parks_at = 0) {
    const std::string prefix = crew_.NewPrefix();
    const CancelToken broken;
    GroupCrew::OnThreads(size, [&](int rank) {
      EpochGroup::Spec spec = crew_.SpecOf(rank, size, prefix);
      const bool reads = readers_ == Readers::kAll || (readers_ == Readers::kEven && rank % 2 == 0);
      spec.read_bytes_min = reads ? 1 : EpochGroup::kNeverRead;
      const bool victim = with_loss && rank == loss_.rank;
      auto count = std::make_shared<std::atomic<int64_t>>(0);
      if (victim) {
        spec.before_each = [this, count, &broken] {
          if ((*count)++ == loss_.operation) Lose(broken);
        };
      }
      EpochCallbacks peer;
      peer.watch = [this, rank](auto break_group) {
        const std::lock_guard lock(mutex_);
        breaks_[static_cast<size_t>(rank)] = break_group;
        if (lost_now_) break_group("it was lost before");
        return std::shared_ptr<void>(nullptr, [this, rank](void*) {
          const std::lock_guard lock(mutex_);
          breaks_[static_cast<size_t>(rank)] = {};
        });
      };
      spec.whereabouts = std::make_shared<Whereabouts>([&, victim](const Whereabouts::Now& now) {
        const bool applying = now.position.phase == static_cast<int>(Phase::kApplying);
        if (victim && applying && now.position.step == loss_.after_vote_of) Lose(broken);
      });
      TrainState& state = *states_[static_cast<size_t>(rank)];
      peer.wishes = [&] { return EpochCallbacks::Wishes{.join = state.step() + 1 == parks_at}; };
      const Result<EpochOutcome> outcome = RunEpoch(state, spec, broken, peer);
      if (victim && lost_) return;   // whatever it thinks: it is dead
      EXPECT_OK(outcome);
      if (!with_loss && outcome.ok()) {
        EXPECT_EQ(outcome->end, parks_at > 0 ? EpochEnd::kBoundary : EpochEnd::kFinished);
      }
    });
    lost_now_ = false;
  }

  void Lose(const CancelToken& broken) {
    const std::lock_guard lock(mutex_);
    lost_ = lost_now_ = true;
    broken.Cancel();
    for (const auto& break_group : breaks_) {
      if (break_group) break_group("a member was lost");
    }
  }

  GroupCrew& crew_;
  const int size_;
  const Readers readers_;
  const Loss loss_;
  const bool newcomer_;
  std::vector<std::unique_ptr<TrainState>> states_;
  std::mutex mutex_;
  std::vector<std::function<void(const std::string&)>> breaks_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> lost_now_{false};
};

struct Bits {
  std::string trail, state;
  bool operator==(const Bits&) const = default;
};
Bits BitsOf(TrainState& state) {
  return {state.trail().Hex(), state.registry().StateDigest().Hex()};
}

Bits Quiet(GroupCrew& crew, const Job& job) {
  const auto state = MakeState(job.lanes, job.steps());
  const auto outcome =
      RunEpoch(*state, crew.SpecOf(0, 1, crew.NewPrefix()), CancelToken::Never(), QuietPeer());
  EXPECT_OK(outcome);
  EXPECT_EQ(state->step(), job.steps());
  return BitsOf(*state);
}

class EveryPoint : public testing::TestWithParam<Job> {};

TEST_P(EveryPoint, SurvivorsNeverDisagree) {
  SetLogLevel(LogLevel::kError);   // hundreds of epochs would hide what matters
  GroupCrew crew;
  const Job job = GetParam();
  const Bits expected = Quiet(crew, job);
  const auto survive = [&](const Loss& loss) {
    Survival survival(crew, job, loss);
    if (!survival.Run()) return false;
    for (const auto& state : survival.states()) {
      EXPECT_EQ(state->step(), job.steps());
      EXPECT_TRUE(BitsOf(*state) == expected)
          << "rank " << loss.rank << " lost before operation " << loss.operation
          << " or after the vote of step " << loss.after_vote_of;
    }
    return true;
  };
  for (int rank = 0; rank < job.members; ++rank) {
    const int64_t stride = kStride * job.one_of;
    int64_t operation = rank % stride;   // each time others
    while (survive({.rank = rank, .operation = operation}) && !HasFailure()) operation += stride;
    EXPECT_GT(operation, 20);
    for (int64_t step = 0; step < static_cast<int64_t>(job.steps()); ++step) {
      if (job.newcomer && step == 0) continue;   // that one was made before
      EXPECT_TRUE(survive({.rank = rank, .after_vote_of = step}));
    }
    EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(40)));
  }
}

// The last ones have a member without lanes, before the loss or before and after it.
INSTANTIATE_TEST_SUITE_P(Members, EveryPoint,
                         testing::Values(Job{2, 6}, Job{2, 6, Readers::kAll},
                                         Job{3, 2, Readers::kAll},
                                         Job{4, 1, Readers::kEven, false, 4},
                                         Job{3, 2, Readers::kNone, true, 6}),
                         [](const auto& info) { return info.param.Name(); });
INSTANTIATE_TEST_SUITE_P(Nightly, EveryPoint,
                         testing::Values(Job{3, 6, Readers::kAll}, Job{4, 6, Readers::kEven},
                                         Job{4, 1, Readers::kEven},
                                         Job{5, 6}, Job{3, 2, Readers::kNone, true},
                                         Job{4, 6, Readers::kAll, true}),
                         [](const auto& info) { return info.param.Name(); });

uint16_t PortOf(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t bytes = sizeof address;
  const bool known = name(fd, reinterpret_cast<sockaddr*>(&address), &bytes) == 0;
  return known && address.sin_family == AF_INET ? ntohs(address.sin_port) : 0;
}

// Holds one end of each connection within this process, as a child that was forked by one of two
// workers does: to close that end does not take it out of an epoll set.
class Holder {
 public:
  Holder() {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const int end = static_cast<int>(std::min<rlim_t>(files.rlim_cur, 4096));
    for (int fd = 0; fd < end; ++fd) {
      const uint16_t own = PortOf(fd, getsockname), other = PortOf(fd, getpeername);
      if (own != 0 && own < other) held_.push_back(dup(fd));
    }
  }
  ~Holder() {
    for (const int fd : held_) close(fd);
  }
  bool empty() const { return held_.empty(); }

 private:
  std::vector<int> held_;
};

TEST(GroupsWhoseSocketsAreHeldElsewhere, EndInOrder) {
  constexpr int kMembers = 5, kLanes = 6;
  SetLogLevel(LogLevel::kError);
  GroupCrew crew;
  for (int round = 0; round < 10; ++round) {
    const std::string prefix = crew.NewPrefix();
    std::optional<Holder> holder;
    GroupCrew::OnThreads(kMembers, [&](int rank) {
      const auto state = MakeState(kLanes);
      EpochGroup::Spec spec = crew.SpecOf(rank, kMembers, prefix);
      spec.whereabouts = std::make_shared<Whereabouts>([&, rank](const Whereabouts::Now& now) {
        if (rank == 0 && now.position.step == 1 && !holder) holder.emplace();
      });
      const auto outcome = RunEpoch(*state, spec, CancelToken::Never(), QuietPeer());
      EXPECT_OK(outcome);
    });
    EXPECT_TRUE(holder.has_value() && !holder->empty());
    EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(40)));
  }
}

}  // namespace
}  // namespace keel
