// The quiet reference: it learns, it is the same twice, and it notices what it is there to notice.
#include "tests/trainer/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/expect_ok.h"
#include "tests/trainer/tasks.h"

namespace keel {
namespace {

struct Kind {
  const char* name;
  Precision precision = Precision::kFp32;
  uint64_t lanes = 4;
  uint64_t seed = 1;
  uint64_t order_seed = 1;
};

ReferenceRecord Trained(const Kind& kind, uint64_t steps = 12) {
  torch::manual_seed(kind.seed);
  const Task task = MakeTask(kind.name);
  const NamedTensors parameters = TensorsOf(*task.model).parameters;
  auto optimizer = MakeAdamW(parameters, {});
  KEEL_CHECK(optimizer.ok(), optimizer.error().message);
  UpdateConfig config{.learning_rate = 0.01, .clip_norm = 1.0};
  if (kind.precision == Precision::kFp16) config.loss_scale = LossScale();
  auto updater = Updater::Make(config, JustTensors(parameters), **optimizer);
  KEEL_CHECK(updater.ok(), updater.error().message);
  Reference reference({.model = task.model, .loss = task.loss, .dataset = *task.dataset,
                       .optimizer = **optimizer, .updater = **updater,
                       .precision = kind.precision, .seed = kind.order_seed,
                       .lanes = kind.lanes});
  const Result<ReferenceRecord> record = reference.Run(steps);
  KEEL_CHECK(record.ok(), record.error().message);
  return *record;
}

class EveryModel : public testing::TestWithParam<Kind> {};

TEST_P(EveryModel, LearnsMovesStaysFiniteAndIsTheSameTwice) {
  const ReferenceRecord record = Trained(GetParam());
  for (size_t step = 0; step < record.losses.size(); ++step) {
    EXPECT_TRUE(std::isfinite(record.losses[step])) << step;
    EXPECT_TRUE(record.applied[step]) << step;
    if (step == 0) continue;
    EXPECT_NE(record.parameters[step], record.parameters[step - 1]) << step;
  }
  EXPECT_LT(record.losses.back(), record.losses.front());
  const ReferenceRecord again = Trained(GetParam());
  EXPECT_EQ(again.trail.Hex(), record.trail.Hex());
  EXPECT_EQ(again.digest, record.digest);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryModel,
    testing::Values(Kind{"mlp"}, Kind{"resnet"}, Kind{"gpt"},
                    Kind{.name = "mlp", .precision = Precision::kBf16},
                    Kind{.name = "resnet", .precision = Precision::kBf16, .lanes = 3},
                    Kind{.name = "gpt", .precision = Precision::kBf16, .lanes = 1}),
    [](const auto& info) {
      return std::string(info.param.name) + std::string(PrecisionName(info.param.precision));
    });

TEST(Reference, AnotherSeedOrOrderLeavesAnotherTrail) {
  const ReferenceRecord record = Trained({.name = "mlp"}, 2);
  EXPECT_NE(Trained({.name = "mlp", .seed = 2}, 2).trail, record.trail);
  EXPECT_NE(Trained({.name = "mlp", .order_seed = 2}, 2).trail, record.trail);
  EXPECT_NE(Trained({.name = "mlp", .lanes = 5}, 2).trail, record.trail);
}

TEST(Reference, AddsInTheOrderOfTheTree) {
  // Floats for which the order of additions shows.
  std::vector<at::Tensor> lanes;
  for (const float value : {1e8f, 1.0f, -1e8f, 1.0f, 3.0f, 1e-3f, 7.0f}) {
    lanes.push_back(torch::full({1}, value));
  }
  const float left = (1e8f + 1.0f) + (-1e8f + 1.0f);
  const float sum = (left + (3.0f + 1e-3f)) + 7.0f;
  EXPECT_EQ(TreeMean(lanes).item<float>(), sum * (1.0f / 7));
  EXPECT_EQ(TreeMean({lanes[2]}).item<float>(), -1e8f);
}

}  // namespace
}  // namespace keel
