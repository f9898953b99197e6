// MiniResNet: a residual network with BatchNorm for small images.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

struct MiniResNetOptions {
  int64_t channels = 3;  // of the images
  int64_t width = 16;    // of the first stage; each further one has twice as many
  int64_t stages = 2;    // each halves the images' sides, but for the first
  int64_t classes = 10;
};

inline torch::nn::Conv2d Conv3x3(int64_t from, int64_t to, int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(from, to, 3).stride(stride).padding(1).bias(false));
}

class ResidualBlock : public torch::nn::Module {
 public:
  ResidualBlock(int64_t from, int64_t to, int64_t stride) {
    conv1_ = register_module("conv1", Conv3x3(from, to, stride));
    norm1_ = register_module("bn1", torch::nn::BatchNorm2d(to));
    conv2_ = register_module("conv2", Conv3x3(to, to, 1));
    norm2_ = register_module("bn2", torch::nn::BatchNorm2d(to));
    if (from == to && stride == 1) return;
    auto options = torch::nn::Conv2dOptions(from, to, 1).stride(stride).bias(false);
    shortcut_ = register_module("shortcut", torch::nn::Conv2d(options));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor inner = torch::relu(norm1_->forward(conv1_->forward(x)));
    const at::Tensor past = shortcut_.is_empty() ? x : shortcut_->forward(x);
    return torch::relu(norm2_->forward(conv2_->forward(inner)) + past);
  }

 private:
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, shortcut_{nullptr};
  torch::nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
};

class MiniResNet : public torch::nn::Module {
 public:
  explicit MiniResNet(const MiniResNetOptions& options) {
    stem_ = register_module("stem", Conv3x3(options.channels, options.width, 1));
    norm_ = register_module("bn", torch::nn::BatchNorm2d(options.width));
    int64_t width = options.width;
    for (int64_t stage = 0; stage < options.stages; ++stage) {
      const int64_t next = stage == 0 ? width : 2 * width;
      const std::string name = "stage" + std::to_string(stage);
      blocks_.push_back(register_module(
          name, std::make_shared<ResidualBlock>(width, next, stage == 0 ? 1 : 2)));
      width = next;
    }
    head_ = register_module("head", torch::nn::Linear(width, options.classes));
  }

  // [batch, channels, height, width] to [batch, classes]
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = torch::relu(norm_->forward(stem_->forward(images)));
    for (const auto& block : blocks_) x = block->forward(x);
    return head_->forward(x.mean({2, 3}));
  }

 private:
  torch::nn::Conv2d stem_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  torch::nn::Linear head_{nullptr};
};
