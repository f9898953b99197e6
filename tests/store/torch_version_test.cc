// Which LibTorch fits what was compiled for another, and what is said of one that does not.
#include "store/torch_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr TorchVersion kCompiled{2, 11, 0};

TEST(TorchVersion, ThatOfThisProcessFits) { EXPECT_OK(CheckTorchVersion()); }

TEST(TorchVersion, AnyPatchOfTheMinorVersionFits) {
  EXPECT_OK(CheckTorchVersion(kCompiled, true, TorchVersion{2, 11, 3}, "it"));
}

TEST(TorchVersion, AnotherMinorOrMajorVersionIsNamedWithTheCure) {
  for (const TorchVersion loaded : {TorchVersion{2, 10, 0}, TorchVersion{2, 12, 0},
                                    TorchVersion{3, 11, 0}}) {
    const Status fits = CheckTorchVersion(kCompiled, true, loaded, "/t/lib/libtorch_cpu.so");
    ASSERT_FALSE(fits.ok());
    EXPECT_EQ(fits.error().code, Code::kInvalid);
    EXPECT_THAT(fits.error().message,
                AllOf(HasSubstr("built for LibTorch 2.11.0, but /t/lib/libtorch_cpu.so is " +
                                std::to_string(loaded.major) + "." +
                                std::to_string(loaded.minor) + ".0"),
                      HasSubstr("Give it a LibTorch 2.11 "), HasSubstr("KEEL_TORCH_VERSION")));
  }
}

TEST(TorchVersion, OneThatDoesNotTellIsAnOlderOneUnlessThatOfTheHeadersDoesNotEither) {
  const Status fits = CheckTorchVersion(kCompiled, true, std::nullopt, "that which is loaded");
  ASSERT_FALSE(fits.ok());
  EXPECT_THAT(fits.error().message, HasSubstr("that which is loaded is an older one"));
  EXPECT_OK(CheckTorchVersion({2, 7, 0}, false, std::nullopt, "it"));
}

}  // namespace
}  // namespace keel
