// Digests agree with the published XXH3-128, however the bytes are cut, and survive the way through
// text. The known answers come from another build of xxHash (0.8.4).
#include "base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/digest_code.h"
#include "base/file_helpers.h"
#include "base/random.h"

namespace keel {
namespace {

std::vector<std::byte> Pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  return bytes;
}

TEST(Digest, GivesTheKnownAnswers) {
  EXPECT_EQ(DigestOf({}).Hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(DigestOf(BytesOf("abc")).Hex(), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(DigestOf(BytesOf("Evenkeel")).Hex(), "efc69c0f1459e2e93f518d8aa871a6a4");
  EXPECT_EQ(DigestOf(Pattern(100000)).Hex(), "70227b16fd5f74ef17a701075a95b432");
}

TEST(Digest, BytesStandInTheOrderOfTheText) {
  EXPECT_EQ(std::to_integer<int>(DigestOf({}).bytes[0]), 0x99);
  EXPECT_EQ(std::to_integer<int>(DigestOf({}).bytes[15]), 0x7f);
}

TEST(Digest, EveryFlippedBitShows) {
  std::vector<std::byte> bytes = Pattern(300);
  const Digest whole = DigestOf(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const std::byte mask = static_cast<std::byte>(1 << bit % 8);
    bytes[bit / 8] ^= mask;
    EXPECT_NE(DigestOf(bytes), whole) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
  EXPECT_EQ(DigestOf(bytes), whole);
}

TEST(Digester, PiecesMakeNoDifference) {
  const std::vector<std::byte> bytes = Pattern(5000);
  for (const size_t piece : {1, 7, 64, 255, 1024, 4999, 5000}) {
    Digester digester;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      digester.Update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(digester.Current(), DigestOf(bytes)) << "pieces of " << piece;
    EXPECT_EQ(digester.bytes(), bytes.size());
  }
}

TEST(Digester, MayBeAskedOnTheWay) {
  Digester digester;
  EXPECT_EQ(digester.Current(), DigestOf({}));
  digester.Update(BytesOf("ab"));
  EXPECT_EQ(digester.Current(), DigestOf(BytesOf("ab")));
  digester.Update({});
  digester.Update(BytesOf("c"));
  Digester moved = std::move(digester);
  EXPECT_EQ(moved.Current(), DigestOf(BytesOf("abc")));
}

// Of what is read at an odd address, too, and of pieces of every size.
TEST(DigestCode, TheFastCodeGivesTheSameDigests) {
  const DigestCode* avx2 = Avx2DigestCode();
  if (avx2 == nullptr) GTEST_SKIP() << "no AVX2 in this build or processor";
  Random random(5);
  std::vector<std::byte> bytes(5000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
  for (size_t count = 0; count < bytes.size(); count += count < 600 ? 1 : 97) {
    const std::byte* from = bytes.data() + (count < bytes.size() / 2 ? 1 : 0);
    const DigestHalves expected = kLibraryDigestCode.of(from, count);
    const DigestHalves found = avx2->of(from, count);
    ASSERT_EQ(found.high, expected.high) << count;
    ASSERT_EQ(found.low, expected.low) << count;
    void* state = avx2->make();
    for (size_t at = 0; at < count;) {
      const size_t piece = std::min<size_t>(1 + random.Uniform(700), count - at);
      ASSERT_TRUE(avx2->update(state, from + at, piece));
      at += piece;
    }
    const DigestHalves joined = avx2->current(state);
    avx2->free(state);
    ASSERT_EQ(joined.high, expected.high) << count;
    ASSERT_EQ(joined.low, expected.low) << count;
  }
}

TEST(ParseDigest, TakesBackWhatHexGave) {
  const Digest digest = DigestOf(BytesOf("abc"));
  const Result<Digest> parsed = ParseDigest(digest.Hex());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*parsed, digest);
}

TEST(ParseDigest, RefusesAllElseAndSaysWhy) {
  const std::string good = DigestOf({}).Hex();
  const std::vector<std::string> bad{"",
                                     good.substr(1),
                                     good + "0",
                                     good.substr(1) + "g",
                                     good.substr(1) + " ",
                                     good.substr(2) + "9A"};
  for (const std::string& text : bad) {
    const Result<Digest> parsed = ParseDigest(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
    EXPECT_NE(parsed.error().message.find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace keel
