// The products of `keel health`: that their digest is that of integers, that every sound processor
// comes to it, and that one which does not is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tools/keel/health_cpu.h"
#include "tools/keel/health_findings.h"
#include "tools/keel/health_product.h"

namespace keel {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string TextOf(const std::vector<HealthFinding>& findings) {
  std::string text;
  for (const HealthFinding& one : findings) {
    text += one.check + ": " + std::string(FitnessName(one.fitness)) + ": " + one.what + "\n";
  }
  return text;
}

// --- the product ---

// Column by column, in integers alone, so in no order that the program takes.
SquareMatrix ByIntegers(const ProductFactors& factors) {
  SquareMatrix product;
  for (size_t column = 0; column < kProductSide; ++column) {
    for (size_t row = 0; row < kProductSide; ++row) {
      int32_t sum = 0;
      for (size_t inner = kProductSide; inner-- > 0;) {
        const auto left = static_cast<int32_t>(factors.left.elements[row * kProductSide + inner]);
        const auto right =
            static_cast<int32_t>(factors.right.elements[inner * kProductSide + column]);
        sum += left * right;
      }
      product.elements[row * kProductSide + column] = static_cast<float>(sum);
      EXPECT_EQ(static_cast<int32_t>(product.elements[row * kProductSide + column]), sum);
    }
  }
  return product;
}

TEST(HealthProduct, TheKnownDigestIsThatOfTheProductInIntegers) {
  const ProductFactors factors = KnownFactors();
  EXPECT_EQ(ProductDigest(ByIntegers(factors)).Hex(), kKnownProductDigest);
  EXPECT_EQ(CountDiffering(ExactProduct(factors), ByIntegers(factors)), 0u);
}

TEST(HealthProduct, FactorsAreWholeNumbersWhoseSumsFloatsHold) {
  const ProductFactors factors = KnownFactors();
  const auto [least, greatest] =
      std::minmax_element(factors.left.elements.begin(), factors.left.elements.end());
  EXPECT_EQ(*least, -kGreatestFactor) << "the widest that is allowed has more bits to get wrong";
  EXPECT_EQ(*greatest, kGreatestFactor);
  for (const SquareMatrix* matrix : {&factors.left, &factors.right}) {
    for (const float element : matrix->elements) {
      ASSERT_EQ(element, static_cast<float>(static_cast<int>(element)));
      ASSERT_LE(std::abs(element), kGreatestFactor);
    }
  }
}

TEST(HealthProduct, EveryKindOfInstructionsComesToIt) {
  const ProductFactors factors = KnownFactors();
  for (const ProductKernel& kernel : ProductKernels()) {
    SquareMatrix product;
    product.elements.fill(std::numeric_limits<float>::quiet_NaN());
    kernel.multiply(factors, &product);
    EXPECT_EQ(ProductDigest(product).Hex(), kKnownProductDigest) << kernel.name;
  }
}

TEST(HealthProduct, CountsElementsByTheirBits) {
  SquareMatrix exact;
  exact.elements.fill(0);
  SquareMatrix product = exact;
  EXPECT_EQ(CountDiffering(product, exact), 0u);
  product.elements[0] = -0.0F;
  product.elements[4095] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(CountDiffering(product, exact), 2u);
  EXPECT_EQ(CountDiffering(product, product), 0u) << "a NaN is the same as itself";
}

// --- processors ---

void MultiplyRightly(const ProductFactors& factors, SquareMatrix* product) {
  *product = ExactProduct(factors);
}

int broken_processor = -1;

void MultiplyAsTheBrokenOneDoes(const ProductFactors& factors, SquareMatrix* product) {
  *product = ExactProduct(factors);
  if (::sched_getcpu() != broken_processor) return;
  for (const size_t element : {7, 8, 4000}) product->elements[element] += 1;
}

TEST(HealthCpu, UsesTheProcessorsThatItMayUse) {
  const std::vector<int> all = OwnProcessors();
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(all.back()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_THAT(OwnProcessors(), ElementsAre(all.back()));
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(HealthCpu, EachProcessorComputesInEachWay) {
  const std::vector<int> all = OwnProcessors();
  const auto works = ComputeOnEach(all, ProductKernels(), Duration(0), RealClock());
  ASSERT_EQ(works.size(), all.size());
  for (size_t i = 0; i < works.size(); ++i) {
    EXPECT_EQ(works[i].processor, all[i]);
    EXPECT_EQ(works[i].trouble, "");
    EXPECT_EQ(works[i].products, ProductKernels().size());
    EXPECT_EQ(works[i].wrong, 0u);
  }
  const auto findings = ProcessorFindings(works, ExactProduct(KnownFactors()));
  EXPECT_THAT(TextOf(findings), StartsWith("cpu: fit: " + CountText(all.size(), "processor") +
                                           " computed what they should, "));
}

TEST(HealthCpu, TheProcessorThatComputesWronglyIsNamed) {
  const std::vector<int> all = OwnProcessors();
  const std::vector<ProductKernel> kernels = {{"plain instructions", MultiplyRightly},
                                              {"AVX9", MultiplyAsTheBrokenOneDoes}};
  broken_processor = all.back();
  const auto works = ComputeOnEach(all, kernels, Duration(0), RealClock());
  const auto findings = ProcessorFindings(works, ExactProduct(KnownFactors()));
  EXPECT_FALSE(IsFit(findings));
  EXPECT_THAT(TextOf(findings),
              EndsWith("cpu: unfit: processor " + std::to_string(all.back()) +
                       " computed another product than it should: 3 of 4096 elements differ "
                       "(with AVX9; 1 of 2 products were wrong)\n"));
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(),
                          [](const HealthFinding& one) { return one.fitness == Fitness::kUnfit; }),
            1)
      << TextOf(findings);
}

TEST(HealthCpu, AProcessorThatCannotBeTriedIsNoFault) {
  const auto works = ComputeOnEach({OwnProcessors().front(), 65000}, ProductKernels(), Duration(0),
                                   RealClock());
  const auto findings = ProcessorFindings(works, ExactProduct(KnownFactors()));
  EXPECT_TRUE(IsFit(findings));
  EXPECT_THAT(TextOf(findings), HasSubstr("cpu: not known: processor 65000 could not be tried: "));
  EXPECT_THAT(TextOf(findings), HasSubstr("cpu: fit: 1 processor "));
  EXPECT_EQ(ProcessorFindings({}, ExactProduct(KnownFactors()))[0].fitness, Fitness::kUnknown);
}

TEST(HealthCpu, AWrongDigestOfARightProductIsAFaultToo) {
  const SquareMatrix exact = ExactProduct(KnownFactors());
  const ProcessorWork work{.processor = 5, .products = 9, .wrong = 1, .kernel = "AVX2",
                           .product = exact};
  EXPECT_EQ(ProcessorFindings({work}, exact)[0].what,
            "processor 5 computed the right product, and another digest of it than it should (with "
            "AVX2; 1 of 9 products were wrong)");
}

}  // namespace
}  // namespace keel
