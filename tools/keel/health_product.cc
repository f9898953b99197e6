// One loop, compiled for each kind of vector instructions: those are what training uses, and each
// kind has circuits of its own.
#include "tools/keel/health_product.h"

#include <bit>
#include <cstdint>
#include <span>

#include "base/random.h"

namespace keel {
namespace {

// As wide as the widest registers; where they are narrower, the compiler takes several.
using WideFloats = float __attribute__((vector_size(64), may_alias));
static_assert(kProductSide * kGreatestFactor * kGreatestFactor < size_t{1} << 24);
constexpr size_t kWideCount = kProductSide * sizeof(float) / sizeof(WideFloats);

__attribute__((always_inline)) inline void MultiplyRows(const ProductFactors& factors,
                                                        SquareMatrix* product) {
  const auto* const right =
      reinterpret_cast<const WideFloats*>(factors.right.elements.data());
  auto* const into = reinterpret_cast<WideFloats*>(product->elements.data());
  for (size_t row = 0; row < kProductSide; ++row) {
    WideFloats sums[kWideCount] = {};
    for (size_t inner = 0; inner < kProductSide; ++inner) {
      const float factor = factors.left.elements[row * kProductSide + inner];
      for (size_t wide = 0; wide < kWideCount; ++wide) {
        sums[wide] += factor * right[inner * kWideCount + wide];
      }
    }
    for (size_t wide = 0; wide < kWideCount; ++wide) into[row * kWideCount + wide] = sums[wide];
  }
}

void MultiplyPlainly(const ProductFactors& factors, SquareMatrix* product) {
  MultiplyRows(factors, product);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) void MultiplyByAvx2(const ProductFactors& factors,
                                                        SquareMatrix* product) {
  MultiplyRows(factors, product);
}

__attribute__((target("avx512f"))) void MultiplyByAvx512(const ProductFactors& factors,
                                                         SquareMatrix* product) {
  MultiplyRows(factors, product);
}
#endif

}  // namespace

ProductFactors KnownFactors() {
  ProductFactors factors;
  Random random(1);
  for (SquareMatrix* const matrix : {&factors.left, &factors.right}) {
    for (float& element : matrix->elements) {
      const auto drawn = static_cast<int>(random.Uniform(2 * kGreatestFactor + 1));
      element = static_cast<float>(drawn - kGreatestFactor);
    }
  }
  return factors;
}

SquareMatrix ExactProduct(const ProductFactors& factors) {
  SquareMatrix product;
  for (size_t row = 0; row < kProductSide; ++row) {
    for (size_t column = 0; column < kProductSide; ++column) {
      int64_t sum = 0;
      for (size_t inner = 0; inner < kProductSide; ++inner) {
        sum += static_cast<int64_t>(factors.left.elements[row * kProductSide + inner]) *
               static_cast<int64_t>(factors.right.elements[inner * kProductSide + column]);
      }
      product.elements[row * kProductSide + column] = static_cast<float>(sum);
    }
  }
  return product;
}

Digest ProductDigest(const SquareMatrix& product) {
  return DigestOf(std::as_bytes(std::span(product.elements)));
}

size_t CountDiffering(const SquareMatrix& product, const SquareMatrix& exact) {
  size_t count = 0;
  for (size_t i = 0; i < kProductElements; ++i) {
    const bool is_same = std::bit_cast<uint32_t>(product.elements[i]) ==
                         std::bit_cast<uint32_t>(exact.elements[i]);
    count += is_same ? 0 : 1;
  }
  return count;
}

std::vector<ProductKernel> ProductKernels() {
  std::vector<ProductKernel> kernels = {{"plain instructions", MultiplyPlainly}};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    kernels.push_back({"AVX2", MultiplyByAvx2});
  }
  if (__builtin_cpu_supports("avx512f")) kernels.push_back({"AVX-512", MultiplyByAvx512});
#endif
  return kernels;
}

}  // namespace keel
