// Batches that are loaded ahead are those that would be loaded in the step, for any lanes.
#include "trainer/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSamples = 29;

SampleOrder Order() {
  return *SampleOrder::Make({.seed = 5, .dataset_size = kSamples, .lanes = 6, .lane_batch = 2});
}

// Sample i is i; notes who loads, and throws for one sample if it is told to.
class IndexDataset : public Dataset {
 public:
  explicit IndexDataset(Loading loading) : loading_(loading) {}
  uint64_t size() const override { return kSamples; }
  Loading loading() const override { return loading_; }
  Result<Batch> Load(std::span<const uint64_t> indices) override {
    const int now = ++loading_now_;
    most_at_once_ = std::max(most_at_once_.load(), now);
    const bool elsewhere = std::this_thread::get_id() != home_;
    loads_elsewhere_ += elsewhere;
    std::vector<int64_t> rows(indices.begin(), indices.end());
    --loading_now_;
    for (const uint64_t index : indices) {
      if (index == bad_) throw std::runtime_error("a bad sector");
    }
    return Batch(at::tensor(rows, at::kLong), at::tensor(rows, at::kLong) + 1);
  }

  std::atomic<uint64_t> bad_{kSamples};
  std::atomic<int> loads_elsewhere_{0};
  std::atomic<int> most_at_once_{0};

 private:
  const Loading loading_;
  const std::thread::id home_ = std::this_thread::get_id();
  std::atomic<int> loading_now_{0};
};

void ExpectStep(BatchLoader& loader, const SampleOrder& order, uint64_t step, LaneRange lanes) {
  const uint64_t cursor = step * order.samples_per_step();
  for (int lane = lanes.begin; lane < lanes.end; ++lane) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, loader.Take({step, cursor, lane}, lanes));
    const auto indices = order.LaneSamples(cursor, static_cast<uint64_t>(lane));
    const std::vector<int64_t> rows(indices.begin(), indices.end());
    EXPECT_TRUE(at::equal(batch.data, at::tensor(rows, at::kLong))) << step << " " << lane;
    EXPECT_TRUE(at::equal(batch.target, batch.data + 1)) << step << " " << lane;
  }
}

class BatchLoaders : public testing::TestWithParam<Loading> {};

TEST_P(BatchLoaders, GiveTheSameBatchesWhoeverLoadsThem) {
  const SampleOrder order = Order();
  for (const LoaderConfig config : {LoaderConfig{0, 4}, LoaderConfig{1, 1}, LoaderConfig{3, 9}}) {
    IndexDataset numbers(GetParam());
    BatchLoader loader(numbers, order, {.config = config, .steps = 12});
    for (uint64_t step = 0; step < 4; ++step) ExpectStep(loader, order, step, {0, 6});
    ExpectStep(loader, order, 4, {2, 4});   // others have joined
    ExpectStep(loader, order, 4, {2, 4});   // a step that is redone
    for (uint64_t step = 5; step < 12; ++step) ExpectStep(loader, order, step, {3, 6});
    if (GetParam() != Loading::kAheadInParallel) {
      EXPECT_LE(numbers.most_at_once_, 1);
    }
    const bool ahead = config.threads > 0 && GetParam() != Loading::kInStep;
    EXPECT_EQ(numbers.loads_elsewhere_ > 0, ahead);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BatchLoaders,
                         testing::Values(Loading::kInStep, Loading::kAhead,
                                         Loading::kAheadInParallel),
                         [](const auto& info) {
                           return std::string(info.param == Loading::kInStep   ? "InStep"
                                              : info.param == Loading::kAhead ? "Ahead"
                                                                              : "AheadInParallel");
                         });

TEST(BatchLoader, AnErrorNamesTheSamplesAndComesOutInItsStep) {
  const SampleOrder order = Order();
  IndexDataset numbers(Loading::kAhead);
  numbers.bad_ = order.LaneSamples(order.samples_per_step(), 1)[0];   // step 1, lane 1
  BatchLoader loader(numbers, order, {.config = {1, 8}, .steps = 12});
  ExpectStep(loader, order, 0, {0, 2});
  const uint64_t cursor = order.samples_per_step();
  EXPECT_OK(loader.Take({1, cursor, 0}, {0, 2}));
  const auto bad = loader.Take({1, cursor, 1}, {0, 2});
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().message,
              HasSubstr("loading samples " + std::to_string(numbers.bad_) + ", "));
  EXPECT_THAT(bad.error().message, HasSubstr("a bad sector"));
}

}  // namespace
}  // namespace keel
