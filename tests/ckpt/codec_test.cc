// The codec: the same bits back for any content, the same bytes on every CPU, and small ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "ckpt/byte_planes.h"
#include "ckpt/frame.h"
#include "ckpt/plane_choice.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

std::vector<std::byte> RandomBytes(size_t count, uint64_t seed) {
  std::vector<std::byte> bytes(count);
  Random(seed).Bytes(bytes);
  return bytes;
}

std::vector<std::byte> GaussianFloats(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count * 4);
  for (size_t i = 0; i < count; ++i) {
    const float number = Gaussian(random);
    std::memcpy(bytes.data() + 4 * i, &number, 4);
  }
  return bytes;
}

// The upper halves of floats.
std::vector<std::byte> GaussianBf16(size_t count, uint64_t seed) {
  const auto floats = GaussianFloats(count, seed);
  std::vector<std::byte> bytes(count * 2);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + 2 * i, floats.data() + 4 * i + 2, 2);
  }
  return bytes;
}

std::vector<std::byte> Encode(FrameCoder& coder, std::span<const std::byte> content, uint32_t width,
                              CodecChoice choice = {}) {
  std::vector<std::byte> stored(StoredBytesMax(content.size()));
  stored.resize(coder.Encode(3, width, content, choice, stored).bytes);
  return stored;
}

TEST(BytePlanes, VectorsAndPlainCodeGiveTheSameBytesForEveryLength) {
  const auto input = RandomBytes(8 * 200 + 3, 11);
  for (const uint32_t width : {2u, 4u, 8u}) {
    for (const bool rotate : {false, true}) {
      for (size_t offset = 0; offset < 3; ++offset) {
        for (size_t count = 0; count < 150; ++count) {
          // One byte more than a plane's room, to see what is written behind it.
          std::vector<std::vector<std::byte>> a(width, std::vector(count + 1, std::byte{0xA5}));
          auto b = a;
          PlanePointers to_a{}, to_b{};
          ConstPlanePointers from{};
          for (uint32_t p = 0; p < width; ++p) {
            to_a[p] = a[p].data();
            to_b[p] = b[p].data();
            from[p] = a[p].data();
          }
          SplitPlanes(input.data() + offset, count, width, rotate, to_a);
          SplitPlanesPlain(input.data() + offset, count, width, rotate, to_b);
          ASSERT_EQ(a, b) << width << " " << rotate << " " << count;
          std::vector<std::byte> joined(count * width + 1, std::byte{0x5A}), plain = joined;
          JoinPlanes(from, count, width, rotate, joined.data());
          JoinPlanesPlain(from, count, width, rotate, plain.data());
          ASSERT_EQ(joined, plain);
          ASSERT_EQ(joined.back(), std::byte{0x5A});
          ASSERT_EQ(std::memcmp(joined.data(), input.data() + offset, count * width), 0);
        }
      }
    }
  }
}

TEST(PlaneChoice, RotatesAwaySignsAndCodesTheExponents) {
  const auto floats = GaussianFloats(100'000, 3);
  const PlaneChoice choice = ChoosePlanes(floats.data(), 100'000, 4);
  EXPECT_TRUE(choice.rotate);
  EXPECT_EQ(choice.coded, 0b1000);
  EXPECT_EQ(choice.seek_runs, 0);
}

TEST(PlaneChoice, LeavesPositiveNumbersUnrotated) {
  auto floats = GaussianFloats(100'000, 3);
  for (size_t i = 3; i < floats.size(); i += 4) floats[i] &= std::byte{0x7F};
  EXPECT_FALSE(ChoosePlanes(floats.data(), 100'000, 4).rotate);
}

TEST(PlaneChoice, LeavesNoiseAlone) {
  const auto noise = RandomBytes(80'000, 5);
  for (const uint32_t width : {2u, 4u, 8u}) {
    EXPECT_EQ(ChoosePlanes(noise.data(), noise.size() / width, width).coded, 0) << width;
  }
}

TEST(PlaneChoice, SeesRuns) {
  const std::vector<std::byte> zeros(4 * 5000);
  const PlaneChoice choice = ChoosePlanes(zeros.data(), 5000, 4);
  EXPECT_EQ(choice.coded, 0b1111);
  EXPECT_EQ(choice.seek_runs, 0b1111);
}

TEST(Frame, GivesBackEveryLengthOfEveryWidthBitForBit) {
  FrameCoder coder;
  const auto noise = RandomBytes(2100, 17);
  auto floats = GaussianFloats(525, 18);
  const std::vector<std::byte> zeros(2100);
  for (const auto* input : {&noise, &std::as_const(floats), &zeros}) {
    for (const uint32_t width : {1u, 2u, 4u, 8u}) {
      for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kPlanes}) {
        for (size_t bytes = 0; bytes <= input->size(); bytes += bytes < 200 ? 1 : 37) {
          const auto content = std::span(*input).first(bytes);
          const auto stored = Encode(coder, content, width, {codec, 1});
          ASSERT_LE(stored.size(), kFrameHeaderBytes + bytes);
          std::vector<std::byte> decoded(bytes + 1, std::byte{0x5A});
          ASSERT_OK(coder.Decode(3, width, stored, std::span(decoded).first(bytes)));
          ASSERT_EQ(decoded.back(), std::byte{0x5A});
          ASSERT_TRUE(std::equal(content.begin(), content.end(), decoded.begin()));
        }
      }
    }
  }
}

TEST(Frame, KeepsNansDenormalsAndNegativeZeros) {
  std::vector<uint32_t> numbers;
  for (uint32_t low = 0; low < 64; ++low) {
    for (const uint32_t high : {0x7F800000u, 0xFFC00000u, 0x00000000u, 0x80000000u, 0x7FA00000u}) {
      numbers.push_back(high | low * 977);
    }
  }
  const auto content = std::as_bytes(std::span(numbers));
  FrameCoder coder;
  const auto stored = Encode(coder, content, 4);
  EXPECT_LT(stored.size(), content.size());
  std::vector<uint32_t> decoded(numbers.size());
  ASSERT_OK(coder.Decode(3, 4, stored, std::as_writable_bytes(std::span(decoded))));
  EXPECT_EQ(decoded, numbers);
}

// Measured: .831 for fp32, .66 for bf16.
TEST(Frame, GaussianFloatsShrinkAsTheyShould) {
  FrameCoder coder;
  const auto floats = GaussianFloats(kFrameBytes / 4, 21);
  EXPECT_LE(Encode(coder, floats, 4).size(), 0.835 * floats.size());
  const auto halves = GaussianBf16(kFrameBytes / 2, 22);
  EXPECT_LE(Encode(coder, halves, 2).size(), 0.67 * halves.size());
}

// Would fail with a zstd that refuses the Huffman-only mode and has no good substitute.
TEST(Frame, AnExponentPlaneShrinksBelowFourTenths) {
  const auto floats = GaussianFloats(kFrameBytes / 4, 23);
  const size_t count = floats.size() / 4;
  std::vector<std::byte> planes(floats.size()), packed(count);
  PlanePointers to{};
  for (int p = 0; p < 4; ++p) to[p] = planes.data() + p * count;
  SplitPlanes(floats.data(), count, 4, true, to);
  ZstdCoder zstd;
  const auto bytes = zstd.ShrinkPlane({to[3], count}, false, packed);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_LT(*bytes, 0.40 * count);
  std::vector<std::byte> unpacked(count);
  ASSERT_OK(zstd.Expand(std::span(packed).first(*bytes), unpacked));
  EXPECT_EQ(std::memcmp(unpacked.data(), to[3], count), 0);
}

// What is written may change with another zstd; what was once written must be read for ever.
constexpr std::string_view kVersion1Frame =
    "4b524d310202010358020000a5000000030000000000000059710bdc29ce32483a2173d80cff02d68a000000"
    "1300000028b52ffd602c00050400c6121f8811131300201c001c001c00f324d4cb903d13dc3c09f53264cf04"
    "374f42bd0cd933c1cd93502f233264cf04374f42bd0cd933c1cd93502f43f64c70f324d4cb903d135ce0e649"
    "a897217b26b87912ea65c89e096e9e847a19b267829b27a13e7a19b267829b27a15e86ec99e0e649a897217b"
    "26b87912ea65c89e190028b52ffd602c004d0000950c7f010049900229";

TEST(Frame, AStoredFrameOfVersion1IsRead) {
  std::vector<uint16_t> numbers(300);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<uint16_t>(0xBF80 + i * i % 7 - 0x8000 * (i % 3 > 1));
  }
  std::vector<std::byte> stored;
  for (size_t i = 0; i < kVersion1Frame.size(); i += 2) {
    const std::string byte(kVersion1Frame.substr(i, 2));
    stored.push_back(static_cast<std::byte>(std::stoi(byte, nullptr, 16)));
  }
  ASSERT_OK_AND_ASSIGN(const FrameHeader header, ParseFrameHeader(stored));
  EXPECT_EQ(header.codec, Codec::kPlanes);
  EXPECT_TRUE(header.rotated);
  std::vector<uint16_t> decoded(numbers.size());
  FrameCoder coder;
  ASSERT_OK(coder.Decode(3, 2, stored, std::as_writable_bytes(std::span(decoded))));
  EXPECT_EQ(decoded, numbers);
}

TEST(Frame, NoiseCostsAHeaderOnly) {
  FrameCoder coder;
  const auto noise = RandomBytes(kFrameBytes, 29);
  EXPECT_EQ(Encode(coder, noise, 4).size(), noise.size() + kFrameHeaderBytes);
}

TEST(Frame, AUsedCoderGivesTheSameBytesAsAFreshOne) {
  const auto floats = GaussianFloats(50'000, 31);
  FrameCoder used;
  Encode(used, RandomBytes(100'000, 1), 1, {Codec::kZstd, 3});
  Encode(used, std::vector<std::byte>(100'000), 8);
  FrameCoder fresh;
  EXPECT_EQ(Encode(used, floats, 4), Encode(fresh, floats, 4));
}

TEST(Frame, EveryFlippedBitIsFoundOrHarmless) {
  FrameCoder coder;
  const auto floats = GaussianFloats(300, 37);
  auto stored = Encode(coder, floats, 4);
  for (size_t bit = 0; bit < stored.size() * 8; ++bit) {
    stored[bit / 8] ^= std::byte{1} << (bit % 8);
    std::vector<std::byte> decoded(floats.size());
    if (coder.Decode(3, 4, stored, decoded).ok()) {
      ASSERT_EQ(decoded, floats) << "bit " << bit;
    }
    stored[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(Frame, EveryTruncationIsFound) {
  FrameCoder coder;
  const auto floats = GaussianFloats(300, 41);
  const auto stored = Encode(coder, floats, 4);
  std::vector<std::byte> decoded(floats.size());
  for (size_t bytes = 0; bytes < stored.size(); ++bytes) {
    const std::vector<std::byte> cut(stored.begin(), stored.begin() + bytes);
    ASSERT_FALSE(coder.Decode(3, 4, cut, decoded).ok()) << bytes;
  }
}

TEST(Frame, RefusesAnotherFramesBytes) {
  FrameCoder coder;
  const auto floats = GaussianFloats(300, 43);
  const auto stored = Encode(coder, floats, 4);
  std::vector<std::byte> decoded(floats.size());
  EXPECT_EQ(coder.Decode(4, 4, stored, decoded).error().code, Code::kCorrupt);
  EXPECT_EQ(coder.Decode(3, 2, stored, decoded).error().code, Code::kCorrupt);
  EXPECT_FALSE(coder.Decode(3, 4, stored, std::span(decoded).first(100)).ok());
}

// Seeded damage with a digest that fits, so that the parser behind it is reached.
TEST(Frame, SurvivesArbitraryBytes) {
  FrameCoder coder;
  const uint64_t seed = 47;
  Random random(seed);
  const auto floats = GaussianFloats(600, 3);
  const auto good = Encode(coder, floats, 4);
  for (int round = 0; round < 20'000; ++round) {
    auto stored = good;
    for (uint64_t i = random.Uniform(6); i < 6; ++i) {
      stored[random.Uniform(random.Chance(0.5) ? 80 : stored.size())] =
          static_cast<std::byte>(random.Next());
    }
    stored.resize(random.Chance(0.3) ? random.Uniform(stored.size()) : stored.size());
    std::vector<std::byte> decoded(floats.size());
    if (coder.Decode(3, 4, stored, decoded).ok()) {
      ASSERT_EQ(decoded, floats) << "seed " << seed << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace keel
