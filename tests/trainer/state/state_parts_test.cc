// A state cut into parts: which tensors belong to which parameter, by names alone.
#include "trainer/state/state_parts.h"

#include <gtest/gtest.h>

#include <set>

namespace keel {
namespace {

NamedTensor Named(const std::string& name, int64_t elements = 3) {
  return {name, at::zeros({elements})};
}

TEST(StateParts, AParameterComesWithWhatTheOptimizerKeepsForIt) {
  const ModelTensors model{.parameters = {Named("a"), Named("a.b"), Named("c.weight")},
                           .buffers = {Named("running")},
                           .frozen = {Named("frozen")}};
  const NamedTensors optimizer{Named("a.b.step"), Named("a.b.exp_avg"), Named("c.weight.nest.0.m"),
                               Named("a.exp_avg")};
  const NamedTensors kept{Named("small"), Named("large", 100'000)};
  const auto parts = PartsOf(model, optimizer, kept);
  ASSERT_TRUE(parts);
  const auto is = [](const at::Tensor& flat, const NamedTensor& named) {
    return flat.data_ptr() == named.tensor.data_ptr();
  };
  ASSERT_EQ(parts->parts.size(), 6u);
  ASSERT_EQ(parts->parts[0].tensors.size(), 2u);
  EXPECT_EQ(parts->parts[0].parameter, 0u);
  EXPECT_TRUE(is(parts->parts[0].tensors[0], model.parameters[0]));
  EXPECT_TRUE(is(parts->parts[0].tensors[1], optimizer[3]));
  ASSERT_EQ(parts->parts[1].tensors.size(), 3u) << "the longest name counts";
  EXPECT_TRUE(is(parts->parts[1].tensors[2], optimizer[1]));
  ASSERT_EQ(parts->parts[2].tensors.size(), 2u);
  EXPECT_TRUE(is(parts->parts[2].tensors[1], optimizer[2]));
  EXPECT_EQ(parts->parts[3].parameter, std::nullopt);
  EXPECT_TRUE(is(parts->parts[3].tensors.at(0), model.frozen[0]));
  EXPECT_TRUE(is(parts->parts[4].tensors.at(0), kept[0])) << "when all parameters are there";
  EXPECT_TRUE(is(parts->parts[5].tensors.at(0), kept[1]));
  EXPECT_EQ(parts->parts[5].bytes(), 400'000u);
  ASSERT_EQ(parts->first.size(), 2u);
  EXPECT_TRUE(is(parts->first[0], model.buffers[0]));
  EXPECT_TRUE(is(parts->first[1], kept[0]));
}

TEST(StateParts, StateOfNoParameterIsNotCut) {
  const ModelTensors model{.parameters = {Named("a")}, .buffers = {}, .frozen = {}};
  for (const char* name : {"step", "ab.step", "b.a.step", ".a", "a"}) {
    EXPECT_FALSE(PartsOf(model, {Named(name)}, {})) << name;
  }
  EXPECT_TRUE(PartsOf(model, {Named("a.")}, {}));
}

}  // namespace
}  // namespace keel
