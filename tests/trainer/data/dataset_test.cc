// Datasets by index: Torch's, tensors in memory, and made ones.
#include "trainer/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/harness/expect_ok.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

using testing::HasSubstr;

class Squares : public torch::data::datasets::Dataset<Squares> {
 public:
  explicit Squares(size_t size) : size_(size) {}
  torch::data::Example<> get(size_t index) override {
    TORCH_CHECK(index != 13, "sample 13 is unreadable");
    const auto i = static_cast<int64_t>(index);
    return {torch::full({2}, i), torch::tensor(i * i)};
  }
  std::optional<size_t> size() const override { return size_; }

 private:
  size_t size_;
};

const std::vector<uint64_t> kSome = {4, 0, 3};

TEST(MapStyle, LoadsTheAskedForSamplesInTheirOrder) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> plain, MapStyle(Squares(20)));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Dataset> stacked,
      MapStyle(Squares(20).map(torch::data::transforms::Stack<>())));
  for (Dataset* dataset : {plain.get(), stacked.get()}) {
    EXPECT_EQ(dataset->size(), 20u);
    ASSERT_OK_AND_ASSIGN(const Batch batch, dataset->Load(kSome));
    EXPECT_TRUE(at::equal(batch.target, torch::tensor({16, 0, 9}, torch::kLong)));
    EXPECT_EQ(batch.data.sizes(), (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(batch.data[2][1].item<float>(), 3);
  }
}

TEST(MapStyle, SaysWhichSamplesCouldNotBeLoaded) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Dataset> dataset, MapStyle(Squares(20)));
  const Result<Batch> batch = dataset->Load(std::vector<uint64_t>{2, 13});
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().message, HasSubstr("loading samples 2, 13: sample 13 is unreadable"));
}

TEST(MapStyle, RefusesAnEmptyDataset) {
  const auto empty = MapStyle(Squares(0));
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().message, "the dataset is empty");
}

TEST(InMemory, RefusesLengthsThatDiffer) {
  const auto dataset = InMemory(torch::zeros({3, 2}), torch::zeros({4}));
  ASSERT_FALSE(dataset.ok());
  EXPECT_THAT(dataset.error().message, HasSubstr("3 of data and 4 of targets"));
  EXPECT_FALSE(InMemory(torch::zeros({0, 2}), torch::zeros({0})).ok());
}

TEST(InMemory, AnIndexBeyondItsEndIsAnError) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, InMemory(torch::zeros({3}), torch::zeros({3})));
  EXPECT_FALSE(dataset->Load(std::vector<uint64_t>{3}).ok());
}

TEST(Synthetic, IsMadeFromTheSeedAlone) {
  const auto digest = [](uint64_t seed) {
    Result<std::unique_ptr<Dataset>> classes = SyntheticClasses({.seed = seed, .samples = 8});
    Result<std::unique_ptr<Dataset>> text = SyntheticText({.seed = seed, .samples = 8});
    std::vector<at::Tensor> all;
    for (auto* dataset : {&classes, &text}) {
      const Result<Batch> batch = (**dataset)->Load(std::vector<uint64_t>{0, 5, 7});
      all.push_back(batch->data);
      all.push_back(batch->target);
    }
    return DigestOfTensors(all);
  };
  const Digest one = digest(1);
  at::manual_seed(99);
  EXPECT_EQ(digest(1), one);
  EXPECT_NE(digest(2), one);
}

TEST(Synthetic, TextTargetsAreTheNextTokens) {
  ASSERT_OK_AND_ASSIGN(const auto text,
                       SyntheticText({.samples = 4, .length = 6, .vocabulary = 5}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, text->Load(std::vector<uint64_t>{2}));
  EXPECT_TRUE(at::equal(batch.data.narrow(1, 1, 5), batch.target.narrow(1, 0, 5)));
  EXPECT_LT(batch.data.max().item<int64_t>(), 5);
  EXPECT_FALSE(SyntheticText({.vocabulary = 1}).ok());
  EXPECT_FALSE(SyntheticClasses({.samples = 0}).ok());
}

}  // namespace
}  // namespace keel
