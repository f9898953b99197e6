// One small network, forward and backward, made of the kernels in which models spend their time.
#include "trainer/numerics/kernel_probe.h"

#include <ATen/ATen.h>

#include <vector>

#include "base/random.h"
#include "trainer/numerics/autocast.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

// Drawn from our own generator: LibTorch's would draw from the caller's.
at::Tensor Numbers(Random& random, at::IntArrayRef sizes, c10::Device device) {
  at::Tensor numbers = at::empty(sizes, at::kFloat);
  float* const values = numbers.mutable_data_ptr<float>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    values[i] = static_cast<float>(random.Double() - 0.5);
  }
  return numbers.to(device).requires_grad_();
}

// A number for each sample.
at::Tensor Attention(const at::Tensor& x) {
  return at::scaled_dot_product_attention(x, x, x, {}, 0.0, /*is_causal=*/true)
      .flatten(1)
      .mean(1, /*keepdim=*/true);
}

}  // namespace

Digest KernelProbe(c10::Device device, Precision precision) {
  Random random(20);
  std::vector<at::Tensor> leaves;
  const auto make = [&](at::IntArrayRef sizes) {
    leaves.push_back(Numbers(random, sizes, device));
    return leaves.back();
  };
  const at::Tensor images = make({3, 3, 17, 17});
  const at::Tensor kernels = make({8, 3, 3, 3});
  const at::Tensor wide = make({48, 8 * 17 * 17});
  const at::Tensor narrow = make({29, 48});
  at::Tensor logits;
  {
    const AutocastScope autocast(device.type(), precision);
    at::Tensor x = at::gelu(at::conv2d(images, kernels, {}, 1, 1));
    x = at::tanh(at::linear(x.flatten(1), wide));
    logits = at::linear(at::layer_norm(x, {48}), narrow);
    // On a GPU, which kernel serves attention depends on the GPU and the precision.
    if (device.is_cuda()) logits = logits + Attention(make({3, 2, 29, 64}));
  }
  const at::Tensor loss = -at::log_softmax(logits.to(at::kFloat), 1).mean();
  loss.backward();
  std::vector<at::Tensor> results = {logits, loss, at::exp(leaves[2]), at::sin(leaves[2])};
  for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
  return DigestOfTensors(results);
}

}  // namespace keel
