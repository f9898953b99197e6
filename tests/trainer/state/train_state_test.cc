// One worker alone, by the engine's own road (TrainState under RunEpoch), against the quiet
// reference, which shares none of its folding, exchanging and averaging.
#include "trainer/state/train_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <cmath>
#include <stdexcept>

#include "tests/harness/expect_ok.h"
#include "tests/trainer/reference.h"
#include "tests/trainer/tasks.h"
#include "trainer/loop/epoch_run.h"

namespace keel {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSteps = 7;

struct Trial {
  const char* name;
  Precision precision = Precision::kFp32;
  uint64_t lanes = 4;
  bool sgd = false;
};

TrainConfig ConfigOf(const Trial& kind) {
  TrainConfig config{.steps = kSteps, .seed = 3, .lanes = kind.lanes, .lane_batch = 4};
  config.precision = kind.precision;
  config.update = {.learning_rate = 0.01, .clip_norm = 1.0};
  if (kind.precision == Precision::kFp16) config.update.loss_scale = LossScale();
  return config;
}

std::unique_ptr<Optimizer> OptimizerOf(const Trial& kind, const Task& task) {
  const NamedTensors parameters = TensorsOf(*task.model).parameters;
  auto made = kind.sgd ? MakeSgd(parameters, {.momentum = 0.9}) : MakeAdamW(parameters, {});
  KEEL_CHECK(made.ok(), made.error().message);
  return std::move(*made);
}

Task SeededTask(const Trial& kind) {
  torch::manual_seed(1);
  return MakeTask(kind.name);
}

ReferenceRecord Quiet(const Trial& kind) {
  const Task task = SeededTask(kind);
  const auto optimizer = OptimizerOf(kind, task);
  const TrainConfig config = ConfigOf(kind);
  auto updater = Updater::Make(config.update, JustTensors(TensorsOf(*task.model).parameters),
                               *optimizer);
  KEEL_CHECK(updater.ok(), updater.error().message);
  Reference reference({.model = task.model, .loss = task.loss, .dataset = *task.dataset,
                       .optimizer = *optimizer, .updater = **updater,
                       .precision = config.precision, .seed = config.seed,
                       .lanes = config.lanes, .lane_batch = config.lane_batch});
  const Result<ReferenceRecord> record = reference.Run(kSteps);
  KEEL_CHECK(record.ok(), record.error().message);
  return *record;
}

Result<EpochOutcome> RunAlone(TrainState& state) {
  EpochGroup::Spec spec;
  spec.store = c10::make_intrusive<c10d::HashStore>();
  spec.prefix = "alone";
  EpochCallbacks peer;
  peer.watch = [](auto) { return std::shared_ptr<void>(); };
  peer.wishes = [] { return EpochCallbacks::Wishes{}; };
  return RunEpoch(state, spec, CancelToken::Never(), peer);
}

// What the reference notes of a run, noted of the engine's.
struct Training {
  std::vector<StepReport> reports;
  std::vector<Digest> parameters;
  Trail trail;
  Digest digest;
};

Training Engine(const Trial& kind) {
  Task task = SeededTask(kind);
  const auto model = task.model;
  std::unique_ptr<Optimizer> optimizer = OptimizerOf(kind, task);
  const NamedTensors of_optimizer = optimizer->state();
  Training trained;
  TrainProgram program{.model = model, .loss = task.loss, .dataset = std::move(task.dataset),
                       .optimizer = std::move(optimizer)};
  const ModelTensors tensors = TensorsOf(*model);
  program.on_step = [&](const StepReport& report) -> Status {
    trained.reports.push_back(report);
    trained.parameters.push_back(DigestOfTensors(JustTensors(tensors.parameters)));
    return Ok();
  };
  auto state = TrainState::Make(ConfigOf(kind), std::move(program));
  KEEL_CHECK(state.ok(), state.error().message);
  const auto outcome = RunAlone(**state);
  EXPECT_OK(outcome);
  if (outcome.ok()) {
    EXPECT_EQ(outcome->end, EpochEnd::kFinished);
  }
  std::vector<at::Tensor> all = JustTensors(tensors.parameters);
  for (const at::Tensor& tensor : JustTensors(tensors.buffers)) all.push_back(tensor);
  for (const at::Tensor& tensor : JustTensors(of_optimizer)) all.push_back(tensor);
  trained.trail = (*state)->trail();
  trained.digest = DigestOfTensors(all);
  return trained;
}

class EngineAlone : public testing::TestWithParam<Trial> {};

TEST_P(EngineAlone, LeavesTheBitsOfTheQuietReference) {
  const ReferenceRecord quiet = Quiet(GetParam());
  const Training engine = Engine(GetParam());
  ASSERT_EQ(engine.reports.size(), kSteps);
  for (size_t step = 0; step < kSteps; ++step) {
    const StepReport& report = engine.reports[step];
    EXPECT_EQ(report.step, step + 1);
    EXPECT_EQ(report.lane_losses, quiet.lane_losses[step]) << step;
    EXPECT_EQ(report.loss, quiet.losses[step]) << step;
    EXPECT_EQ(report.outcome.applied, quiet.applied[step]) << step;
    EXPECT_EQ(engine.parameters[step], quiet.parameters[step]) << step;
    EXPECT_TRUE(std::isfinite(report.loss)) << step;
    if (step > 0 && report.outcome.applied) {
      EXPECT_NE(engine.parameters[step], engine.parameters[step - 1]) << step;
    }
  }
  EXPECT_EQ(engine.trail.Hex(), quiet.trail.Hex());
  EXPECT_EQ(engine.digest, quiet.digest);
}

INSTANTIATE_TEST_SUITE_P(
    All, EngineAlone,
    testing::Values(Trial{"mlp"}, Trial{.name = "resnet", .lanes = 3},
                    Trial{.name = "gpt", .lanes = 6}, Trial{.name = "mlp", .lanes = 1, .sgd = true},
                    Trial{.name = "mlp", .precision = Precision::kBf16, .lanes = 8},
                    Trial{.name = "resnet", .precision = Precision::kBf16, .sgd = true},
                    Trial{.name = "gpt", .precision = Precision::kBf16, .lanes = 5}),
    [](const auto& info) {
      return std::string(info.param.name) + std::string(PrecisionName(info.param.precision)) +
             std::to_string(info.param.lanes) + "lanes";
    });

// What a program that fails at one place gives back.
class FailingProgram : public testing::Test {
 protected:
  // The error of a run whose program `change` has broken.
  Error ErrorOf(const std::function<void(TrainProgram&)>& change) {
    const Trial kind{"mlp"};
    Task task = SeededTask(kind);
    auto optimizer = OptimizerOf(kind, task);
    TrainProgram program{.model = task.model, .loss = task.loss,
                         .dataset = std::move(task.dataset), .optimizer = std::move(optimizer)};
    change(program);
    auto state = TrainState::Make(ConfigOf(kind), std::move(program));
    if (!state.ok()) return state.error();
    const auto outcome = RunAlone(**state);
    return outcome.ok() ? Error{Code::kForeign, "it ran"} : outcome.error();
  }
};

TEST_F(FailingProgram, AnExceptionInTheLossNamesRankStepAndLane) {
  int lanes = 0;
  const Error error = ErrorOf([&lanes](TrainProgram& program) {
    program.loss = [&lanes, inner = program.loss](const Batch& batch) {
      // In words that a lost connection could have.
      if (++lanes == 7) throw std::runtime_error("Connection reset by peer: timed out");
      return inner(batch);
    };
  });
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("rank 0, step 1, lane 2"));
  EXPECT_THAT(error.message, HasSubstr("Connection reset by peer"));
}

TEST_F(FailingProgram, ALossThatIsNoScalarIsNamed) {
  const Error error = ErrorOf([](TrainProgram& program) {
    program.loss = [](const Batch& batch) { return torch::ones({batch.data.size(0)}); };
  });
  EXPECT_THAT(error.message, HasSubstr("step 0, lane 0: the loss is not a scalar"));
}

TEST_F(FailingProgram, ALossWithoutGradientsIsNamed) {
  const Error error = ErrorOf([](TrainProgram& program) {
    program.loss = [](const Batch&) { return torch::ones({}); };
  });
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("rank 0, step 0, lane 0"));
}

TEST_F(FailingProgram, AnErrorOrExceptionOfOnStepNamesTheStep) {
  const Error error = ErrorOf([](TrainProgram& program) {
    program.on_step = [](const StepReport& report) -> Status {
      return report.step < 3 ? Ok() : Status(Error{Code::kTimeout, "the log server is slow"});
    };
  });
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("rank 0, after step 3: the log server is slow"));
  const Error thrown = ErrorOf([](TrainProgram& program) {
    program.on_step = [](const StepReport&) -> Status { throw std::runtime_error("timed out"); };
  });
  EXPECT_EQ(thrown.code, Code::kInvalid);
  EXPECT_THAT(thrown.message, HasSubstr("rank 0, after step 1: timed out"));
}

// A dataset of a user's own that throws where it should return an error.
class ThrowingDataset : public Dataset {
 public:
  uint64_t size() const override { return 10; }
  Result<Batch> Load(std::span<const uint64_t>) override {
    throw std::runtime_error("no such file");
  }
};

TEST_F(FailingProgram, ADatasetThatThrowsIsNamedByStepAndLane) {
  const Error error = ErrorOf([](TrainProgram& program) {
    program.dataset = std::make_unique<ThrowingDataset>();
  });
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_THAT(error.message, AllOf(HasSubstr("rank 0, step 0, lane 0: loading samples"),
                                   HasSubstr("no such file")));
}

TEST_F(FailingProgram, ABufferThatIsAPartOfAParameterIsRefused) {
  EXPECT_THAT(ErrorOf([](TrainProgram& program) {
                const at::Tensor part = program.model->parameters()[0].detach().narrow(0, 0, 1);
                program.model->register_buffer("part", part);
              }).message,
              AllOf(HasSubstr("buffer part and parameter "), HasSubstr(" share memory")));
}

TEST_F(FailingProgram, WhatIsMissingIsRefused) {
  EXPECT_THAT(ErrorOf([](TrainProgram& program) { program.loss = {}; }).message,
              HasSubstr("needs a model, a loss, a dataset and an optimizer"));
  EXPECT_THAT(ErrorOf([](TrainProgram& program) {
                for (at::Tensor& one : program.model->parameters()) one.set_requires_grad(false);
              }).message,
              HasSubstr("no parameters that require a gradient"));
}

}  // namespace
}  // namespace keel
