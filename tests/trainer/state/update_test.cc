// What becomes of a decided step: applied, clipped, skipped or stopped.
#include "trainer/state/update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/harness/expect_ok.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

using testing::HasSubstr;

const std::vector<float> kFine = {1.0f, 2.0f};

struct Job {
  at::Tensor weight = torch::ones({4}).requires_grad_();
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Updater> updater;

  explicit Job(const UpdateConfig& config) {
    auto sgd = MakeSgd({{"weight", weight}}, {});
    KEEL_CHECK(sgd.ok(), sgd.error().message);
    optimizer = std::move(sgd).value();
    auto made = Updater::Make(config, {weight}, *optimizer);
    KEEL_CHECK(made.ok(), made.error().message);
    updater = std::move(made).value();
  }

  Result<StepOutcome> Apply(uint64_t step, float gradient,
                            const std::vector<float>& losses = kFine) {
    weight.mutable_grad() = torch::full({4}, gradient * static_cast<float>(updater->loss_scale()));
    return updater->Apply(step, losses);
  }
  float value() const { return weight[0].item<float>(); }
};

UpdateConfig Config() { return {.learning_rate = 0.5}; }

TEST(Updater, AppliesTheScheduledRate) {
  UpdateConfig config = Config();
  config.schedule = *Schedule::Parse("step:every=1,factor=0.5");
  Job job(config);
  ASSERT_OK_AND_ASSIGN(const StepOutcome outcome, job.Apply(1, 1.0f));
  EXPECT_TRUE(outcome.applied);
  EXPECT_EQ(outcome.learning_rate, 0.25);
  EXPECT_FALSE(outcome.gradient_norm.has_value());
  EXPECT_EQ(job.value(), 0.75f);
}

TEST(Updater, ClipsByTheGlobalNorm) {
  UpdateConfig config = Config();
  config.clip_norm = 1;
  Job job(config);
  ASSERT_OK_AND_ASSIGN(const StepOutcome outcome, job.Apply(0, 3.0f));
  EXPECT_EQ(outcome.gradient_norm, 6.0);
  EXPECT_NEAR(job.value(), 1 - 0.5 * 3.0 / 6.0, 1e-6);
}

TEST(Updater, StopsAtALossThatIsNotFiniteAndNamesStepAndLanes) {
  Job job(Config());
  const Digest before = DigestOfTensors({job.weight});
  const Result<StepOutcome> one = job.Apply(12, 1.0f, {1.0f, 2.0f, NAN});
  ASSERT_FALSE(one.ok());
  EXPECT_THAT(one.error().message, HasSubstr("step 12: the loss of lane 2 is nan"));
  const Result<StepOutcome> two = job.Apply(12, 1.0f, {-INFINITY, 2.0f, NAN});
  ASSERT_FALSE(two.ok());
  EXPECT_THAT(two.error().message, HasSubstr("the losses of lanes 0, 2 are -inf, nan"));
  EXPECT_EQ(DigestOfTensors({job.weight}), before);
}

TEST(Updater, SkipsWhereThatIsThePolicy) {
  UpdateConfig config = Config();
  config.non_finite = NonFinite::kSkip;
  Job job(config);
  ASSERT_OK_AND_ASSIGN(const StepOutcome outcome, job.Apply(0, 1.0f, {NAN, 1.0f}));
  EXPECT_FALSE(outcome.applied);
  EXPECT_EQ(outcome.note, "the loss of lane 0 is nan");
  EXPECT_EQ(job.value(), 1);
}

TEST(Updater, JudgesGradientsWhereItIsAskedTo) {
  UpdateConfig config = Config();
  config.check_gradients = true;
  Job job(config);
  const Result<StepOutcome> stopped = job.Apply(3, INFINITY);
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message, HasSubstr("step 3: the gradients are not finite"));
  config.non_finite = NonFinite::kSkip;
  Job other(config);
  ASSERT_OK_AND_ASSIGN(const StepOutcome skipped, other.Apply(3, NAN));
  EXPECT_FALSE(skipped.applied);
  EXPECT_EQ(other.value(), 1);
}

TEST(Updater, UnscalesByThePowerOfTwoExactly) {
  UpdateConfig config = Config();
  Job plain(config);
  config.loss_scale = LossScale{.scale = 1024};
  Job scaled(config);
  ASSERT_OK(plain.Apply(0, 0.1f));
  ASSERT_OK(scaled.Apply(0, 0.1f));
  EXPECT_EQ(plain.value(), scaled.value());
  EXPECT_NE(plain.value(), 1);
}

TEST(Updater, AnOverflowHalvesTheScaleAndSkipsWhateverThePolicy) {
  UpdateConfig config = Config();
  config.loss_scale = LossScale{.scale = 1024};
  Job job(config);
  ASSERT_OK_AND_ASSIGN(const StepOutcome outcome, job.Apply(0, INFINITY));
  EXPECT_FALSE(outcome.applied);
  EXPECT_EQ(job.updater->loss_scale(), 512);
  EXPECT_EQ(job.value(), 1);
}

// Nothing that loss scaling does would ever make them finite.
TEST(Updater, AtTheLowestScaleGradientsThatAreNotFiniteStop) {
  UpdateConfig config = Config();
  config.loss_scale = LossScale{.scale = LossScale::kMin};
  Job job(config);
  EXPECT_FALSE(job.Apply(0, INFINITY).ok());
  config.non_finite = NonFinite::kSkip;
  Job skipping(config);
  ASSERT_OK_AND_ASSIGN(const StepOutcome outcome, skipping.Apply(0, INFINITY));
  EXPECT_FALSE(outcome.applied);
}

TEST(Updater, TheLossScaleIsPartOfTheState) {
  UpdateConfig config = Config();
  config.loss_scale = LossScale{.scale = 1024};
  Job from(config), into(config);
  StateRegistry source, target;
  ASSERT_OK(from.updater->Register(source));
  ASSERT_OK(into.updater->Register(target));
  ASSERT_OK(from.Apply(0, INFINITY));
  ASSERT_OK(from.Apply(1, 1.0f));
  ASSERT_OK(target.SetNumbersText(source.NumbersText()));
  EXPECT_EQ(into.updater->loss_scale(), 512);
  EXPECT_EQ(target.NumbersText(), R"({"loss_scale":512.0,"loss_scale_good_steps":1})");
}

TEST(Updater, RefusesSettingsOutOfRange) {
  const at::Tensor weight = torch::ones({1}).requires_grad_();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Optimizer> sgd, MakeSgd({{"weight", weight}}, {}));
  const auto why = [&](const UpdateConfig& config) {
    const auto made = Updater::Make(config, {weight}, *sgd);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_THAT(why({.learning_rate = 0}), HasSubstr("learning rate is 0"));
  EXPECT_THAT(why({.learning_rate = NAN}), HasSubstr("learning rate is"));
  EXPECT_THAT(why({.clip_norm = -1}), HasSubstr("norm of -1"));
  EXPECT_THAT(why({.loss_scale = LossScale{.scale = 1000}}), HasSubstr("power of two"));
  EXPECT_FALSE(ParseNonFinite("ignore").ok());
  EXPECT_EQ(*ParseNonFinite("skip"), NonFinite::kSkip);
}

}  // namespace
}  // namespace keel
