// A training in a process that goes on afterwards: it ends as TrainMain's does, gives its result
// and its errors as values, leaves signals as it found them, and may be followed by another one.
#include "trainer/train_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/torch.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "examples/models/mlp.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/small_run.h"
#include "trainer/early_stop.h"
#include "trainer/file_datasets.h"
#include "trainer/train_main.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

using OnStep = std::function<Status(const StepReport&)>;

Result<TrainProgram> MakeMlp(const TrainConfig& /*config*/) {
  const auto model = std::make_shared<Mlp>(MlpOptions{.hidden = {32, 32}});
  TrainProgram program;
  KEEL_TRY_ASSIGN(program.dataset, SyntheticClasses({.samples = 100}));
  KEEL_TRY_ASSIGN(program.optimizer, MakeAdamW(TensorsOf(*model).parameters, {}));
  program.loss = [model](const Batch& batch) {
    return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  };
  program.model = model;
  return program;
}

// What it handed over to be printed.
struct Printed {
  std::vector<std::string> lines;
  TrainOutput output() {
    return {.print = [this](const std::string& line) { lines.push_back(line); }};
  }
};

Result<TrainResult> TrainOnce(const TrainRunOptions& options, const OnStep& on_step = {},
                              const TrainOutput& output = {}) {
  KEEL_TRY_ASSIGN(const auto run, TrainRun::Open(options));
  EndEarlyStop();
  KEEL_TRY_ASSIGN(TrainProgram program, MakeMlp(run->config()));
  program.on_step = on_step;
  return run->Run(std::move(program), output);
}

std::string LastLineOf(uint64_t steps) {
  const Result<TrainResult> result = TrainOnce(OptionsOf(steps));
  EXPECT_OK(result);
  return result.ok() ? result->last_line : "";
}

// A step later.
OnStep SignalAt(uint64_t step, int signal) {
  return [step, signal](const StepReport& report) {
    if (report.step == step) kill(getpid(), signal);
    return Ok();
  };
}

// --- Its end ---

TEST(TrainRun, EndsAsTrainMainDoesAndAnotherOneInTheSameProcess) {
  Printed printed;
  ASSERT_OK_AND_ASSIGN(const TrainResult first, TrainOnce(OptionsOf(6), {}, printed.output()));
  EXPECT_TRUE(first.finished);
  EXPECT_FALSE(first.supervised || first.lost);
  EXPECT_EQ(first.step, 6U);
  EXPECT_THAT(first.last_line, StartsWith("final step=6 trail="));
  EXPECT_THAT(printed.lines, ElementsAre(first.last_line));
  EXPECT_EQ(LastLineOf(6), first.last_line);

  std::string words[] = {"mlp", "--steps=6", "--lane-batch=4", "--log-every=0"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  testing::internal::CaptureStdout();
  const int code = TrainMain(4, argv, {.name = "mlp",
                                       .about = "Trains.",
                                       .make = [](const TrainConfig& config, const Options&) {
                                         return MakeMlp(config);
                                       }});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), first.last_line + "\n");
  EXPECT_EQ(code, 0);
  EXPECT_EQ(LastLineOf(6), first.last_line);
}

TEST(TrainRun, IsStoppedAndSavesAndTheNextOneGoesOn) {
  const TempDir folder;
  const std::string dir = folder.File("ckpts");
  ASSERT_OK_AND_ASSIGN(const TrainResult stopped,
                       TrainOnce(OptionsOf(1000000, dir), SignalAt(3, SIGTERM)));
  EXPECT_FALSE(stopped.finished || stopped.lost);
  EXPECT_GE(stopped.step, 3U);
  EXPECT_EQ(stopped.saved_step, stopped.step);
  EXPECT_EQ(stopped.last_line, "");
  EXPECT_EQ(stopped.refused, "");

  Printed printed;
  const uint64_t steps = stopped.step + 3;
  ASSERT_OK_AND_ASSIGN(const TrainResult finished,
                       TrainOnce(OptionsOf(steps, dir), {}, printed.output()));
  ASSERT_EQ(printed.lines.size(), 2U);
  EXPECT_THAT(printed.lines[0],
              AllOf(StartsWith("resumed step=" + std::to_string(stopped.step) + " trail="),
                    HasSubstr(" from=" + dir)));
  EXPECT_EQ(finished.last_line, LastLineOf(steps));
}

struct Evaluated {
  TrainResult result;
  std::map<uint64_t, double> values;   // by step
};

// Evaluates after every second step; the first batch of that after `stop_in` comes with a SIGTERM.
Result<Evaluated> TrainEvaluated(const TrainRunOptions& options, uint64_t stop_in = 0) {
  Evaluated evaluated;
  KEEL_TRY_ASSIGN(const auto run, TrainRun::Open(options));
  EndEarlyStop();
  KEEL_TRY_ASSIGN(TrainProgram program, MakeMlp(run->config()));
  uint64_t made = 0;
  program.on_step = [&](const StepReport& report) {
    made = report.step;
    return Ok();
  };
  KEEL_TRY_ASSIGN(program.evaluation.dataset, SyntheticClasses({.seed = 3, .samples = 30}));
  program.evaluation.every = 2;
  program.evaluation.metric = [&, loss = program.loss](const Batch& batch) {
    if (made == stop_in && made > 0 && !run->StopWanted()) {
      kill(getpid(), SIGTERM);
      while (!run->StopWanted()) RealClock().SleepFor(std::chrono::milliseconds(1));
    }
    return loss(batch);
  };
  program.on_evaluation = [&](const EvaluationReport& report) {
    evaluated.values[report.step] = report.value;
    return Ok();
  };
  KEEL_TRY_ASSIGN(evaluated.result, run->Run(std::move(program)));
  return evaluated;
}

TEST(TrainRun, AnEvaluationThatAStopCutsShortIsMadeByTheNextOne) {
  ASSERT_OK_AND_ASSIGN(const Evaluated quiet, TrainEvaluated(OptionsOf(6)));
  ASSERT_THAT(quiet.values, SizeIs(3));
  for (const uint64_t step : {4, 6}) {
    const TempDir folder;
    const TrainRunOptions options = OptionsOf(6, folder.File("ckpts"));
    ASSERT_OK_AND_ASSIGN(const Evaluated stopped, TrainEvaluated(options, step));
    EXPECT_FALSE(stopped.result.finished || stopped.result.lost) << step;
    EXPECT_EQ(stopped.result.saved_step, step);
    EXPECT_THAT(stopped.values, SizeIs(step / 2 - 1));
    ASSERT_OK_AND_ASSIGN(const Evaluated resumed, TrainEvaluated(options));
    EXPECT_TRUE(resumed.result.finished) << step;
    EXPECT_EQ(resumed.result.last_line, quiet.result.last_line);
    ASSERT_TRUE(resumed.values.contains(step));
    for (const auto& [at, value] : resumed.values) EXPECT_EQ(value, quiet.values.at(at)) << at;
  }
}

// Its logits are scaled by a buffer, which it changes itself after each step.
class Scaled : public torch::nn::Module {
 public:
  Scaled() : scale(register_buffer("scale", torch::ones({}))) {
    register_module("inner", inner);
  }
  const std::shared_ptr<Mlp> inner = std::make_shared<Mlp>(MlpOptions{.hidden = {32, 32}});
  at::Tensor scale;
};

Result<TrainResult> TrainScaled(const TrainRunOptions& options, double factor,
                                uint64_t stop_at = 0) {
  KEEL_TRY_ASSIGN(const auto run, TrainRun::Open(options));
  EndEarlyStop();
  const auto model = std::make_shared<Scaled>();
  TrainProgram program;
  KEEL_TRY_ASSIGN(program.dataset, SyntheticClasses({.samples = 100}));
  KEEL_TRY_ASSIGN(program.optimizer, MakeAdamW(TensorsOf(*model).parameters, {}));
  program.loss = [model](const Batch& batch) {
    return torch::cross_entropy_loss(model->inner->forward(batch.data) * model->scale,
                                     batch.target);
  };
  program.model = model;
  program.on_step = [model, factor, stop_at](const StepReport& report) {
    const at::NoGradGuard no_grad;
    model->scale.mul_(factor);
    if (report.step == stop_at) kill(getpid(), SIGTERM);
    return Ok();
  };
  return run->Run(std::move(program));
}

TEST(TrainRun, WhatItsOwnCodeChangesInABufferBetweenStepsCountsInTheNextOneAndIsSaved) {
  const TempDir folder;
  const std::string dir = folder.File("ckpts");
  ASSERT_OK_AND_ASSIGN(const TrainResult stopped, TrainScaled(OptionsOf(1000000, dir), 0.9, 3));
  const uint64_t steps = stopped.step + 3;
  ASSERT_OK_AND_ASSIGN(const TrainResult resumed, TrainScaled(OptionsOf(steps, dir), 0.9));
  ASSERT_OK_AND_ASSIGN(const TrainResult quiet, TrainScaled(OptionsOf(steps), 0.9));
  EXPECT_EQ(resumed.last_line, quiet.last_line);
  ASSERT_OK_AND_ASSIGN(const TrainResult unscaled, TrainScaled(OptionsOf(steps), 1));
  EXPECT_NE(quiet.last_line, unscaled.last_line);
}

// There would be nothing to go on from.
TEST(TrainRun, AfterTheLastStepAStopWithNowhereToSaveCutsNoEvaluationShort) {
  ASSERT_OK_AND_ASSIGN(const Evaluated quiet, TrainEvaluated(OptionsOf(6)));
  ASSERT_OK_AND_ASSIGN(const Evaluated stopped, TrainEvaluated(OptionsOf(6), 6));
  EXPECT_TRUE(stopped.result.finished);
  EXPECT_EQ(stopped.values, quiet.values);
}

TEST(TrainRun, StoppedWithNowhereToSaveHasLostItsSteps) {
  ASSERT_OK_AND_ASSIGN(const TrainResult result,
                       TrainOnce(OptionsOf(1000000), SignalAt(3, SIGUSR1)));
  EXPECT_TRUE(result.lost);
  EXPECT_FALSE(result.finished);
}

TEST(TrainRun, StoppedBeforeItsFirstStepHasLostNothing) {
  ASSERT_OK_AND_ASSIGN(const auto run, TrainRun::Open(OptionsOf(1000000)));
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  while (!run->StopWanted()) RealClock().SleepFor(std::chrono::milliseconds(1));
  ASSERT_OK_AND_ASSIGN(TrainProgram program, MakeMlp(run->config()));
  ASSERT_OK_AND_ASSIGN(const TrainResult result, run->Run(std::move(program)));
  EXPECT_FALSE(result.lost || result.finished);
  EXPECT_EQ(result.step, 0U);
}

TEST(TrainRun, LeavesSignalsAsItFoundThem) {
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &before), 0);
  ASSERT_OK(TrainOnce(OptionsOf(1)));
  struct sigaction after {};
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST(TrainRunDeathTest, LeavesSignalsAloneWhereItIsToldTo) {
  EXPECT_EXIT(
      {
        TrainRunOptions options = OptionsOf(1000000);
        options.takes_signals = false;
        (void)TrainOnce(options, SignalAt(2, SIGTERM));
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(TrainRun, WhoseOutputDoesNotArriveIsFinishedAndRefused) {
  TrainOutput output;
  output.status = [] { return Status(Error{Code::kNoSpace, "the wall is full"}); };
  ASSERT_OK_AND_ASSIGN(const TrainResult result, TrainOnce(OptionsOf(2), {}, output));
  EXPECT_TRUE(result.finished);
  EXPECT_THAT(result.refused, AllOf(HasSubstr("training has finished"),
                                    HasSubstr("the wall is full"), HasSubstr(result.last_line)));
}

// --- Its errors ---

TEST(TrainRun, AnErrorOfTheProgramIsAResultAndTheNextOneTrains) {
  const Result<TrainResult> failed = TrainOnce(OptionsOf(6), [](const StepReport& report) {
    return report.step == 2 ? Status(Error{Code::kInvalid, "enough"}) : Ok();
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, AllOf(HasSubstr("after step 2"), HasSubstr("enough")));
  EXPECT_THAT(LastLineOf(6), StartsWith("final step=6 "));
}

TEST(TrainRun, ADirectoryOfAnotherJobRefusesIt) {
  const TempDir folder;
  const std::string dir = folder.File("ckpts");
  ASSERT_OK(TrainOnce(OptionsOf(2, dir)));
  TrainRunOptions other = OptionsOf(4, dir);
  other.config.seed = 7;
  ASSERT_OK_AND_ASSIGN(const TrainResult result, TrainOnce(other));
  EXPECT_FALSE(result.finished);
  EXPECT_THAT(result.refused, HasSubstr("seed"));
}

TEST(TrainRun, TrainsOnceAndOneAtATime) {
  ASSERT_OK_AND_ASSIGN(const auto run, TrainRun::Open(OptionsOf(1)));
  EXPECT_EQ(TrainRun::Open(OptionsOf(1)).error().code, Code::kInvalid);
  for (const bool again : {false, true}) {
    ASSERT_OK_AND_ASSIGN(TrainProgram program, MakeMlp(run->config()));
    EXPECT_EQ(run->Run(std::move(program)).ok(), !again);
  }
}

// It is given one, and reads no other.
TEST(TrainRun, TakesTheLauncherFromTheEnvironmentThatItIsGiven) {
  ASSERT_EQ(setenv("KEEL_CONTROL_FD", "1000", 1), 0);
  EXPECT_OK(TrainOnce(OptionsOf(1)));
  ASSERT_EQ(unsetenv("KEEL_CONTROL_FD"), 0);
  TrainRunOptions options = OptionsOf(1);
  options.environment = {{"KEEL_CONTROL_FD", "1000"}};
  EXPECT_EQ(TrainRun::Open(options).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace keel
