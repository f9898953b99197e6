// Gpt: a small decoder-only transformer whose output layer shares its weights with the embedding.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

struct GptOptions {
  int64_t vocabulary = 64;
  int64_t length_max = 64;
  int64_t width = 64;
  int64_t heads = 4;
  int64_t layers = 2;
  double dropout = 0.1;
};

class GptBlock : public torch::nn::Module {
 public:
  explicit GptBlock(const GptOptions& options)
      : heads_(options.heads), dropout_(options.dropout) {
    const int64_t width = options.width;
    const auto norm = [&] { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); };
    norm1_ = register_module("norm1", norm());
    attend_ = register_module("attend", torch::nn::Linear(width, 3 * width));
    project_ = register_module("project", torch::nn::Linear(width, width));
    norm2_ = register_module("norm2", norm());
    widen_ = register_module("widen", torch::nn::Linear(width, 4 * width));
    narrow_ = register_module("narrow", torch::nn::Linear(4 * width, width));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor attended = x + Dropped(project_->forward(Attend(norm1_->forward(x))));
    const at::Tensor inner = torch::gelu(widen_->forward(norm2_->forward(attended)));
    return attended + Dropped(narrow_->forward(inner));
  }

 private:
  at::Tensor Dropped(const at::Tensor& x) { return torch::dropout(x, dropout_, is_training()); }

  // Each position looks at itself and those before it.
  at::Tensor Attend(const at::Tensor& x) {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const at::Tensor all = attend_->forward(x)
                               .view({batch, length, 3, heads_, width / heads_})
                               .permute({2, 0, 3, 1, 4});
    const double scale = 1 / std::sqrt(static_cast<double>(width / heads_));
    at::Tensor weights = all[0].matmul(all[1].transpose(-2, -1)) * scale;
    const at::Tensor later =
        torch::ones({length, length}, x.options().dtype(torch::kBool)).triu(1);
    weights = weights.masked_fill(later, -std::numeric_limits<double>::infinity());
    weights = Dropped(torch::softmax(weights, -1));
    return weights.matmul(all[2]).transpose(1, 2).reshape({batch, length, width});
  }

  const int64_t heads_;
  const double dropout_;
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  torch::nn::Linear attend_{nullptr}, project_{nullptr}, widen_{nullptr}, narrow_{nullptr};
};

class Gpt : public torch::nn::Module {
 public:
  explicit Gpt(const GptOptions& options) {
    tokens_ = register_module("tokens", torch::nn::Embedding(options.vocabulary, options.width));
    places_ = register_module("places", torch::nn::Embedding(options.length_max, options.width));
    for (int64_t layer = 0; layer < options.layers; ++layer) {
      blocks_.push_back(register_module("block" + std::to_string(layer),
                                        std::make_shared<GptBlock>(options)));
    }
    norm_ = register_module(
        "norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({options.width})));
    const torch::NoGradGuard no_grad;
    tokens_->weight.mul_(0.02);
    places_->weight.mul_(0.02);
  }

  // [batch, length] of tokens to [batch, length, vocabulary]
  at::Tensor forward(const at::Tensor& tokens) {
    const at::Tensor places = torch::arange(tokens.size(1), tokens.options());
    at::Tensor x = tokens_->forward(tokens) + places_->forward(places);
    for (const auto& block : blocks_) x = block->forward(x);
    return torch::linear(norm_->forward(x), tokens_->weight);
  }

 private:
  torch::nn::Embedding tokens_{nullptr}, places_{nullptr};
  std::vector<std::shared_ptr<GptBlock>> blocks_;
  torch::nn::LayerNorm norm_{nullptr};
};
