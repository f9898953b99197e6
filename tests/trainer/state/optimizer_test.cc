// Optimizers against torch::optim's, and what it takes to go on from a copy of their state.
#include "trainer/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "tests/harness/expect_ok.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

using testing::HasSubstr;

struct Weights {
  at::Tensor matrix, bias;

  Weights() {
    at::manual_seed(1);
    matrix = torch::randn({17, 9}).requires_grad_();
    bias = torch::randn({17}).requires_grad_();
  }
  NamedTensors named() const { return {{"layer.weight", matrix}, {"layer.bias", bias}}; }
  std::vector<at::Tensor> all() const { return {matrix, bias}; }

  void SetGradients(int step) const {
    for (const at::Tensor& tensor : all()) {
      tensor.mutable_grad() = (tensor.detach() * 0.1 + 0.01 * (step + 1)).sin();
    }
  }
};

using Maker = std::function<Result<std::unique_ptr<Optimizer>>(const Weights&)>;

std::unique_ptr<Optimizer> Made(const Maker& maker, const Weights& weights) {
  Result<std::unique_ptr<Optimizer>> made = maker(weights);
  KEEL_CHECK(made.ok(), made.error().message);
  return std::move(made).value();
}

void Steps(Optimizer& optimizer, const Weights& weights, int from, int to) {
  for (int step = from; step < to; ++step) {
    weights.SetGradients(step);
    ASSERT_OK(optimizer.Step(0.01 / (step + 1)));
  }
}

Maker AdamWWith(const AdamWOptions& options) {
  return [=](const Weights& weights) { return MakeAdamW(weights.named(), options); };
}
Maker SgdWith(const SgdOptions& options) {
  return [=](const Weights& weights) { return MakeSgd(weights.named(), options); };
}
template <class Torch, class Options>
Maker Adapted(const Options& options) {
  return [=](const Weights& weights) {
    return AdaptTorchOptimizer(weights.named(), std::make_unique<Torch>(weights.all(), options));
  };
}

const DecayRule kDecayAll = {.spare_vectors = false};

// As torch::optim has it: rate by rate, step by step.
template <class Torch, class Options>
void ExpectLike(const Maker& maker, Options options) {
  const Weights ours, theirs;
  const std::unique_ptr<Optimizer> optimizer = Made(maker, ours);
  Torch torch_optimizer(theirs.all(), options);
  for (int step = 0; step < 5; ++step) {
    const at::Tensor before = ours.matrix.detach().clone();
    ours.SetGradients(step);
    ASSERT_OK(optimizer->Step(0.01 / (step + 1)));
    theirs.SetGradients(step);
    torch_optimizer.param_groups()[0].options().set_lr(0.01 / (step + 1));
    torch_optimizer.step();
    EXPECT_TRUE(at::allclose(ours.matrix, theirs.matrix, 1e-5, 1e-6)) << step;
    EXPECT_TRUE(at::allclose(ours.bias, theirs.bias, 1e-5, 1e-6)) << step;
    EXPECT_TRUE(ours.matrix.isfinite().all().item<bool>());
    EXPECT_FALSE(at::equal(ours.matrix, before));
  }
}

TEST(AdamW, ComputesWhatTorchComputes) {
  ExpectLike<torch::optim::AdamW>(
      AdamWWith({.beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.1, .decay = kDecayAll}),
      torch::optim::AdamWOptions().betas({0.8, 0.99}).weight_decay(0.1));
}

TEST(Sgd, ComputesWhatTorchComputes) {
  ExpectLike<torch::optim::SGD>(SgdWith({}), torch::optim::SGDOptions(0.1));
  ExpectLike<torch::optim::SGD>(
      SgdWith({.momentum = 0.9, .weight_decay = 0.1, .decay = kDecayAll}),
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
  ExpectLike<torch::optim::SGD>(SgdWith({.momentum = 0.9, .nesterov = true}),
                                torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true));
}

TEST(TorchOptimizers, ComputeTheSameBehindOurInterface) {
  using namespace torch::optim;
  ExpectLike<Adam>(Adapted<Adam>(AdamOptions().amsgrad(true)), AdamOptions().amsgrad(true));
  ExpectLike<torch::optim::AdamW>(Adapted<torch::optim::AdamW>(torch::optim::AdamWOptions()),
                                  torch::optim::AdamWOptions());
  ExpectLike<SGD>(Adapted<SGD>(SGDOptions(0.1).momentum(0.9)), SGDOptions(0.1).momentum(0.9));
  ExpectLike<RMSprop>(Adapted<RMSprop>(RMSpropOptions().momentum(0.5).centered(true)),
                      RMSpropOptions().momentum(0.5).centered(true));
  ExpectLike<Adagrad>(Adapted<Adagrad>(AdagradOptions()), AdagradOptions());
}

class EveryOptimizer : public testing::TestWithParam<std::pair<const char*, Maker>> {};

TEST_P(EveryOptimizer, GoesOnFromACopyOfItsStateWithTheSameBits) {
  const Weights whole, resumed;
  const std::unique_ptr<Optimizer> first = Made(GetParam().second, whole);
  Steps(*first, whole, 0, 3);
  const std::unique_ptr<Optimizer> second = Made(GetParam().second, resumed);
  ASSERT_EQ(first->state().size(), second->state().size());
  {
    const torch::NoGradGuard no_grad;
    resumed.matrix.copy_(whole.matrix);
    resumed.bias.copy_(whole.bias);
    for (size_t i = 0; i < first->state().size(); ++i) {
      EXPECT_EQ(first->state()[i].name, second->state()[i].name);
      second->state()[i].tensor.copy_(first->state()[i].tensor);
    }
  }
  const Digest before = DigestOfTensors(whole.all());
  Steps(*first, whole, 3, 6);
  Steps(*second, resumed, 3, 6);
  EXPECT_EQ(DigestOfTensors(whole.all()), DigestOfTensors(resumed.all()));
  EXPECT_EQ(DigestOfTensors(JustTensors(first->state())),
            DigestOfTensors(JustTensors(second->state())));
  EXPECT_NE(DigestOfTensors(whole.all()), before);
  EXPECT_TRUE(whole.matrix.isfinite().all().item<bool>());
}

TEST_P(EveryOptimizer, LeavesParametersWithoutAGradientAlone) {
  const Weights weights;
  const std::unique_ptr<Optimizer> optimizer = Made(GetParam().second, weights);
  weights.SetGradients(0);
  weights.bias.mutable_grad().reset();
  const at::Tensor before = weights.bias.detach().clone();
  ASSERT_OK(optimizer->Step(0.1));
  EXPECT_TRUE(at::equal(weights.bias, before));
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryOptimizer,
    testing::Values(
        std::pair("AdamW", AdamWWith({})), std::pair("Sgd", SgdWith({})),
        std::pair("SgdMomentum", SgdWith({.momentum = 0.9, .nesterov = true})),
        std::pair("TorchAdam", Adapted<torch::optim::Adam>(torch::optim::AdamOptions())),
        std::pair("TorchAdamW", Adapted<torch::optim::AdamW>(torch::optim::AdamWOptions())),
        std::pair("TorchSgd",
                  Adapted<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9))),
        std::pair("TorchRmsprop", Adapted<torch::optim::RMSprop>(torch::optim::RMSpropOptions())),
        std::pair("TorchAdagrad",
                  Adapted<torch::optim::Adagrad>(torch::optim::AdagradOptions()))),
    [](const auto& info) { return std::string(info.param.first); });

TEST(AdamW, ListsItsStateByPyTorchsNamesFromTheStart) {
  const Weights weights;
  const std::unique_ptr<Optimizer> optimizer = Made(AdamWWith({}), weights);
  std::vector<std::string> names;
  for (const NamedTensor& state : optimizer->state()) names.push_back(state.name);
  EXPECT_THAT(names, testing::ElementsAre("layer.weight.step", "layer.weight.exp_avg",
                                          "layer.weight.exp_avg_sq", "layer.bias.step",
                                          "layer.bias.exp_avg", "layer.bias.exp_avg_sq"));
  Steps(*optimizer, weights, 0, 2);
  EXPECT_EQ(optimizer->state()[0].tensor.item<float>(), 2);
}

TEST(AdamW, TakesAGradientThatLiesInAnotherOrder) {
  const Weights plain, turned;
  const std::unique_ptr<Optimizer> one = Made(AdamWWith({}), plain);
  const std::unique_ptr<Optimizer> two = Made(AdamWWith({}), turned);
  plain.SetGradients(0);
  turned.SetGradients(0);
  turned.matrix.mutable_grad() = turned.matrix.grad().t().contiguous().t();
  ASSERT_OK(one->Step(0.1));
  ASSERT_OK(two->Step(0.1));
  EXPECT_TRUE(at::equal(plain.matrix, turned.matrix));
}

TEST(DecayRule, SparesVectorsAndNamedOnes) {
  const NamedTensor matrix = {"block0.attend.weight", at::zeros({2, 2})};
  const NamedTensor vector = {"block0.attend.bias", at::zeros({2})};
  EXPECT_TRUE(DecayRule().Decays(matrix));
  EXPECT_FALSE(DecayRule().Decays(vector));
  EXPECT_TRUE(DecayRule{.spare_vectors = false}.Decays(vector));
  EXPECT_FALSE(DecayRule{.spare_names = {"*.attend.*"}}.Decays(matrix));
}

TEST(DecayRule, SparedOnesDoNotShrinkWhereTheirGradientIsZero) {
  const Weights weights;
  const std::unique_ptr<Optimizer> optimizer = Made(AdamWWith({.weight_decay = 0.5}), weights);
  const at::Tensor matrix = weights.matrix.detach().clone();
  const at::Tensor bias = weights.bias.detach().clone();
  for (const at::Tensor& tensor : weights.all()) tensor.mutable_grad() = at::zeros_like(tensor);
  ASSERT_OK(optimizer->Step(0.1));
  EXPECT_TRUE(at::allclose(weights.matrix, matrix * 0.95));
  EXPECT_TRUE(at::equal(weights.bias, bias));
}

TEST(TorchOptimizers, GroupsKeepTheProportionsOfTheirRates) {
  const Weights weights;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{weights.matrix},
                      std::make_unique<torch::optim::SGDOptions>(0.1));
  groups.emplace_back(std::vector<at::Tensor>{weights.bias},
                      std::make_unique<torch::optim::SGDOptions>(0.4));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Optimizer> optimizer,
      AdaptTorchOptimizer(weights.named(), std::make_unique<torch::optim::SGD>(
                                               groups, torch::optim::SGDOptions(0.1))));
  const at::Tensor matrix = weights.matrix.detach().clone();
  const at::Tensor bias = weights.bias.detach().clone();
  for (const at::Tensor& tensor : weights.all()) tensor.mutable_grad() = at::ones_like(tensor);
  ASSERT_OK(optimizer->Step(0.01));
  EXPECT_TRUE(at::allclose(weights.matrix, matrix - 0.01));
  EXPECT_TRUE(at::allclose(weights.bias, bias - 0.04));
}

TEST(Optimizers, RefuseWhatCannotBeInWords) {
  const Weights weights;
  const auto why = [&](const Maker& maker) {
    const Result<std::unique_ptr<Optimizer>> made = maker(weights);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_THAT(why(AdamWWith({.beta1 = 1})), HasSubstr("beta1 is 1"));
  EXPECT_THAT(why(AdamWWith({.beta2 = NAN})), HasSubstr("beta2 is"));
  EXPECT_THAT(why(AdamWWith({.weight_decay = -1})), HasSubstr("weight_decay is -1"));
  EXPECT_THAT(why(SgdWith({.nesterov = true})), HasSubstr("nesterov needs a momentum"));
  EXPECT_THAT(why(Adapted<torch::optim::SGD>(
                  torch::optim::SGDOptions(0.1).momentum(0.9).dampening(0.5))),
              HasSubstr("dampening"));
  EXPECT_THAT(why(Adapted<torch::optim::LBFGS>(torch::optim::LBFGSOptions())),
              HasSubstr("none of Adagrad, Adam"));
  EXPECT_THAT(why([](const Weights& some) {
                return AdaptTorchOptimizer(
                    some.named(), std::make_unique<torch::optim::SGD>(
                                      std::vector<at::Tensor>{some.bias}, 0.1));
              }),
              HasSubstr("1 of the model's 2 parameters"));
}

}  // namespace
}  // namespace keel
