// The state's list: its names, its numbers, its digests, and what it refuses.
#include "trainer/state/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "examples/models/resnet.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> NamesOf(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

TEST(TensorsOf, NamesAreTheOnesOfPyTorch) {
  const ModelTensors tensors = TensorsOf(MiniResNet(MiniResNetOptions()));
  EXPECT_THAT(NamesOf(tensors.parameters), Contains("stage1.shortcut.weight"));
  EXPECT_EQ(NamesOf(tensors.parameters).front(), "stem.weight");
  EXPECT_THAT(NamesOf(tensors.buffers), Contains("stage0.bn1.num_batches_tracked"));
  EXPECT_TRUE(tensors.frozen.empty());
}

struct Tied : torch::nn::Module {
  Tied() {
    first = register_parameter("first", torch::ones({2, 2}));
    second = register_parameter("second", first);
    fixed = register_parameter("fixed", torch::ones({2}), /*requires_grad=*/false);
  }
  at::Tensor first, second, fixed;
};

TEST(TensorsOf, TiedWeightsAreListedOnceAndFrozenOnesApart) {
  const ModelTensors tensors = TensorsOf(Tied());
  EXPECT_THAT(NamesOf(tensors.parameters), testing::ElementsAre("first"));
  EXPECT_THAT(NamesOf(tensors.frozen), testing::ElementsAre("fixed"));
}

struct Numbers {
  uint64_t step = 7;
  uint64_t seed = UINT64_MAX;
  double loss_scale = 65536;
  Digest trail = DigestOf(std::as_bytes(std::span("trail")));
};

Status Register(StateRegistry& registry, Numbers& numbers) {
  KEEL_TRY(registry.AddNumber("step", &numbers.step));
  KEEL_TRY(registry.AddNumber("seed", &numbers.seed));
  KEEL_TRY(registry.AddNumber("loss_scale", &numbers.loss_scale));
  return registry.AddNumber("trail", &numbers.trail);
}

TEST(StateRegistry, NumbersGoThroughTextUnchanged) {
  Numbers from, into{.step = 0, .seed = 0, .loss_scale = 0.1, .trail = {}};
  StateRegistry source, target;
  ASSERT_OK(Register(source, from));
  ASSERT_OK(Register(target, into));
  from.loss_scale = 0x1.23456789abcdep-3;
  ASSERT_OK(target.SetNumbersText(source.NumbersText()));
  EXPECT_EQ(into.step, from.step);
  EXPECT_EQ(into.seed, from.seed);
  EXPECT_EQ(into.loss_scale, from.loss_scale);
  EXPECT_EQ(into.trail, from.trail);
  EXPECT_EQ(source.StateDigest(), target.StateDigest());
}

TEST(StateRegistry, NamesEveryNumberThatIsMissingUnknownOrOfAnotherKind) {
  Numbers numbers;
  StateRegistry registry;
  ASSERT_OK(Register(registry, numbers));
  const Status wrong = registry.SetNumbersText(R"({"step": 9, "lanes": 3})");
  ASSERT_FALSE(wrong.ok());
  for (const char* part : {"seed is missing", "trail is missing", "lanes is unknown here"}) {
    EXPECT_THAT(wrong.error().message, HasSubstr(part));
  }
  EXPECT_EQ(numbers.step, 7u);
  Metadata other = registry.Numbers();
  other["trail"] = true;
  EXPECT_THAT(registry.SetNumbers(other).error().message, HasSubstr("trail is true"));
  other["trail"] = std::string("xyz");
  EXPECT_THAT(registry.SetNumbers(other).error().message, HasSubstr("trail"));
  other = registry.Numbers();
  other["step"] = int64_t{-1};
  EXPECT_THAT(registry.SetNumbers(other).error().message, HasSubstr("step is -1, below 0"));
  EXPECT_FALSE(registry.SetNumbersText("[1]").ok());
}

TEST(StateRegistry, RefusesTwoOfOneNameAndTensorsWithGaps) {
  uint64_t number = 0;
  StateRegistry registry;
  ASSERT_OK(registry.AddNumber("step", &number));
  EXPECT_THAT(registry.AddNumber("step", &number).error().message, HasSubstr("named step"));
  ASSERT_OK(registry.AddTensors("model.", {{"w", at::zeros({2})}}));
  EXPECT_THAT(registry.AddTensors("model.", {{"w", at::zeros({2})}}).error().message,
              HasSubstr("named model.w"));
  const at::Tensor slice = at::zeros({4, 4}).narrow(1, 0, 2);
  EXPECT_THAT(registry.AddTensors("model.", {{"slice", slice}}).error().message,
              HasSubstr("model.slice is not one dense piece"));
  EXPECT_EQ(registry.tensors().size(), 1u);
}

TEST(StateRegistry, DigestsSeeEachBitAndLayoutsOnlyTheShape) {
  uint64_t step = 1;
  const at::Tensor weight = at::ones({3, 2});
  StateRegistry registry;
  ASSERT_OK(registry.AddTensors("model.", {{"weight", weight}}));
  ASSERT_OK(registry.AddNumber("step", &step));
  const Digest layout = registry.LayoutDigest();
  const Digest state = registry.StateDigest();
  ++step;
  EXPECT_NE(registry.StateDigest(), state);
  --step;
  EXPECT_EQ(registry.StateDigest(), state);
  weight[1][1] = 1.0000001f;
  EXPECT_NE(registry.StateDigest(), state);
  EXPECT_EQ(registry.LayoutDigest(), layout);
  StateRegistry other;
  ASSERT_OK(other.AddTensors("model.", {{"weight", at::ones({2, 3})}}));
  ASSERT_OK(other.AddNumber("step", &step));
  EXPECT_NE(other.LayoutDigest(), layout);
}

TEST(FlatAlias, SharesTheMemoryOfChannelsLastTensorsToo) {
  const at::Tensor image = at::arange(24).view({1, 2, 3, 4}).contiguous(
      at::MemoryFormat::ChannelsLast);
  const at::Tensor flat = FlatAlias(image);
  EXPECT_EQ(flat.numel(), 24);
  EXPECT_EQ(flat.data_ptr(), image.data_ptr());
  flat.fill_(5);
  EXPECT_TRUE(at::equal(image, at::full_like(image, 5)));
}

TEST(FlatAlias, OfAParameterCanBeWritten) {
  const torch::nn::Linear layer(2, 2);
  FlatAlias(layer->weight).copy_(at::arange(4).to(at::kFloat));
  EXPECT_EQ(layer->weight[1][0].item<float>(), 2);
}

TEST(StateRegistry, CountsBytes) {
  StateRegistry registry;
  ASSERT_OK(registry.AddTensors("", {{"a", at::zeros({3})}, {"b", at::zeros({2}, at::kLong)}}));
  EXPECT_EQ(registry.bytes(), 12u + 16u);
  EXPECT_EQ(registry.FlatAliases().size(), 2u);
}

}  // namespace
}  // namespace keel
