// Evaluation between steps: the same value for any number of workers, and not a trace of it in what
// training computes.
#include "trainer/loop/evaluation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "examples/models/resnet.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "trainer/group/whereabouts.h"
#include "trainer/loop/epoch_run.h"

namespace keel {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSteps = 6;
constexpr uint64_t kSamples = 37;   // no multiple of anything

struct Plan {
  uint64_t every = 2;   // 0: no evaluation
  bool fails = false;
  std::function<void()> on_batch = {};   // within the metric
  bool changes_buffers = false;          // as an observer's, in eval mode too
};

// A model with BatchNorm, of which one module is in eval mode for good.
std::unique_ptr<TrainState> MakeState(const Plan& plan,
                                      std::function<Status(const EvaluationReport&)> told) {
  static std::mutex mutex;   // building draws from the one generator that all threads share
  const std::lock_guard lock(mutex);
  torch::manual_seed(1);
  TrainProgram program;
  const auto model = std::make_shared<MiniResNet>(MiniResNetOptions{.width = 4});
  model->modules(false).back()->eval();
  program.model = model;
  program.loss = [model](const Batch& batch) {
    return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  };
  program.dataset = *SyntheticClasses({.samples = 50, .shape = {3, 8, 8}});
  program.optimizer = *MakeAdamW(TensorsOf(*model).parameters, {});
  if (plan.every > 0) {
    program.evaluation.dataset =
        *SyntheticClasses({.seed = 9, .samples = kSamples, .shape = {3, 8, 8}});
    program.evaluation.metric = [model, plan](const Batch& batch) {
      if (plan.on_batch) plan.on_batch();
      TORCH_CHECK(!plan.fails, "the metric's own mistake");
      if (plan.changes_buffers) model->buffers().front().add_(1);
      EXPECT_FALSE(model->is_training());
      EXPECT_FALSE(torch::GradMode::is_enabled());
      return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
    };
    program.evaluation.every = plan.every;
    program.evaluation.batch = 3;
  }
  program.on_evaluation = std::move(told);
  const TrainConfig config{.steps = kSteps, .lanes = 6, .lane_batch = 2};
  auto state = TrainState::Make(config, std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  return std::move(*state);
}

struct Ran {
  std::map<uint64_t, double> values;   // by step
  std::string trail;
  std::string digest;
  std::vector<std::string> errors;
};

class Evaluations : public testing::Test {
 protected:
  // Workers are threads here: threads of their operations would only wait for one another.
  Evaluations() { at::set_num_threads(1); }

  Ran Train(int workers, const Plan& plan, std::function<bool()> stop = [] { return false; }) {
    Ran ran;
    std::mutex mutex;
    const std::string prefix = crew_.NewPrefix();
    GroupCrew::OnThreads(workers, [&](int rank) {
      const auto state = MakeState(plan, [&](const EvaluationReport& report) -> Status {
        const std::lock_guard lock(mutex);
        const auto [known, is_new] = ran.values.emplace(report.step, report.value);
        EXPECT_EQ(known->second, report.value) << "rank " << report.rank;
        EXPECT_EQ(report.samples, kSamples);
        return Ok();
      });
      std::vector<bool> modes;
      for (const auto& module : state->program().model->modules()) {
        modes.push_back(module->is_training());
      }
      EpochCallbacks peer;
      peer.watch = [](auto) { return std::shared_ptr<void>(); };
      peer.wishes = [&] {
        EpochCallbacks::Wishes wishes;
        wishes.stop = stop();
        return wishes;
      };
      EpochGroup::Spec spec = crew_.SpecOf(rank, workers, prefix);
      spec.whereabouts = whereabouts_;
      const auto outcome = RunEpoch(*state, spec, CancelToken::Never(), peer);
      const std::lock_guard lock(mutex);
      if (!outcome.ok()) ran.errors.push_back(outcome.error().message);
      for (size_t i = 0; i < modes.size(); ++i) {
        EXPECT_EQ(state->program().model->modules()[i]->is_training(), modes[i]) << i;
      }
      ran.trail = state->trail().Hex();
      ran.digest = state->registry().StateDigest().Hex();
    });
    return ran;
  }

  GroupCrew crew_;
  std::shared_ptr<Whereabouts> whereabouts_;   // of a worker that is alone; null: nobody looks
};

TEST_F(Evaluations, HaveTheSameValueForAnyNumberOfWorkers) {
  const Ran alone = Train(1, {});
  ASSERT_EQ(alone.values.size(), 3u);
  for (const auto& [step, value] : alone.values) EXPECT_TRUE(std::isfinite(value)) << step;
  EXPECT_NE(alone.values.at(2), alone.values.at(4));
  for (const int workers : {2, 3, 4, 7}) {
    const Ran more = Train(workers, {});
    EXPECT_EQ(more.values, alone.values) << workers;
    EXPECT_EQ(more.digest, alone.digest) << workers;
  }
}

TEST_F(Evaluations, LeaveNoTraceInTraining) {
  const Ran without = Train(2, {.every = 0});
  const Ran with = Train(2, {.every = 1});
  EXPECT_TRUE(without.values.empty());
  EXPECT_EQ(with.values.size(), kSteps);
  EXPECT_EQ(with.trail, without.trail);
  EXPECT_EQ(with.digest, without.digest);
}

TEST_F(Evaluations, LeaveTheGeneratorsAsTheyWere) {
  // Alone, so that nobody else draws: the last step's evaluation is the last thing that happens.
  const auto state_after = [&](const Plan& plan) {
    EXPECT_TRUE(Train(1, plan).errors.empty());
    return at::detail::getDefaultCPUGenerator().get_state();
  };
  EXPECT_TRUE(at::equal(state_after({.every = 0}), state_after({.every = 1})));
}

TEST_F(Evaluations, AFailureNamesStepAndSamples) {
  const Ran ran = Train(1, {.every = 3, .fails = true});
  ASSERT_EQ(ran.errors.size(), 1u);
  EXPECT_THAT(ran.errors[0], HasSubstr("evaluation at step 3: samples 0, 1, 2: "));
  EXPECT_THAT(ran.errors[0], HasSubstr("the metric's own mistake"));
}

TEST_F(Evaluations, AreAbandonedByAllWhenOneIsToldToStop) {
  // Asked before each vote and in each evaluation: the wish comes up in the first evaluation.
  std::atomic<int> asked{0};
  const Ran ran = Train(1, {.every = 1}, [&] { return ++asked > 1; });
  EXPECT_TRUE(ran.values.empty());
  EXPECT_TRUE(ran.errors.empty());
}

TEST(EvaluationBatches, BelongToOneLaneEach) {
  for (const uint64_t samples : {1, 36, 37, 38, 1000}) {
    for (const uint64_t lanes : {1, 3, 8, 50}) {
      uint64_t next = 0;
      for (uint64_t lane = 0; lane < lanes; ++lane) {
        const BatchRange range = BatchesOf(lane, lanes, samples, 3);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.end, range.begin);
        next = range.end;
      }
      EXPECT_EQ(next, (samples + 2) / 3) << samples << " " << lanes;
    }
  }
}

// A launcher that saw none would take a long evaluation for a hang.
TEST_F(Evaluations, EachBatchIsASignOfLifeAndTellsItsSamples) {
  whereabouts_ = std::make_shared<Whereabouts>();
  std::vector<Position> positions;
  std::vector<std::string> places;
  const Ran ran = Train(1, {.every = kSteps, .on_batch = [&] {
    const Whereabouts::Now now = whereabouts_->Look();
    positions.push_back(now.position);
    places.push_back(now.activity.place);
  }});
  EXPECT_TRUE(ran.errors.empty());
  ASSERT_EQ(places.size(), 13u);
  for (size_t i = 1; i < positions.size(); ++i) EXPECT_LT(positions[i - 1], positions[i]) << i;
  EXPECT_EQ(places.front(), "evaluating, samples 0 to 2");
  EXPECT_EQ(places.back(), "evaluating, samples 36 to 36");
}

TEST_F(Evaluations, OfAModelThatChangesItsBuffersAreTheSameToo) {
  const Plan plan{.changes_buffers = true};
  const Ran alone = Train(1, plan);
  const Ran shared = Train(3, plan);
  EXPECT_EQ(shared.values, alone.values);
  EXPECT_NE(alone.values, Train(1, {}).values) << "it does make a difference";
  EXPECT_EQ(shared.digest, alone.digest);
}

}  // namespace
}  // namespace keel
