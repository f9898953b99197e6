// HealthProduct: a matrix product of whole numbers, which every sound processor computes to the
// same bits, whatever the order and whatever instructions it takes.
// Promises   each partial sum is a whole number below 2^24, so that floats hold it exactly; the
//            digest of the right product is a constant, which a test derives from integers.
// Does not   measure speed; choose a processor (tools/keel/health_cpu.h).
// Threads    pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/digest.h"

namespace keel {

inline constexpr size_t kProductSide = 64;
inline constexpr size_t kProductElements = kProductSide * kProductSide;

// 64 times the square of the greatest factor is less than 2^24.
inline constexpr int kGreatestFactor = 511;

struct alignas(64) SquareMatrix {
  std::array<float, kProductElements> elements;  // row by row
};

struct ProductFactors {
  SquareMatrix left;
  SquareMatrix right;
};

// Always the same ones.
ProductFactors KnownFactors();

// By integers, with no float but the one that holds the result.
SquareMatrix ExactProduct(const ProductFactors& factors);

Digest ProductDigest(const SquareMatrix& product);
// Of ExactProduct(KnownFactors()), in hex.
inline constexpr const char* kKnownProductDigest = "8ca83325fb5de5f418928b5a24e2b03c";

// How many elements have other bits.
size_t CountDiffering(const SquareMatrix& product, const SquareMatrix& exact);

// One way to compute the product in floats.
struct ProductKernel {
  std::string name;  // of the instructions, as people know them
  void (*multiply)(const ProductFactors& factors, SquareMatrix* product) = nullptr;
};

// Those that this machine's processors have the instructions for.
std::vector<ProductKernel> ProductKernels();

}  // namespace keel
