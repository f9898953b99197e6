// Claims and beats come back as they were written, or not at all.
#include "store/lease/claim_record.h"

#include <gtest/gtest.h>

#include "tests/harness/expect_ok.h"
#include "tests/support/garbage.h"

namespace keel {
namespace {

const ClaimRecord kClaim{"job", "run", 7, "0123456789abcdef", "10.0.0.7:29400\n"};
const BeatRecord kBeat{"0123456789abcdef", 12, true};

TEST(ClaimRecord, ComesBack) {
  ASSERT_OK_AND_ASSIGN(const ClaimRecord claim, ParseClaim(ClaimText(kClaim)));
  EXPECT_EQ(claim, kClaim);
  ASSERT_OK_AND_ASSIGN(const BeatRecord beat, ParseBeat(BeatText(kBeat)));
  EXPECT_EQ(beat, kBeat);
}

TEST(ClaimRecord, HasTheseBytes) {
  EXPECT_EQ(BeatText(kBeat),
            "{\"version\":1,\"claimant\":\"0123456789abcdef\",\"count\":12,\"released\":true}\n"
            "ce291967e535a61bb525be457bc984b6\n");
}

TEST(ClaimRecord, IsRefusedCutAtAnyByte) {
  const std::string text = ClaimText(kClaim);
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(ParseClaim(text.substr(0, size)).error().code, Code::kCorrupt) << size;
  }
  EXPECT_FALSE(ParseClaim(text + "\n").ok());
  EXPECT_FALSE(ParseBeat(text).ok());
}

TEST(ClaimRecord, IsRefusedWithAnyBitFlipped) {
  const std::string text = ClaimText(kClaim);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(ParseClaim(flipped).ok()) << bit;
  }
}

TEST(ClaimRecord, GarbageIsRefused) {
  Garbage garbage(1);
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = garbage.Bytes(300);
    EXPECT_FALSE(ParseClaim(bytes).ok()) << garbage.Where(round);
    EXPECT_FALSE(ParseBeat(bytes).ok()) << garbage.Where(round);
  }
}

}  // namespace
}  // namespace keel
