// A newcomer catches up with members that go on: whatever happens meanwhile, all end with the bits
// of a worker alone.
#include "trainer/loop/catch_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "base/log.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/quiet_peer.h"
#include "tests/trainer/tasks.h"
#include "trainer/loop/epoch_run.h"

namespace keel {
namespace {

using testing::HasSubstr;

constexpr uint64_t kWholeJob = 60;
constexpr uint64_t kComesAt = 3;

// It scales each update by the norm of all parameters' gradients, so that none is by itself.
class WholeNorm final : public Optimizer {
 public:
  explicit WholeNorm(NamedTensors parameters) : parameters_(std::move(parameters)) {
    for (const NamedTensor& one : parameters_) {
      state_.push_back({one.name + ".sum", at::zeros_like(one.tensor.detach())});
    }
  }
  Status Step(double learning_rate) override {
    const at::NoGradGuard no_grad;
    double squares = 1;
    for (const NamedTensor& one : parameters_) {
      if (one.tensor.grad().defined()) squares += one.tensor.grad().square().sum().item<double>();
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& gradient = parameters_[i].tensor.grad();
      if (!gradient.defined()) continue;
      state_[i].tensor.add_(gradient);
      at::Tensor(parameters_[i].tensor).sub_(state_[i].tensor, learning_rate / squares);
    }
    return Ok();
  }
  const NamedTensors& state() const override { return state_; }
  std::string Text() const override { return "whole norm"; }

 private:
  const NamedTensors parameters_;
  NamedTensors state_;
};

struct Making {
  std::string model = "gpt";
  bool by_itself = true;      // the optimizer takes each parameter by itself
  uint64_t evaluates = 0;     // every so many steps
  std::optional<double> clip = {};
};

std::unique_ptr<TrainState> Make(const Making& making) {
  static std::mutex mutex;   // building draws from the one generator that all threads share
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  Task task = MakeTask(making.model, 0);
  TrainProgram program;
  program.model = task.model;
  program.loss = task.loss;
  program.dataset = std::move(task.dataset);
  const NamedTensors parameters = TensorsOf(*task.model).parameters;
  if (making.by_itself) {
    program.optimizer = *MakeAdamW(parameters, {});
  } else {
    program.optimizer = std::make_unique<WholeNorm>(parameters);
  }
  if (making.evaluates > 0) {
    program.evaluation.every = making.evaluates;
    program.evaluation.dataset = std::move(MakeTask(making.model).dataset);
    program.evaluation.metric = task.loss;
  }
  // A running mean of the parameters, as scripts keep one.
  const at::Tensor& followed = parameters.front().tensor;
  const at::Tensor mean = followed.detach().clone();
  program.kept = {{"mean", mean}};
  program.on_step = [mean, followed](const StepReport&) {
    const at::NoGradGuard no_grad;
    at::Tensor(mean).lerp_(followed.detach(), 0.25);
    return Ok();
  };
  TrainConfig config{.steps = kWholeJob, .lanes = 4, .lane_batch = 2};
  config.update.clip_norm = making.clip;
  config.digest_every = 7;
  config.piece_bytes = 1 << 10;
  auto state = TrainState::Make(config, std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  return std::move(*state);
}

class CatchUpTest : public testing::Test {
 protected:
  CatchUpTest() {
    at::set_num_threads(1);
    SetLogLevel(LogLevel::kInfo);
    LogToCallback([this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += line;
    });
  }
  ~CatchUpTest() override { LogToStderr(); }

  std::string Log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

  void Forget() {
    const std::lock_guard lock(log_mutex_);
    log_.clear();
  }

  using Wishes = std::function<EpochCallbacks::Wishes(int rank, const TrainState& state)>;
  // One epoch of these members, by rank.
  std::vector<EpochOutcome> Epoch(const std::vector<TrainState*>& members, const Wishes& wishes) {
    std::vector<EpochOutcome> outcomes;
    for (const auto& result : Results(members, wishes)) {
      EXPECT_OK(result);
      outcomes.push_back(result.ok() ? *result : EpochOutcome{});
    }
    return outcomes;
  }
  std::vector<Result<EpochOutcome>> Results(const std::vector<TrainState*>& members,
                                            const Wishes& wishes) {
    std::vector<Result<EpochOutcome>> results(members.size(), EpochOutcome{});
    const std::string prefix = crew_.NewPrefix();
    GroupCrew::OnThreads(static_cast<int>(members.size()), [&](int rank) {
      TrainState& state = *members[static_cast<size_t>(rank)];
      EpochCallbacks peer;
      peer.watch = [](auto) { return std::shared_ptr<void>(); };
      peer.wishes = [&, rank] { return wishes(rank, state); };
      EpochGroup::Spec spec = crew_.SpecOf(rank, static_cast<int>(members.size()), prefix);
      if (rank == 2 && third_) {
        third_->BeginEpoch(0, !state.whole());
        spec.whereabouts = third_;
      }
      results[static_cast<size_t>(rank)] = RunEpoch(state, spec, CancelToken::Never(), peer);
    });
    return results;
  }
  static EpochCallbacks::Wishes None(int, const TrainState&) { return {}; }
  static Wishes JoinAt(uint64_t step) {
    return [step](int, const TrainState& state) {
      return EpochCallbacks::Wishes{.join = state.step() + 1 == step};
    };
  }

  static void ExpectEnd(const std::vector<EpochOutcome>& outcomes, EpochEnd end) {
    for (const EpochOutcome& outcome : outcomes) EXPECT_EQ(outcome.end, end) << outcome.reason;
  }

  std::string Alone(const Making& making) {
    const auto state = Make(making);
    const auto outcome =
        RunEpoch(*state, crew_.SpecOf(0, 1, crew_.NewPrefix()), CancelToken::Never(), QuietPeer());
    EXPECT_OK(outcome);
    return state->registry().StateDigest().Hex();
  }

  // Two members have made some steps when a third one comes.
  void Begin(const Making& making) {
    for (int i = 0; i < 3; ++i) states_.push_back(Make(making));
    ExpectEnd(Epoch({&At(0), &At(1)}, JoinAt(kComesAt)), EpochEnd::kBoundary);
  }
  TrainState& At(size_t i) { return *states_[i]; }

  void ExpectBits(const std::string& expected) {
    for (const auto& state : states_) {
      EXPECT_EQ(state->step(), kWholeJob);
      EXPECT_EQ(state->registry().StateDigest().Hex(), expected);
    }
  }

  GroupCrew crew_;
  std::shared_ptr<Whereabouts> third_;   // of rank 2; null: nobody looks
  std::mutex log_mutex_;
  std::string log_;
  std::vector<std::unique_ptr<TrainState>> states_;
};

class CatchUpOf : public CatchUpTest, public testing::WithParamInterface<const char*> {};

TEST_P(CatchUpOf, ANewcomerHasTheBitsOfTheOthersInTheEnd) {
  for (const std::optional<double> clip : {std::optional<double>(), std::optional<double>(0.01)}) {
    if (!kAllRounds && !clip.has_value()) continue;
    states_.clear();
    Forget();
    const Making making{.model = GetParam(), .clip = clip};
    Begin(making);
    // It need not be the last one.
    ExpectEnd(Epoch({&At(0), &At(2), &At(1)}, None), EpochEnd::kFinished);
    ExpectBits(Alone(making));
    EXPECT_THAT(Log(), HasSubstr("0 receive the state, 1 catch up beside the others"));
    EXPECT_THAT(Log(), HasSubstr(" caught-up"));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CatchUpOf, testing::Values("mlp", "resnet", "gpt"));

TEST_F(CatchUpTest, WhoseOptimizerTakesNoParameterByItselfIsFoundAndWaitsForTheState) {
  const Making making{.by_itself = false};
  Begin(making);
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, None), EpochEnd::kBoundary);
  EXPECT_THAT(Log(), HasSubstr("not-caught-up"));
  EXPECT_FALSE(At(2).whole());
  EXPECT_EQ(At(0).step(), At(1).step());
  EXPECT_GT(At(0).step(), kComesAt);
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, None), EpochEnd::kFinished);
  ExpectBits(Alone(making));
}

TEST_F(CatchUpTest, AnEvaluationHasAllMembers) {
  const Making making{.evaluates = kComesAt + 2};
  Begin(making);
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, None), EpochEnd::kFinished);
  ExpectBits(Alone(making));
  EXPECT_THAT(Log(), HasSubstr(" caught-up step=" + std::to_string(kComesAt + 2)));
}

// So that nobody who alone has the state is left out meanwhile.
TEST_F(CatchUpTest, ANewcomerTellsThatItLacksTheStateForAsLongAsItDoes) {
  Begin({.evaluates = kComesAt + 2});
  std::vector<int64_t> lacking;
  std::vector<int64_t> whole;
  third_ = std::make_shared<Whereabouts>([&](const Whereabouts::Now& now) {
    (now.lacks ? lacking : whole).push_back(now.position.step);
  });
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, None), EpochEnd::kFinished);
  ASSERT_FALSE(lacking.empty() || whole.empty());
  EXPECT_EQ(lacking.back(), kComesAt + 1);
  EXPECT_EQ(whole.front(), kComesAt + 2);
  EXPECT_FALSE(third_->Look().lacks);
}

TEST_F(CatchUpTest, AJobThatEndsMeanwhileHasAllMembers) {
  const Making making{};
  for (int i = 0; i < 3; ++i) states_.push_back(Make(making));
  ExpectEnd(Epoch({&At(0), &At(1)}, JoinAt(kWholeJob - 1)), EpochEnd::kBoundary);
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, None), EpochEnd::kFinished);
  ExpectBits(Alone(making));
}

// Those who stay must have the state before the others leave.
TEST_F(CatchUpTest, AStopWaitsForTheRest) {
  Begin({});
  const auto stops = [](int rank, const TrainState& state) {
    return EpochCallbacks::Wishes{.stop = rank < 2 && state.step() == kComesAt + 1};
  };
  const std::vector<EpochOutcome> outcomes = Epoch({&At(0), &At(1), &At(2)}, stops);
  EXPECT_EQ(outcomes[0].end, EpochEnd::kStopped);
  EXPECT_EQ(outcomes[1].end, EpochEnd::kStopped);
  EXPECT_EQ(outcomes[2].end, EpochEnd::kBoundary);
  EXPECT_TRUE(At(2).whole());
  ExpectEnd(Epoch({&At(2)}, None), EpochEnd::kFinished);
  EXPECT_EQ(At(2).registry().StateDigest().Hex(), Alone({}));
}

// All compare the rest of the state before they stop.
TEST_F(CatchUpTest, OneOfThreeWithAnotherStateLeavesBeforeAStop) {
  for (int i = 0; i < 4; ++i) states_.push_back(Make({}));
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, JoinAt(kComesAt)), EpochEnd::kBoundary);
  {
    const at::NoGradGuard no_grad;
    At(1).parameters().front().view({-1})[0] += 0.25;
  }
  const auto stops = [](int rank, const TrainState& state) {
    return EpochCallbacks::Wishes{.stop = rank == 0 && state.step() == kComesAt + 1};
  };
  const auto results = Results({&At(0), &At(1), &At(2), &At(3)}, stops);
  for (size_t rank = 0; rank < results.size(); ++rank) {
    if (rank == 1) {
      ASSERT_FALSE(results[rank].ok());
      EXPECT_EQ(results[rank].error().code, Code::kCorrupt) << results[rank].error().message;
      EXPECT_THAT(results[rank].error().message, HasSubstr("rank 1 has other bits"));
      continue;
    }
    ASSERT_OK(results[rank]);
    EXPECT_EQ(results[rank]->end, EpochEnd::kBroken);
  }
  EXPECT_FALSE(At(3).whole());
  states_.erase(states_.begin() + 1);
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, None), EpochEnd::kFinished);
  ExpectBits(At(0).registry().StateDigest().Hex());
}

// Whoever holds the state saves it alone.
TEST_F(CatchUpTest, AStopThatHasNoTimeForTheRestParksAll) {
  Begin({});
  const auto stops = [](int rank, const TrainState& state) {
    const bool now = rank == 1 && state.step() == kComesAt + 1;
    return EpochCallbacks::Wishes{.stop = now,
                                  .left = now ? std::optional<Duration>(Duration(0))
                                              : std::nullopt};
  };
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, stops), EpochEnd::kBoundary);
  EXPECT_TRUE(At(0).whole() && At(1).whole());
  EXPECT_FALSE(At(2).whole());
  EXPECT_EQ(At(0).step(), kComesAt + 2);
  EXPECT_EQ(At(2).Report().step, MemberReport::kSpoiled);
}

// As where too few hosts would stay without the newcomer's: the others learn it from the board.
TEST_F(CatchUpTest, AStopOfAllThatComesToTheNewcomerFirstIsOneOfAll) {
  Begin({});
  const auto stops = [](int rank, const TrainState& state) {
    return EpochCallbacks::Wishes{.stop = state.step() >= kComesAt + (rank == 2 ? 1 : 3)};
  };
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, stops), EpochEnd::kStopped);
  EXPECT_TRUE(At(2).whole()) << "it left alone, and they did not save together";
  ExpectEnd(Epoch({&At(2)}, None), EpochEnd::kFinished);
  EXPECT_EQ(At(2).registry().StateDigest().Hex(), Alone({}));
}

// It has nothing to save, and the others need not give it the state before.
TEST_F(CatchUpTest, ANewcomerThatIsToldToStopLeavesAtOnce) {
  Begin({});
  const auto stops = [](int rank, const TrainState& state) {
    return EpochCallbacks::Wishes{.stop = rank == 2 && state.step() == kComesAt + 1,
                                  .left = Duration(0)};
  };
  const std::vector<EpochOutcome> outcomes = Epoch({&At(0), &At(1), &At(2)}, stops);
  EXPECT_EQ(outcomes[0].end, EpochEnd::kBoundary);
  EXPECT_EQ(outcomes[1].end, EpochEnd::kBoundary);
  EXPECT_EQ(outcomes[2].end, EpochEnd::kStopped);
  EXPECT_FALSE(At(2).whole()) << "it was waited for";
  states_.pop_back();
  ExpectEnd(Epoch({&At(0), &At(1)}, None), EpochEnd::kFinished);
  ExpectBits(Alone({}));
}

// Two come one after the other. The first one has received little, so both begin anew together.
TEST_F(CatchUpTest, AnotherNewcomerIsTakenAtOnceWhileLittleWasSent) {
  Begin({});
  states_.push_back(Make({}));
  ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, JoinAt(kComesAt + 1)), EpochEnd::kBoundary);
  ExpectEnd(Epoch({&At(0), &At(1), &At(2), &At(3)}, None), EpochEnd::kFinished);
  ExpectBits(Alone({}));
}

// The epoch breaks while one catches up, wherever that is.
TEST_F(CatchUpTest, ABreakAtAnyStepLeavesTheOthersWithTheirState) {
  const std::string expected = Alone({});
  for (uint64_t at = kComesAt; at < kComesAt + Rounds(uint64_t{12}, uint64_t{3}); ++at) {
    SCOPED_TRACE(at);
    states_.clear();
    Begin({});
    const std::string prefix = crew_.NewPrefix();
    GroupCrew::OnThreads(3, [&](int rank) {
      TrainState& state = At(static_cast<size_t>(rank));
      std::function<void(const std::string&)> lose;
      EpochCallbacks peer;
      peer.watch = [&](auto break_it) {
        lose = break_it;
        return std::shared_ptr<void>();
      };
      // The member that catches up, or, every other time, one that does not, is lost in its vote.
      const int victim = at % 2 == 0 ? 2 : 1;
      peer.wishes = [&, rank] {
        if (rank == victim && state.step() == at) lose("it was lost");
        return EpochCallbacks::Wishes{};
      };
      const auto outcome = RunEpoch(state, crew_.SpecOf(rank, 3, prefix), CancelToken::Never(),
                                    peer);
      ASSERT_OK(outcome);
      EXPECT_EQ(outcome->end, EpochEnd::kBroken);
    });
    ASSERT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(40)));
    ExpectEnd(Epoch({&At(0), &At(1), &At(2)}, None), EpochEnd::kFinished);
    ExpectBits(expected);
  }
}

}  // namespace
}  // namespace keel
