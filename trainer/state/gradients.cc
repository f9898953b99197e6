// Sums of squares in blocks of fixed size, added in one order.
#include "trainer/state/gradients.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "trainer/tensors.h"

namespace keel {
namespace {

constexpr int64_t kBlock = 1 << 15;

// Eight sums side by side, so that the compiler may use vectors without changing an order. The
// square of a float is exact in a double: whether it is fused with the addition makes no
// difference.
template <class T>
double SquaresOf(const T* values, int64_t count) {
  std::array<double, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t k = 0; k < 8; ++k) {
      const double value = static_cast<double>(values[i + k]);
      sums[k] += value * value;
    }
  }
  for (; i < count; ++i) {
    const double value = static_cast<double>(values[i]);
    sums[0] += value * value;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
double SumOfBlocks(const T* values, int64_t count) {
  std::vector<double> sums((count + kBlock - 1) / kBlock);
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t at = block * kBlock;
      sums[block] = SquaresOf(values + at, std::min(kBlock, count - at));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double SumOfSquares(const at::Tensor& tensor) {
  if (tensor.is_complex()) return SumOfSquares(at::view_as_real(tensor));
  double sum = 0;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, tensor.scalar_type(), "GlobalNorm",
      [&] { sum = SumOfBlocks(tensor.const_data_ptr<scalar_t>(), tensor.numel()); });
  return sum;
}

// Makes one number for each tensor on the device, and copies all of them at once.
double SumOfSquaresOnDevice(const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients) {
    norms.push_back(at::linalg_vector_norm(gradient, 2, {}, false, at::kDouble));
  }
  const at::Tensor together = at::stack(norms).to(at::kCPU);
  const double* norm = together.const_data_ptr<double>();
  double total = 0;
  for (int64_t i = 0; i < together.numel(); ++i) total += norm[i] * norm[i];
  return total;
}

}  // namespace

double GlobalNorm(const std::vector<at::Tensor>& gradients) {
  if (gradients.empty()) return 0;
  if (!gradients.front().is_cpu()) return std::sqrt(SumOfSquaresOnDevice(gradients));
  double total = 0;
  for (const at::Tensor& gradient : gradients) {
    KEEL_CHECK(IsDense(gradient), gradient.sizes() << " strides " << gradient.strides());
    total += SumOfSquares(gradient);
  }
  return std::sqrt(total);
}

void ScaleInPlace(const std::vector<at::Tensor>& gradients, double factor) {
  if (factor == 1 || gradients.empty()) return;
  const at::NoGradGuard no_grad;
  at::_foreach_mul_(gradients, factor);
}

double ClipFactor(double norm, double max_norm) {
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace keel
