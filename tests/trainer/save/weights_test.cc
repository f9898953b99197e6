// Weights of a .safetensors file, in whatever form others write it.
#include "trainer/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "tests/harness/expect_ok.h"
#include "trainer/save/tensor_file.h"

namespace keel {
namespace {

using testing::HasSubstr;

// As models that have a part called "model": LLaMA's, and many in Lightning.
struct Wrapped : torch::nn::Module {
  Wrapped() {
    model = register_module("model", std::make_shared<Inner>());
    head = register_module("head", torch::nn::Linear(2, 2));
  }
  struct Inner : torch::nn::Module {
    Inner() { fc = register_module("fc", torch::nn::Linear(2, 2)); }
    torch::nn::Linear fc = nullptr;
  };
  std::shared_ptr<Inner> model;
  torch::nn::Linear head = nullptr;
};

class Weights : public testing::Test {
 protected:
  // Those of `wrapped`, with `before` in front of each name.
  NamedTensors Named(const std::string& before = "") {
    NamedTensors tensors;
    for (const auto& one : from_.named_parameters()) {
      tensors.push_back({before + one.key(), one.value().detach()});
    }
    return tensors;
  }
  Status Load(const NamedTensors& tensors) {
    KEEL_TRY(WriteTensorFile(files_, {tensors, {}}, "/w.safetensors", /*replace=*/true));
    const Result<std::string> loaded = LoadWeights(into_, files_, "/w.safetensors");
    return loaded.ok() ? Ok() : Status(loaded.error());
  }
  void ExpectLoaded() {
    for (const auto& one : from_.named_parameters()) {
      EXPECT_TRUE(one.value().equal(into_.named_parameters()[one.key()])) << one.key();
    }
  }

  MemoryFiles files_;
  Wrapped from_, into_;
};

TEST_F(Weights, OfAPartThatIsCalledModelAreFoundByTheirOwnNames) {
  ASSERT_OK(Load(Named()));
  ExpectLoaded();
}

TEST_F(Weights, OfACheckpointAreFoundWithItsPrefix) {
  NamedTensors tensors = Named("model.");
  tensors.push_back({"optimizer.head.bias.exp_avg", at::ones({2})});
  tensors.push_back({"kept.average.step", at::ones({})});
  ASSERT_OK(Load(tensors));
  ExpectLoaded();
}

// A state_dict() has a tied layer under each of its names.
TEST_F(Weights, MayHaveATensorUnderASecondNameOnlyWhereItIsTheSame) {
  NamedTensors tensors = Named();
  tensors.push_back({"tied.weight", from_.head->weight.detach().clone()});
  ASSERT_OK(Load(tensors));
  ExpectLoaded();
  tensors.back().tensor = tensors.back().tensor + 1;
  const Status other = Load(tensors);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("tensor tied.weight is not in this model"));
}

TEST_F(Weights, OfAnotherModelAreRefusedWithAllThatDiffers) {
  NamedTensors tensors = Named();
  tensors.erase(tensors.begin());
  tensors.push_back({"other.bias", at::ones({3})});
  const Status other = Load(tensors);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("is missing"));
  EXPECT_THAT(other.error().message, HasSubstr("tensor other.bias is not in this model"));
}

}  // namespace
}  // namespace keel
