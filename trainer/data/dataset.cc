// Tensors in memory as a dataset, and two datasets that are made from a seed.
#include "trainer/dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "base/random.h"
#include "base/text.h"

namespace keel {

std::string map_style::IndicesText(std::span<const uint64_t> indices) {
  constexpr size_t kShown = 8;
  std::vector<std::string> parts;
  for (const uint64_t index : indices.first(std::min(kShown, indices.size()))) {
    parts.push_back(std::to_string(index));
  }
  if (indices.size() > kShown) parts.push_back("...");
  return "samples " + JoinList(parts, ", ");
}

namespace {

class TensorDataset : public Dataset {
 public:
  TensorDataset(at::Tensor data, at::Tensor target)
      : data_(std::move(data)), target_(std::move(target)) {}

  uint64_t size() const override { return static_cast<uint64_t>(data_.size(0)); }
  Loading loading() const override { return Loading::kAheadInParallel; }

  Result<Batch> Load(std::span<const uint64_t> indices) override {
    return CatchTorch("loading " + map_style::IndicesText(indices), [&] {
      const std::vector<int64_t> rows(indices.begin(), indices.end());
      const at::Tensor index = at::tensor(rows, at::kLong);
      return Batch(data_.index_select(0, index), target_.index_select(0, index));
    });
  }

 private:
  const at::Tensor data_;
  const at::Tensor target_;
};

void FillWithNoise(Random& random, at::Tensor tensor, double size) {
  float* const values = tensor.mutable_data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>((random.Double() - 0.5) * 2 * size);
  }
}

}  // namespace

Result<std::unique_ptr<Dataset>> InMemory(at::Tensor data, at::Tensor target) {
  if (data.dim() == 0 || target.dim() == 0 || data.size(0) != target.size(0)) {
    const auto length = [](const at::Tensor& tensor) {
      return tensor.dim() == 0 ? std::string("none") : std::to_string(tensor.size(0));
    };
    return Error{Code::kInvalid, "a dataset needs as many targets as data: there are " +
                                     length(data) + " of data and " + length(target) +
                                     " of targets"};
  }
  if (data.size(0) == 0) return Error{Code::kInvalid, "the dataset is empty"};
  return std::unique_ptr<Dataset>(
      std::make_unique<TensorDataset>(std::move(data), std::move(target)));
}

Result<std::unique_ptr<Dataset>> SyntheticClasses(const ClassesSpec& spec) {
  if (spec.samples < 1 || spec.classes < 1) {
    return Error{Code::kInvalid, "a dataset needs samples and classes; these are " +
                                     std::to_string(spec.samples) + " and " +
                                     std::to_string(spec.classes)};
  }
  KEEL_TRY_ASSIGN(auto made, CatchTorch("making a synthetic dataset", [&] {
    Random random(spec.seed);
    std::vector<int64_t> shape = spec.shape;
    shape.insert(shape.begin(), spec.classes);
    const at::Tensor centres = at::empty(shape, at::kFloat);
    FillWithNoise(random, centres, 1);
    shape.front() = spec.samples;
    const at::Tensor data = at::empty(shape, at::kFloat);
    FillWithNoise(random, data, 1);
    const at::Tensor target = at::empty({spec.samples}, at::kLong);
    int64_t* const classes = target.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < spec.samples; ++i) {
      classes[i] = static_cast<int64_t>(random.Uniform(static_cast<uint64_t>(spec.classes)));
    }
    return std::pair(data.add_(centres.index_select(0, target)), target);
  }));
  return InMemory(made.first, made.second);
}

Result<std::unique_ptr<Dataset>> SyntheticText(const TextSpec& spec) {
  if (spec.samples < 1 || spec.length < 1 || spec.vocabulary < 2) {
    return Error{Code::kInvalid, "a text needs samples, a length and a vocabulary of 2; these "
                                 "are " + std::to_string(spec.samples) + ", " +
                                     std::to_string(spec.length) + " and " +
                                     std::to_string(spec.vocabulary)};
  }
  KEEL_TRY_ASSIGN(const at::Tensor text, CatchTorch("making a synthetic text", [&] {
    Random random(spec.seed);
    const auto vocabulary = static_cast<uint64_t>(spec.vocabulary);
    std::vector<int64_t> successor(vocabulary);
    for (int64_t& next : successor) next = static_cast<int64_t>(random.Uniform(vocabulary));
    const at::Tensor tokens = at::empty({spec.samples, spec.length + 1}, at::kLong);
    int64_t* const values = tokens.mutable_data_ptr<int64_t>();
    int64_t token = 0;
    for (int64_t i = 0; i < tokens.numel(); ++i) {
      const bool strays = random.Chance(0.2);
      token = strays ? static_cast<int64_t>(random.Uniform(vocabulary)) : successor[token];
      values[i] = token;
    }
    return tokens;
  }));
  return InMemory(text.narrow(1, 0, spec.length).contiguous(),
                  text.narrow(1, 1, spec.length).contiguous());
}

}  // namespace keel
