// MapStyle(): the templates behind trainer/dataset.h, which includes this.
#pragma once

#include <string>

#include "store/catch_torch.h"
#include "trainer/dataset.h"

namespace keel {
namespace map_style {

// "samples 4, 17, 3": for messages.
std::string IndicesText(std::span<const uint64_t> indices);

inline Batch Collate(torch::data::Example<> batch) { return batch; }
inline Batch Collate(std::vector<torch::data::Example<>> examples) {
  return torch::data::transforms::Stack<>().apply_batch(std::move(examples));
}

template <class TorchDataset>
class MapStyleDataset : public Dataset {
 public:
  MapStyleDataset(TorchDataset dataset, uint64_t size, Loading loading)
      : dataset_(std::move(dataset)), size_(size), loading_(loading) {}

  uint64_t size() const override { return size_; }
  Loading loading() const override { return loading_; }

  Result<Batch> Load(std::span<const uint64_t> indices) override {
    return CatchTorch("loading " + IndicesText(indices), [&] {
      const std::vector<size_t> request(indices.begin(), indices.end());
      return Collate(dataset_.get_batch(request));
    });
  }

 private:
  TorchDataset dataset_;
  const uint64_t size_;
  const Loading loading_;
};

}  // namespace map_style

template <class TorchDataset>
Result<std::unique_ptr<Dataset>> MapStyle(TorchDataset dataset, Loading loading) {
  KEEL_TRY_ASSIGN(const auto size, CatchTorch("asking the dataset for its size",
                                         [&] { return dataset.size(); }));
  if (!size.has_value() || *size == 0) {
    return Error{Code::kInvalid, size ? "the dataset is empty"
                                      : "the dataset does not know its size; give one that does"};
  }
  return std::unique_ptr<Dataset>(
      std::make_unique<map_style::MapStyleDataset<TorchDataset>>(std::move(dataset), *size,
                                                                 loading));
}

}  // namespace keel
