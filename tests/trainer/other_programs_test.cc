// Programs that are put together in other ways end as the usual one does: a model of names and
// tensors, a backward of the program's own, samples that are drawn as they are loaded ahead.
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "examples/models/mlp.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/small_run.h"
#include "trainer/early_stop.h"
#include "trainer/train_run.h"

namespace keel {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Make = std::function<Result<TrainProgram>()>;

struct Ended {
  std::string last_line;
  std::vector<std::string> printed;
  std::vector<double> evaluations;
};

Result<Ended> Train(const TrainRunOptions& options, const Make& make) {
  Ended ended;
  KEEL_TRY_ASSIGN(const auto run, TrainRun::Open(options));
  EndEarlyStop();
  KEEL_TRY_ASSIGN(TrainProgram program, make());
  KEEL_TRY_ASSIGN(program.evaluation.dataset, SyntheticClasses({.seed = 3, .samples = 30}));
  if (!program.evaluation.metric) program.evaluation.metric = program.loss;
  program.evaluation.every = 2;
  program.on_evaluation = [&](const EvaluationReport& report) {
    ended.evaluations.push_back(report.value);
    return Ok();
  };
  KEEL_TRY_ASSIGN(const TrainResult result,
                  run->Run(std::move(program), {.print = [&](const std::string& line) {
                             ended.printed.push_back(line);
                           }}));
  if (!result.refused.empty()) return Error{Code::kInvalid, result.refused};
  ended.last_line = result.last_line;
  return ended;
}

std::shared_ptr<Mlp> NewMlp() { return std::make_shared<Mlp>(MlpOptions{.hidden = {32, 32}}); }

Result<TrainProgram> Usual() {
  const auto model = NewMlp();
  TrainProgram program;
  KEEL_TRY_ASSIGN(program.dataset, SyntheticClasses({.samples = 100}));
  KEEL_TRY_ASSIGN(program.optimizer, MakeAdamW(TensorsOf(*model).parameters, {}));
  program.loss = [model](const Batch& batch) {
    return torch::cross_entropy_loss(model->forward(batch.data), batch.target);
  };
  program.model = model;
  return program;
}

// --- A model of names and tensors ---

// The same perceptron, of tensors of its own.
Result<TrainProgram> Faced() {
  KEEL_TRY_ASSIGN(TrainProgram program, Usual());
  NamedTensors parameters;
  for (const NamedTensor& named : TensorsOf(*program.model).parameters) {
    parameters.push_back({named.name, named.tensor.detach().clone().requires_grad_()});
  }
  program.model.reset();
  const auto training = std::make_shared<bool>(true);
  program.face.emplace();
  program.face->tensors.parameters = parameters;
  program.face->evaluate = [training]() -> std::function<void()> {
    *training = false;
    return [training] { *training = true; };
  };
  KEEL_TRY_ASSIGN(program.optimizer, MakeAdamW(parameters, {}));
  program.loss = [parameters, training](const Batch& batch) {
    at::Tensor x = batch.data;
    for (size_t i = 0; i < parameters.size(); i += 2) {
      x = torch::linear(x, parameters[i].tensor, parameters[i + 1].tensor);
      if (i + 2 < parameters.size()) x = torch::dropout(torch::relu(x), 0.1, *training);
    }
    return torch::cross_entropy_loss(x, batch.target);
  };
  return program;
}

TEST(AFaceOfNamesAndTensors, EndsAsTheModuleDoesAndEvaluatesTheSame) {
  ASSERT_OK_AND_ASSIGN(const Ended module, Train(OptionsOf(6), Usual));
  ASSERT_OK_AND_ASSIGN(const Ended face, Train(OptionsOf(6), Faced));
  EXPECT_THAT(module.last_line, StartsWith("final step=6 "));
  EXPECT_EQ(face.last_line, module.last_line);
  EXPECT_THAT(module.evaluations, SizeIs(3));
  EXPECT_EQ(face.evaluations, module.evaluations);
}

TEST(AFaceOfNamesAndTensors, GoesOnFromAModulesCheckpointAndTheOtherWayRound) {
  ASSERT_OK_AND_ASSIGN(const Ended quiet, Train(OptionsOf(6), Usual));
  for (const bool face_first : {false, true}) {
    const TempDir folder;
    const std::string dir = folder.File("ckpts");
    ASSERT_OK(Train(OptionsOf(3, dir), face_first ? Faced : Usual));
    ASSERT_OK_AND_ASSIGN(const Ended resumed,
                         Train(OptionsOf(6, dir), face_first ? Usual : Faced));
    ASSERT_THAT(resumed.printed, SizeIs(2));
    EXPECT_THAT(resumed.printed[0], StartsWith("resumed step=3 "));
    EXPECT_EQ(resumed.last_line, quiet.last_line);
  }
}

TEST(AFaceOfNamesAndTensors, BeginsWithWeightsFromElsewhere) {
  const TempDir folder;
  ASSERT_OK(Train(OptionsOf(3, folder.File("ckpts")), Usual));
  TrainRunOptions options = OptionsOf(6);
  options.keep.resume.init_from = folder.File("ckpts");
  ASSERT_OK_AND_ASSIGN(const Ended module, Train(options, Usual));
  ASSERT_OK_AND_ASSIGN(const Ended face, Train(options, Faced));
  EXPECT_EQ(face.last_line, module.last_line);
}

TEST(AFaceOfNamesAndTensors, ThatMakesNoSenseIsRefusedByName) {
  const auto refused = [](const std::function<void(TrainProgram&)>& spoil) {
    const Result<Ended> ended = Train(OptionsOf(1), [&]() -> Result<TrainProgram> {
      KEEL_TRY_ASSIGN(TrainProgram program, Faced());
      spoil(program);
      return program;
    });
    return ended.ok() ? std::string("nothing was refused") : ended.error().message;
  };
  using Program = TrainProgram;
  EXPECT_THAT(refused([](Program& one) { one.model = NewMlp(); }), HasSubstr("not both"));
  EXPECT_THAT(refused([](Program& one) { one.face.reset(); }), HasSubstr("needs a model"));
  const auto first = [](Program& one) -> NamedTensor& {
    return one.face->tensors.parameters.front();
  };
  EXPECT_THAT(refused([&](Program& one) { first(one).tensor = at::Tensor(); }),
              HasSubstr("layer0.weight of the model is no tensor"));
  EXPECT_THAT(refused([&](Program& one) { first(one).tensor = torch::ones({3}); }),
              HasSubstr("layer0.weight of the model cannot be trained"));
  EXPECT_THAT(refused([&](Program& one) {
                one.face->tensors.parameters.push_back({"again", first(one).tensor});
              }),
              HasSubstr("again of the model is listed twice"));
  EXPECT_THAT(refused([&](Program& one) {
                one.face->tensors.buffers.push_back({"mean", torch::ones({3}).requires_grad_()});
              }),
              HasSubstr("buffer mean of the model requires a gradient"));
}

// --- A backward of its own ---

Result<TrainProgram> BackwardElsewhere(const std::function<Status(const at::Tensor&)>& backward) {
  KEEL_TRY_ASSIGN(TrainProgram program, Usual());
  program.backward = [backward](const at::Tensor& loss) {
    Status done;
    std::thread([&] { done = backward(loss); }).join();
    return done;
  };
  return program;
}

TEST(ABackwardOfItsOwn, EndsAsOurs) {
  ASSERT_OK_AND_ASSIGN(const Ended ours, Train(OptionsOf(6), Usual));
  ASSERT_OK_AND_ASSIGN(const Ended own, Train(OptionsOf(6), [] {
                         return BackwardElsewhere([](const at::Tensor& loss) {
                           loss.backward();
                           return Ok();
                         });
                       }));
  EXPECT_EQ(own.last_line, ours.last_line);
}

// Whatever its code, it is not taken for a break of the group.
TEST(ABackwardOfItsOwn, ThatFailsEndsTheTrainingWithItsWords) {
  const Result<Ended> failed = Train(OptionsOf(6), [] {
    return BackwardElsewhere([](const at::Tensor&) {
      return Status(Error{Code::kPeerLost, "no luck"});
    });
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Code::kInvalid);
  EXPECT_THAT(failed.error().message, HasSubstr("step 0, lane 0: no luck"));
}

// --- Samples that are drawn ---

// Noise for each sample, beside the data; from the default generator, or from one of its own.
class Noisy : public Dataset {
 public:
  Noisy(std::unique_ptr<Dataset> inner, Loading loading)
      : inner_(std::move(inner)), loading_(loading) {}
  uint64_t size() const override { return inner_->size(); }
  Loading loading() const override { return loading_; }
  Result<Batch> Load(std::span<const uint64_t> indices) override {
    return WithNoise(indices, std::nullopt);
  }
  Result<Batch> LoadSeeded(std::span<const uint64_t> indices, uint64_t seed) override {
    if (loading_ == Loading::kInStep) return Load(indices);
    return WithNoise(indices, at::detail::createCPUGenerator(seed));
  }

 private:
  Result<Batch> WithNoise(std::span<const uint64_t> indices,
                          const std::optional<at::Generator>& generator) {
    KEEL_TRY_ASSIGN(Batch batch, inner_->Load(indices));
    batch.more.push_back(at::rand(batch.data.sizes(), generator, at::kFloat));
    batch.more.push_back(at::randperm(batch.data.size(0), generator, at::kLong));
    return batch;
  }

  const std::unique_ptr<Dataset> inner_;
  const Loading loading_;
};

Result<TrainProgram> Drawn(Loading loading) {
  KEEL_TRY_ASSIGN(TrainProgram program, Usual());
  program.evaluation.metric = program.loss;
  program.dataset = std::make_unique<Noisy>(std::move(program.dataset), loading);
  program.loss = [inner = program.loss](const Batch& batch) {
    const at::Tensor noisy = batch.data + 0.1 * batch.more.at(0).index_select(0, batch.more.at(1));
    return inner(Batch(noisy, batch.target));
  };
  return program;
}

TEST(SamplesThatAreDrawn, AreTheSameInTheirStepAndAheadOfIt) {
  ASSERT_OK_AND_ASSIGN(const Ended in_step,
                       Train(OptionsOf(6), [] { return Drawn(Loading::kInStep); }));
  for (const Loading loading : {Loading::kAhead, Loading::kAheadInParallel}) {
    for (const int threads : {0, 1, 3}) {
      TrainRunOptions options = OptionsOf(6);
      options.config.loader.threads = threads;
      ASSERT_OK_AND_ASSIGN(const Ended ahead, Train(options, [&] { return Drawn(loading); }));
      EXPECT_EQ(ahead.last_line, in_step.last_line);
    }
  }
  ASSERT_OK_AND_ASSIGN(const Ended plain, Train(OptionsOf(6), Usual));
  EXPECT_NE(in_step.last_line, plain.last_line);
}

}  // namespace
}  // namespace keel
