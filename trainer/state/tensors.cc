// Walks a module; a tensor is known by its own implementation object.
#include "trainer/tensors.h"

#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace keel {

ModelTensors TensorsOf(const torch::nn::Module& model) {
  ModelTensors tensors;
  std::unordered_set<const void*> seen;
  const auto is_new = [&](const at::Tensor& tensor) {
    return tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const auto& item : model.named_parameters()) {
    if (!is_new(item.value())) continue;
    auto& list = item.value().requires_grad() ? tensors.parameters : tensors.frozen;
    list.push_back({item.key(), item.value()});
  }
  for (const auto& item : model.named_buffers()) {
    if (is_new(item.value())) tensors.buffers.push_back({item.key(), item.value()});
  }
  return tensors;
}

ModelFace FaceOf(std::shared_ptr<torch::nn::Module> model) {
  ModelFace face{.tensors = TensorsOf(*model)};
  face.evaluate = [model = std::move(model)]() -> std::function<void()> {
    const auto modules = model->modules();
    std::vector<bool> training;
    for (const auto& module : modules) training.push_back(module->is_training());
    model->eval();
    // train() on a module also sets those below it; they come later in the list and get their own
    // back.
    return [modules, training] {
      for (size_t i = 0; i < modules.size(); ++i) modules[i]->train(training[i]);
    };
  };
  return face;
}

std::vector<at::Tensor> JustTensors(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& one : named) tensors.push_back(one.tensor);
  return tensors;
}

bool IsDense(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.is_non_overlapping_and_dense();
}

at::Tensor FlatAlias(const at::Tensor& tensor) {
  KEEL_CHECK(IsDense(tensor), "sizes " << tensor.sizes() << " strides " << tensor.strides());
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

}  // namespace keel
