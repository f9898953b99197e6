// A script that is driven by tasks ends as the program of callbacks does that it plays.
#include "trainer/driver.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "examples/models/mlp.h"
#include "examples/models/resnet.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/played_script.h"
#include "tests/trainer/small_run.h"
#include "trainer/early_stop.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Kind = ScriptTask::Kind;

template <class Model>
Result<TrainProgram> MakeOf(std::shared_ptr<Model> model, const ClassesSpec& data) {
  TrainProgram program;
  KEEL_TRY_ASSIGN(program.dataset, SyntheticClasses(data));
  KEEL_TRY_ASSIGN(program.evaluation.dataset, SyntheticClasses({.seed = 3, .samples = 30,
                                                                .shape = data.shape}));
  program.evaluation.every = 2;
  KEEL_TRY_ASSIGN(program.optimizer, MakeAdamW(TensorsOf(*model).parameters, {}));
  program.loss = [model](const Batch& batch) {
    return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  };
  program.evaluation.metric = program.loss;
  program.model = model;
  return program;
}

Result<TrainProgram> MakeMlp() {
  return MakeOf(std::make_shared<Mlp>(MlpOptions{.hidden = {32, 32}}), {.samples = 100});
}

// It has buffers.
Result<TrainProgram> MakeResNet() {
  return MakeOf(std::make_shared<MiniResNet>(MiniResNetOptions{.width = 4}),
                {.samples = 100, .shape = {3, 8, 8}});
}

// Draws as it loads, in the step.
class NoisyDataset final : public Dataset {
 public:
  explicit NoisyDataset(std::unique_ptr<Dataset> inner) : inner_(std::move(inner)) {}
  uint64_t size() const override { return inner_->size(); }
  Result<Batch> Load(std::span<const uint64_t> indices) override {
    KEEL_TRY_ASSIGN(Batch batch, inner_->Load(indices));
    batch.data = batch.data + torch::randn_like(batch.data);
    return batch;
  }

 private:
  const std::unique_ptr<Dataset> inner_;
};

Result<TrainProgram> MakeNoisy() {
  KEEL_TRY_ASSIGN(TrainProgram program, MakeMlp());
  program.dataset = std::make_unique<NoisyDataset>(std::move(program.dataset));
  return program;
}

struct Ended {
  TrainResult result;
  std::vector<std::string> printed = {};
  std::vector<double> evaluations = {};
  std::vector<float> losses = {};
};

using Make = std::function<Result<TrainProgram>()>;
using Change = std::function<void(TrainProgram&)>;

// `play`: by tasks; null: by callbacks.
Result<Ended> Train(const TrainRunOptions& options, const Make& make, const Play* play,
                    const Change& change = {}) {
  Ended ended;
  KEEL_TRY_ASSIGN(const auto run, TrainRun::Open(options));
  EndEarlyStop();
  KEEL_TRY_ASSIGN(TrainProgram program, make());
  program.on_step = [&](const StepReport& report) {
    ended.losses.push_back(report.loss);
    return Ok();
  };
  program.on_evaluation = [&](const EvaluationReport& report) {
    ended.evaluations.push_back(report.value);
    return Ok();
  };
  if (change) change(program);
  const TrainOutput output{.print = [&](const std::string& line) {
    ended.printed.push_back(line);
  }};
  KEEL_TRY_ASSIGN(ended.result, play != nullptr ?
                                    PlayScript(*run, std::move(program), output, *play) :
                                    run->Run(std::move(program), output));
  if (!ended.result.refused.empty()) return Error{Code::kInvalid, ended.result.refused};
  return ended;
}

void ExpectSame(const TrainRunOptions& options, const Make& make) {
  ASSERT_OK_AND_ASSIGN(const Ended called, Train(options, make, nullptr));
  EXPECT_THAT(called.result.last_line, StartsWith("final step=6 "));
  for (const bool engines : {false, true}) {
    const Play play{.engines_optimizer = engines};
    ASSERT_OK_AND_ASSIGN(const Ended played, Train(options, make, &play));
    EXPECT_EQ(played.result.last_line, called.result.last_line);
    EXPECT_EQ(played.printed, called.printed);
    EXPECT_EQ(played.losses, called.losses);
    EXPECT_EQ(played.evaluations, called.evaluations);
  }
}

// --- The same bits ---

TEST(Driver, EndsAsCallbacksDo) { ExpectSame(OptionsOf(6), MakeMlp); }

TEST(Driver, EndsAsCallbacksDoWithBuffers) { ExpectSame(OptionsOf(6), MakeResNet); }

TEST(Driver, EndsAsCallbacksDoWithSamplesThatAreDrawn) { ExpectSame(OptionsOf(6), MakeNoisy); }

TEST(Driver, EndsAsCallbacksDoInOtherPrecisionsAndWithALossThatIsScaled) {
  TrainRunOptions options = OptionsOf(6);
  options.config.precision = Precision::kBf16;
  ExpectSame(options, MakeMlp);
  options.config.precision = Precision::kFp32;
  options.config.update.loss_scale.emplace();
  options.config.update.clip_norm = 0.5;
  ExpectSame(options, MakeMlp);
}

TEST(Driver, LoadingAheadOrNotChangesNothing) {
  TrainRunOptions options = OptionsOf(6);
  options.config.loader.threads = 0;
  ExpectSame(options, MakeNoisy);
}

// --- What the script is told ---

TEST(Driver, TellsOfBatchesBeforeTheirLanesAndWhenTheyAreDropped) {
  std::set<uint64_t> here;
  size_t most = 0;
  size_t lanes = 0;
  const Play play{.watch = [&](const ScriptTask& task) {
    for (const auto& one : task.news.wanted) {
      EXPECT_TRUE(here.insert(one.batch).second);
      EXPECT_THAT(one.indices, SizeIs(one.is_evaluation && one.indices.back() == 29 ? 2 : 4));
    }
    for (const uint64_t batch : task.news.dropped) EXPECT_EQ(here.erase(batch), 1U);
    if (task.kind == Kind::kLane || task.kind == Kind::kMeasure) {
      EXPECT_EQ(here.count(task.batch), 1U);
      EXPECT_EQ(task.seed, at::detail::getDefaultCPUGenerator().current_seed());
    }
    lanes += task.kind == Kind::kLane ? 1 : 0;
    most = std::max(most, here.size());
    return Ok();
  }};
  TrainRunOptions options = OptionsOf(6);
  options.config.loader.ahead = 3;
  ASSERT_OK(Train(options, MakeMlp, &play));
  EXPECT_EQ(lanes, 6 * options.config.lanes);
  EXPECT_THAT(here, IsEmpty());
  EXPECT_LE(most, 3U + 2);   // that of the lane, and one that was told of as it was taken
}

TEST(Driver, TheRateIsTheScriptsWhereItsOptimizerIs) {
  std::vector<double> rates;
  const Play play{};
  ASSERT_OK(Train(OptionsOf(2), MakeMlp, &play, [&](TrainProgram& program) {
    program.on_step = [&](const StepReport& report) {
      rates.push_back(report.outcome.learning_rate);
      return Ok();
    };
  }));
  EXPECT_THAT(rates, ElementsAre(1e-3, 1e-3));
}

// A tensor that the script counts in goes on with the rest.
TEST(Driver, GoesOnFromACheckpointWithAllThatIsKept) {
  const TempDir folder;
  const std::string dir = folder.File("ckpts");
  const auto counting = [](const at::Tensor& count, std::vector<bool>& replaced) {
    return Play{.watch = [&replaced, count](const ScriptTask& task) {
      replaced.push_back(task.is_replaced);
      if (task.kind == Kind::kApply) count.add_(1);
      return Ok();
    }};
  };
  at::Tensor count = torch::zeros({1}, at::kLong);
  const auto with_count = [&](TrainProgram& program) {
    program.kept = {{"count", count}};
    program.evaluation = {};
  };
  std::vector<bool> first;
  Play play = counting(count, first);
  ASSERT_OK_AND_ASSIGN(const Ended quiet, Train(OptionsOf(6), MakeMlp, &play, with_count));
  EXPECT_THAT(first, ::testing::Each(false));

  count = torch::zeros({1}, at::kLong);
  play = counting(count, first);
  ASSERT_OK(Train(OptionsOf(4, dir), MakeMlp, &play, with_count));
  count = torch::zeros({1}, at::kLong);
  std::vector<bool> second;
  play = counting(count, second);
  ASSERT_OK_AND_ASSIGN(const Ended resumed, Train(OptionsOf(6, dir), MakeMlp, &play, with_count));
  EXPECT_EQ(resumed.result.last_line, quiet.result.last_line);
  EXPECT_EQ(count.item<int64_t>(), 6);
  ASSERT_FALSE(second.empty());
  EXPECT_TRUE(second.front());
  EXPECT_EQ(std::count(second.begin(), second.end(), true), 1);
}

TEST(Driver, IsStoppedAndSaves) {
  const TempDir folder;
  const Play play{.watch = [](const ScriptTask& task) {
    if (task.kind == Kind::kStep && task.step.step == 3) kill(getpid(), SIGTERM);
    return Ok();
  }};
  ASSERT_OK_AND_ASSIGN(const Ended ended,
                       Train(OptionsOf(1000000, folder.File("ckpts")), MakeMlp, &play));
  EXPECT_FALSE(ended.result.finished || ended.result.lost);
  EXPECT_EQ(ended.result.saved_step, ended.result.step);
}

// --- Errors ---

Error ErrorOf(const Play& play, const Change& change = {}) {
  const Result<Ended> ended = Train(OptionsOf(6), MakeMlp, &play, change);
  EXPECT_FALSE(ended.ok());
  return ended.ok() ? Error{} : ended.error();
}

Play FailingAt(Kind kind) {
  return {.watch = [kind](const ScriptTask& task) -> Status {
    if (task.kind != kind) return Ok();
    return Error{Code::kTimeout, "no ink left"};   // a code that a break has, too
  }};
}

TEST(Driver, AFailureOfTheScriptIsToldWithWhereItWas) {
  EXPECT_THAT(ErrorOf(FailingAt(Kind::kLane)).message,
              AllOf(HasSubstr("step 0, lane 0"), HasSubstr("no ink left")));
  EXPECT_THAT(ErrorOf(FailingAt(Kind::kBackward)).message,
              AllOf(HasSubstr("step 0, lane 0"), HasSubstr("no ink left")));
  EXPECT_THAT(ErrorOf(FailingAt(Kind::kApply)).message,
              AllOf(HasSubstr("step 0"), HasSubstr("no ink left")));
  EXPECT_THAT(ErrorOf(FailingAt(Kind::kStep)).message,
              AllOf(HasSubstr("after step 1"), HasSubstr("no ink left")));
  EXPECT_THAT(ErrorOf(FailingAt(Kind::kMeasure)).message,
              AllOf(HasSubstr("evaluation at step 2"), HasSubstr("no ink left")));
  EXPECT_THAT(ErrorOf(FailingAt(Kind::kEvaluated)).message, HasSubstr("no ink left"));
}

// It throws in the script's own thread, and the answer says so.
TEST(Driver, ABackwardThatThrowsIsTheProgramsError) {
  const Error error = ErrorOf({}, [](TrainProgram& program) {
    program.loss = [inner = program.loss](const Batch& batch) {
      const at::Tensor loss = inner(batch);
      loss.register_hook([](const at::Tensor&) { throw std::runtime_error("out of chalk"); });
      return loss;
    };
  });
  EXPECT_THAT(error.message, AllOf(HasSubstr("step 0, lane 0"), HasSubstr("out of chalk")));
}

TEST(Driver, AScriptThatGoesWithoutAWordHasFailed) {
  ASSERT_OK_AND_ASSIGN(const auto run, TrainRun::Open(OptionsOf(1000000)));
  ASSERT_OK_AND_ASSIGN(TrainProgram program, MakeMlp());
  ScriptProgram brought;
  brought.model = TensorsOf(*program.model);
  brought.optimizer = std::move(program.optimizer);
  brought.samples = 100;
  ASSERT_OK_AND_ASSIGN(auto driver, Driver::Begin(*run, std::move(brought)));
  std::optional<ScriptTask> task;
  while (!task) {
    ASSERT_OK_AND_ASSIGN(task, driver->Next(std::chrono::seconds(1)));
  }
  EXPECT_EQ(task->kind, Kind::kLane);
  EXPECT_EQ(driver->Next(Duration(0)).error().code, Code::kInvalid);
  driver.reset();
}

TEST(Driver, AProgramThatMakesNoSenseIsAnErrorAtItsEnd) {
  ASSERT_OK_AND_ASSIGN(const auto run, TrainRun::Open(OptionsOf(1)));
  ScriptProgram brought;
  brought.samples = 100;
  ASSERT_OK_AND_ASSIGN(const auto driver, Driver::Begin(*run, std::move(brought)));
  std::optional<ScriptTask> task;
  while (!task) {
    ASSERT_OK_AND_ASSIGN(task, driver->Next(std::chrono::seconds(1)));
  }
  EXPECT_EQ(task->kind, Kind::kEnd);
  const Result<TrainResult> result = driver->Join();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("no parameters that require a gradient"));
  EXPECT_EQ(driver->Join().error().code, Code::kInvalid);
}

TEST(Driver, TasksTellHowManyStepsAreMadeAlsoAfterOneThatIsSkippedAndFromACheckpoint) {
  const TempDir folder;
  std::map<Kind, std::vector<uint64_t>> told;
  const Play play{.watch = [&](const ScriptTask& task) {
    std::vector<uint64_t>& of_kind = told[task.kind];
    if (of_kind.empty() || of_kind.back() != task.made) of_kind.push_back(task.made);
    return Ok();
  }};
  const auto train = [&](uint64_t steps, bool is_skipped) {
    TrainRunOptions options = OptionsOf(steps, folder.File("ckpts"));
    options.config.update.non_finite = NonFinite::kSkip;
    uint64_t lanes_left = is_skipped ? options.config.lanes : 0;
    told.clear();
    ASSERT_OK(Train(options, MakeMlp, &play, [&](TrainProgram& program) {
      program.loss = [&lanes_left, inner = program.loss](const Batch& batch) {
        return lanes_left > 0 && lanes_left-- > 0 ? inner(batch) * NAN : inner(batch);
      };
    }));
  };
  train(3, true);
  EXPECT_THAT(told[Kind::kLane], ElementsAre(0, 1, 2));
  EXPECT_THAT(told[Kind::kApply], ElementsAre(1, 2));
  EXPECT_THAT(told[Kind::kStep], ElementsAre(1, 2, 3));
  EXPECT_THAT(told[Kind::kMeasure], ElementsAre(2));
  train(5, false);
  EXPECT_THAT(told[Kind::kLane], ElementsAre(3, 4));
  EXPECT_THAT(told[Kind::kApply], ElementsAre(3, 4));
  EXPECT_THAT(told[Kind::kStep], ElementsAre(4, 5));
}

}  // namespace
}  // namespace keel
