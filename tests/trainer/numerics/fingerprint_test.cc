// A fingerprint's one line, and the words for what differs.
#include "trainer/numerics/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/precision.h"

namespace keel {
namespace {

Fingerprint Parsed(std::string_view text) {
  Result<Fingerprint> fingerprint = Fingerprint::Parse(text);
  KEEL_CHECK(fingerprint.ok(), fingerprint.error().message);
  return *fingerprint;
}

TEST(Fingerprint, TextReadsBackAsTheSame) {
  Fingerprint fingerprint;
  fingerprint.Add("torch", "2.11.0+cpu");
  fingerprint.Add("device", "NVIDIA H200 141GB");
  fingerprint.Add("--model.heads", "4");
  fingerprint.Add("empty", "");
  EXPECT_EQ(fingerprint.Text(), "torch=2.11.0+cpu device=NVIDIA_H200_141GB --model.heads=4 empty=");
  EXPECT_EQ(Parsed(fingerprint.Text()), fingerprint);
  EXPECT_EQ(Parsed("").fields().size(), 0u);
}

TEST(Fingerprint, NamesEachFieldThatDiffersWithBothValues) {
  const FingerprintSides sides = {.ours = "this worker", .theirs = "the job"};
  EXPECT_EQ(Differences(Parsed("a=1 b=2"), Parsed("a=1 b=2"), sides), "");
  EXPECT_EQ(Differences(Parsed("a=1 b=2"), Parsed("b=2 a=1"), sides), "");
  EXPECT_EQ(Differences(Parsed("a=1 b=2 c=3"), Parsed("a=1 b=4 d=5"), sides),
            "b is 2 in this worker and 4 in the job; c is 3 in this worker and not said in the "
            "job; d is not said in this worker and 5 in the job");
}

TEST(Fingerprint, RefusesTextThatIsNone) {
  const auto why = [](const char* text) {
    const Result<Fingerprint> fingerprint = Fingerprint::Parse(text);
    EXPECT_FALSE(fingerprint.ok()) << text;
    return fingerprint.ok() ? "" : fingerprint.error().message;
  };
  EXPECT_THAT(why("a=1 b"), testing::HasSubstr("'b' is not of the form name=value"));
  EXPECT_THAT(why("=1"), testing::HasSubstr("not of the form"));
  EXPECT_THAT(why("a=1 a=2"), testing::HasSubstr("gives a twice"));
}

TEST(Precision, NamesReadBack) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    EXPECT_EQ(*ParsePrecision(PrecisionName(precision)), precision);
  }
  const Result<Precision> unknown = ParsePrecision("int8");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "unknown precision 'int8': use fp32, bf16 or fp16");
}

}  // namespace
}  // namespace keel
