// Numerics: what is pinned holds, the fingerprint says so, and lanes' seeds reach the generators.
#include "trainer/numerics/numerics.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>

#include "tests/harness/expect_ok.h"
#include "trainer/numerics/autocast.h"
#include "trainer/numerics/kernel_probe.h"
#include "trainer/numerics/tensor_digest.h"

namespace keel {
namespace {

using testing::HasSubstr;

// Before all tests, as a program does it before all else.
class Pinned : public testing::Environment {
 public:
  void SetUp() override { ASSERT_OK(PinNumerics({.threads = 2})); }
};
const auto* const kPinned = testing::AddGlobalTestEnvironment(new Pinned);

TEST(Numerics, PortableKernelsAndDeterminismAreOn) {
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_FALSE(at::globalContext().deterministicAlgorithmsWarnOnly());
  EXPECT_EQ(at::get_num_threads(), 2);
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
}

TEST(Numerics, RefuseFewerThreadsThanOne) {
  const Status threads = PinNumerics({.threads = 0});
  ASSERT_FALSE(threads.ok());
  EXPECT_THAT(threads.error().message, HasSubstr("threads is 0"));
}

TEST(Numerics, NamesReadBack) {
  for (const Numerics numerics : {Numerics::kPortable, Numerics::kNative}) {
    EXPECT_EQ(*ParseNumerics(NumericsName(numerics)), numerics);
  }
  EXPECT_FALSE(ParseNumerics("fast").ok());
}

TEST(HostFingerprint, SaysWhatBitsDependOnAndIsTheSameTwice) {
  const FingerprintInputs inputs = {.lanes = 8, .lane_batch = 16};
  ASSERT_OK_AND_ASSIGN(const Fingerprint fingerprint, HostFingerprint(inputs));
  EXPECT_THAT(fingerprint.Text(),
              testing::MatchesRegex("torch=2\\..* device=cpu numerics=portable cpu=.* threads=2 "
                                    "precision=fp32 lanes=8 lane_batch=16 kernels=[0-9a-f]+"));
  ASSERT_OK_AND_ASSIGN(const Fingerprint again, HostFingerprint(inputs));
  EXPECT_EQ(again, fingerprint);
  ASSERT_OK_AND_ASSIGN(const Fingerprint other,
                       HostFingerprint({.precision = Precision::kBf16, .lanes = 8,
                                        .lane_batch = 17}));
  const std::string differences = Differences(fingerprint, other, {});
  EXPECT_THAT(differences, HasSubstr("precision is fp32 in here and bf16 in there"));
  EXPECT_THAT(differences, HasSubstr("lane_batch is 16 in here and 17 in there"));
  EXPECT_THAT(differences, testing::Not(HasSubstr("threads")));
}

TEST(KernelProbe, LeavesTheCallersGeneratorAlone) {
  at::manual_seed(5);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(5);
  KernelProbe(at::kCPU, Precision::kFp32);
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

TEST(SeedLane, GivesTheSameNumbersForTheSameLaneAndOthersForAnother) {
  const auto drawn = [](uint64_t seed, uint64_t step, uint64_t lane) {
    SeedLane(seed, step, lane);
    return DigestOfTensors({at::rand({64}), torch::dropout(torch::ones({64}), 0.5, true)});
  };
  const Digest one = drawn(1, 2, 3);
  EXPECT_EQ(drawn(1, 2, 3), one);
  EXPECT_NE(drawn(2, 2, 3), one);
  EXPECT_NE(drawn(1, 3, 3), one);
  EXPECT_NE(drawn(1, 2, 4), one);
}

TEST(AutocastScope, HoldsForItsLifetimeOnly) {
  const at::Tensor a = at::ones({4, 4});
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
  {
    const AutocastScope outer(at::kCPU, Precision::kBf16);
    EXPECT_EQ(at::mm(a, a).scalar_type(), at::kBFloat16);
    {
      const AutocastScope inner(at::kCPU, Precision::kFp16);
      EXPECT_EQ(at::mm(a, a).scalar_type(), at::kHalf);
      const AutocastScope nothing(at::kCPU, Precision::kFp32);
      EXPECT_EQ(at::mm(a, a).scalar_type(), at::kHalf);
    }
    EXPECT_EQ(at::mm(a, a).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace keel
