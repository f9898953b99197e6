// Samples from files: windows of tokens up to the file's end, records as tensors.
#include "trainer/file_datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"
#include "trainer/record_file.h"
#include "trainer/token_file.h"

namespace keel {
namespace {

using testing::HasSubstr;

class FileDatasets : public testing::Test {
 protected:
  // Token i is i.
  std::string Tokens(uint32_t count) {
    const std::string path = dir_.File("tokens" + std::to_string(count));
    std::vector<uint32_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), 0);
    const auto writer = TokenFileWriter::Open(files_, path, {.token_bytes = 2});
    EXPECT_OK(writer);
    EXPECT_OK((*writer)->Append(tokens));
    EXPECT_OK((*writer)->Finish());
    return path;
  }
  // Two channels of two pixels.
  std::string Records() {
    const std::string path = dir_.File("records");
    const auto writer = RecordFileWriter::Open(
        files_, path, {{"image", Dtype::kU8, {2, 1, 2}}, {"label", Dtype::kU8, {}},
                       {"weight", Dtype::kU64, {}}});
    EXPECT_OK(writer);
    for (const std::string_view record : {"\x00\xff\x33\x66\x07........", "abcd\x02........"}) {
      EXPECT_OK((*writer)->Append(BytesOf(std::string_view(record.data(), 13))));
    }
    EXPECT_OK((*writer)->Finish());
    return path;
  }
  static std::string WhyNot(const Result<std::unique_ptr<Dataset>>& dataset) {
    return dataset.ok() ? "" : dataset.error().message;
  }

  const TempDir dir_;
  PosixFiles files_;
};

TEST_F(FileDatasets, AWindowPredictsEachNextToken) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, TokenDataset({.path = Tokens(13), .context = 4}));
  EXPECT_EQ(dataset->size(), 3u);
  ASSERT_OK_AND_ASSIGN(const Batch batch, dataset->Load(std::vector<uint64_t>{2, 0}));
  EXPECT_TRUE(at::equal(batch.data, torch::tensor({{8, 9, 10, 11}, {0, 1, 2, 3}}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.target, batch.data + 1));
}

TEST_F(FileDatasets, TokensThatFillNoWindowAreInNoSample) {
  for (const auto& [tokens, windows] :
       std::vector<std::pair<uint32_t, uint64_t>>{{5, 1}, {8, 1}, {9, 2}, {12, 2}, {13, 3}}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset, TokenDataset({.path = Tokens(tokens), .context = 4}));
    EXPECT_EQ(dataset->size(), windows) << tokens;
    EXPECT_OK(dataset->Load(std::vector<uint64_t>{windows - 1}));
    EXPECT_FALSE(dataset->Load(std::vector<uint64_t>{windows}).ok()) << tokens;
  }
}

TEST_F(FileDatasets, WindowsMayOverlap) {
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       TokenDataset({.path = Tokens(8), .context = 4, .stride = 1}));
  EXPECT_EQ(dataset->size(), 4u);
  ASSERT_OK_AND_ASSIGN(const Batch batch, dataset->Load(std::vector<uint64_t>{3}));
  EXPECT_TRUE(at::equal(batch.target, torch::tensor({{4, 5, 6, 7}}, at::kLong)));
}

TEST_F(FileDatasets, AFileWithoutOneWindowIsRefused) {
  EXPECT_THAT(WhyNot(TokenDataset({.path = Tokens(4), .context = 4})),
              HasSubstr("has 4 tokens; a sample takes 5"));
  EXPECT_THAT(WhyNot(TokenDataset({.path = Tokens(6), .context = 0})),
              HasSubstr("a context of 0 tokens"));
}

TEST_F(FileDatasets, RecordsBecomeFloatsAndClassNumbers) {
  ASSERT_OK_AND_ASSIGN(const auto dataset, RecordDataset({.path = Records()}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, dataset->Load(std::vector<uint64_t>{1, 0}));
  EXPECT_EQ(batch.data.sizes(), (std::vector<int64_t>{2, 2, 1, 2}));
  EXPECT_TRUE(at::equal(batch.data[1].flatten(),
                        torch::tensor({0.f, 255.f, 51.f, 102.f}).div(255)));
  EXPECT_TRUE(at::equal(batch.target, torch::tensor({2, 7}, at::kLong)));
}

TEST_F(FileDatasets, ChannelsAreScaledByTheirOwnMeanAndDeviation) {
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       RecordDataset({.path = Records(), .mean = {0.5, 0.2},
                                      .deviation = {0.5, 0.1}}));
  ASSERT_OK_AND_ASSIGN(const Batch batch, dataset->Load(std::vector<uint64_t>{0}));
  EXPECT_TRUE(at::allclose(batch.data.flatten(), torch::tensor({-1.f, 1.f, 0.f, 2.f})));
}

TEST_F(FileDatasets, FieldsThatCannotServeAreRefusedByName) {
  const std::string path = Records();
  EXPECT_THAT(WhyNot(RecordDataset({.path = path, .data = "picture"})),
              HasSubstr("has no field 'picture'; it has image, label, weight"));
  EXPECT_THAT(WhyNot(RecordDataset({.path = path, .target = "weight"})),
              HasSubstr("LibTorch cannot train with u64"));
  EXPECT_THAT(WhyNot(RecordDataset({.path = path, .mean = {0.5}, .deviation = {1}})),
              HasSubstr("1 means and 1 deviations for 2 channels"));
  EXPECT_THAT(WhyNot(RecordDataset({.path = path, .mean = {0, 0}, .deviation = {1, 0}})),
              HasSubstr("a deviation of 0"));
}

TEST_F(FileDatasets, TellOtherDataOfTheSameSizeApart) {
  ASSERT_OK_AND_ASSIGN(const auto tokens, TokenDataset({.path = Tokens(13), .context = 4}));
  ASSERT_OK_AND_ASSIGN(const auto more, TokenDataset({.path = Tokens(14), .context = 4}));
  EXPECT_EQ(tokens->size(), more->size());
  EXPECT_NE(tokens->Identity(), more->Identity());
  EXPECT_EQ(tokens->Identity().size(), 32u);
}

}  // namespace
}  // namespace keel
