// Weights of a .safetensors file, in whatever form others write it.
#include "trainer/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "ckpt/save.h"
#include "ckpt/tensor_source.h"
#include "tests/harness/expect_ok.h"
#include "trainer/save/tensor_file.h"
#include "trainer/state/image.h"

namespace keel {
namespace {

using testing::HasSubstr;
using testing::Not;

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

// A Python model's rotary frequencies, which its state_dict() leaves out.
TEST_F(Weights, NeedNotHaveBuffersThatTheModelMakes) {
  ModelTensors into = TensorsOf(into_);
  into.buffers = {{"model.rotary", at::full({2}, 7.0)}, {"head.mean", at::full({2}, 8.0)}};
  into.derived = {"model.rotary"};
  const auto load = [&](const NamedTensors& tensors) {
    EXPECT_OK(WriteTensorFile(files_, {tensors, {}}, "/w.safetensors", /*replace=*/true));
    return LoadWeights(into, files_, "/w.safetensors");
  };
  const Result<std::string> without = load(Named());
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message, HasSubstr("tensor model.head.mean is missing"));
  EXPECT_THAT(without.error().message, Not(HasSubstr("rotary")));
  NamedTensors tensors = Named();
  tensors.push_back({"head.mean", at::ones({2})});
  ASSERT_OK(load(tensors));
  ExpectLoaded();
  EXPECT_TRUE(into.buffers[0].tensor.equal(at::full({2}, 7.0)));
  EXPECT_TRUE(into.buffers[1].tensor.equal(at::ones({2})));
  tensors.push_back({"model.rotary", at::ones({2})});   // as some write it
  ASSERT_OK(load(tensors));
  EXPECT_TRUE(into.buffers[0].tensor.equal(at::ones({2})));
}

// `keel import` makes a checkpoint of what the file has.
TEST_F(Weights, OfACheckpointNeedNotHaveThemEither) {
  ModelTensors into = TensorsOf(into_);
  const at::Tensor rows = torch::arange(24, torch::kFloat).reshape({1, 2, 3, 4});
  // Through a copy, as on a GPU.
  const at::Tensor elsewhere = rows.contiguous(at::MemoryFormat::ChannelsLast);
  into.buffers = {{"model.rotary", elsewhere}, {"head.mean", at::full({2}, 8.0)}};
  into.derived = {"model.rotary"};
  int64_t step = 0;
  const auto load = [&](const NamedTensors& tensors) -> Result<std::string> {
    KEEL_TRY_ASSIGN(const std::vector<TensorSpec> specs, SpecsOf(tensors));
    SavePlan plan{.root = "/imported", .attempt = "0123456789abcdef"};
    plan.description.step = static_cast<uint64_t>(++step);
    KEEL_TRY_ASSIGN(plan.description.layout, Layout::Make(specs));
    KEEL_TRY_ASSIGN(const CpuBytes bytes,
                    CpuBytes::Of(tensors, [](size_t) { return CpuBytes::Take::kAlias; }));
    MemorySource source(bytes.spans());
    KEEL_TRY_ASSIGN(const CommitReport saved, SaveCheckpoint(files_, plan, source, {}, 0));
    return LoadWeights(into, files_, saved.step_dir);
  };
  NamedTensors tensors = Named("model.");
  const Result<std::string> without = load(tensors);
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message, HasSubstr("model.head.mean"));
  EXPECT_THAT(without.error().message, Not(HasSubstr("rotary")));
  tensors.push_back({"model.head.mean", at::ones({2})});
  ASSERT_OK(load(tensors));
  ExpectLoaded();
  EXPECT_TRUE(into.buffers[0].tensor.equal(rows));
  EXPECT_TRUE(into.buffers[1].tensor.equal(at::ones({2})));
  tensors.push_back({"model.model.rotary", at::ones({1, 2, 3, 4})});   // as a job saves it
  ASSERT_OK(load(tensors));
  EXPECT_TRUE(into.buffers[0].tensor.equal(at::ones({1, 2, 3, 4})));
}

// Its directory has the name of another step.
TEST_F(Weights, OfAStepThatIsNotTheOneNamedAreRefused) {
  const NamedTensors tensors = Named("model.");
  ASSERT_OK_AND_ASSIGN(const std::vector<TensorSpec> specs, SpecsOf(tensors));
  SavePlan plan{.root = "/run", .attempt = "0123456789abcdef"};
  plan.description.step = 1;
  ASSERT_OK_AND_ASSIGN(plan.description.layout, Layout::Make(specs));
  ASSERT_OK_AND_ASSIGN(const CpuBytes bytes, CpuBytes::Of(tensors, [](size_t) {
                         return CpuBytes::Take::kAlias;
                       }));
  MemorySource source(bytes.spans());
  ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));
  ASSERT_OK(files_.Rename("/run/step-000000001", "/run/step-000000002"));
  const Result<std::string> other = LoadWeights(into_, files_, "/run@2");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("its manifest is of step 1"));
  ASSERT_OK(LoadWeights(into_, files_, "/run/step-000000002"));   // as it lies there
  ExpectLoaded();
}

// PyTorch has them since 2.3.
TEST_F(Weights, OfAFileMayBeOfAnyWholeNumbers) {
  NamedTensors tensors;
  for (const auto type : {at::kUInt16, at::kUInt32, at::kUInt64}) {
    tensors.push_back({c10::toString(type), at::arange(250, 260, at::kLong).to(type)});
  }
  ASSERT_OK(WriteTensorFile(files_, {tensors, {}}, "/w.safetensors", /*replace=*/false));
  ASSERT_OK_AND_ASSIGN(const TensorFile read, ReadTensorFile(files_, "/w.safetensors"));
  ASSERT_EQ(read.tensors.size(), 3u);
  for (const NamedTensor& one : read.tensors) {
    EXPECT_EQ(c10::toString(one.tensor.scalar_type()), one.name);
    EXPECT_TRUE(one.tensor.to(at::kLong).equal(at::arange(250, 260, at::kLong))) << one.name;
  }
}

// Of a large file only that is read, and held in memory, which is wanted.
TEST_F(Weights, WhatIsNotWantedOfAFileIsNotRead) {
  ASSERT_OK(WriteTensorFile(files_, {Named(), {}}, "/w.safetensors", /*replace=*/false));
  FaultyFiles watched(files_);
  ASSERT_OK_AND_ASSIGN(const TensorFile read,
                       ReadTensorFile(watched, "/w.safetensors", [](const std::string& name) {
                         return name == "head.bias";
                       }));
  ASSERT_EQ(read.tensors.size(), 1u);
  EXPECT_TRUE(read.tensors[0].tensor.equal(from_.head->bias));
  int all = 0, some = 0;
  for (const FileCall& call : watched.calls()) some += call.op == FileOp::kReadAt;
  FaultyFiles whole(files_);
  ASSERT_OK(ReadTensorFile(whole, "/w.safetensors"));
  for (const FileCall& call : whole.calls()) all += call.op == FileOp::kReadAt;
  EXPECT_EQ(all - some, 3) << "each tensor is read by itself";
}

}  // namespace
}  // namespace keel
