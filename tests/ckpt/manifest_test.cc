// A manifest reads back whole, or says what is wrong with it.
#include "ckpt/manifest.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/file_helpers.h"
#include "ckpt/names.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

Manifest Sample() {
  const TestState state = TestState::Make(1, 300);
  Manifest manifest;
  const SavePlan plan = PlanOf(state, "/c", 7, 3, 256);
  manifest.description = plan.description;
  manifest.attempt = plan.attempt;
  manifest.description.writer = "test";
  manifest.saved_at_ns = 1234567890123456789;
  for (size_t i = 0; i < state.specs.size(); ++i) {
    manifest.tensor_digests.push_back(DigestOf(state.bytes[i]));
  }
  for (uint32_t part = 0; part < 2; ++part) {
    manifest.shards.push_back({ShardFileName({plan.attempt, part, 2}), 100 + part, DigestOf({}),
                               plan.description.layout.PartOf(part, 2)});
  }
  return manifest;
}

// The text with its digest made to fit again.
std::string Sealed(std::string text) {
  const size_t end = text.rfind(",\n\"digest\":\"");
  text.replace(end + 12, 32, DigestOf(BytesOf(text).first(end)).Hex());
  return text;
}

std::string WithReplaced(const std::string& from, const std::string& to) {
  std::string text = ManifestText(Sample());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return Sealed(text);
}

TEST(Manifest, ReadsBack) {
  Manifest manifest = Sample();
  Metadata& metadata = manifest.description.metadata;
  metadata["small"] = std::numeric_limits<int64_t>::min();
  metadata["large"] = std::numeric_limits<uint64_t>::max();
  metadata["rate"] = 0.1;
  metadata["tiny"] = std::numeric_limits<double>::denorm_min();
  metadata["exact"] = true;
  metadata["trail"] = std::string("caf\xc3\xa9 \"\\\n");
  ASSERT_OK_AND_ASSIGN(const Manifest read, ParseManifest(ManifestText(manifest)));
  EXPECT_EQ(read.description.metadata, metadata);
  EXPECT_EQ(read.description.user, manifest.description.user);
  EXPECT_EQ(read.description.step, 7u);
  EXPECT_EQ(read.attempt, manifest.attempt);
  EXPECT_EQ(read.saved_at_ns, manifest.saved_at_ns);
  EXPECT_EQ(read.tensor_digests, manifest.tensor_digests);
  EXPECT_EQ(ManifestText(read), ManifestText(manifest));
}

TEST(Manifest, IsOneLineATensor) {
  const std::string text = ManifestText(Sample());
  EXPECT_NE(text.find("\n {\"name\":\"model.bias\",\"dtype\":\"f32\",\"shape\":[7],\"offset\":"),
            std::string::npos)
      << text;
}

TEST(Manifest, RefusesWhatDoesNotAgreeThoughItsDigestFits) {
  const struct {
    const char* from;
    const char* to;
    const char* expected;
  } kCases[] = {
      {"\"version\":1", "\"version\":2", "newer Evenkeel"},
      {"\"format\":\"keel-checkpoint\"", "\"format\":\"other\"", "not ours"},
      {"\"user\":", "\"usher\":", "unknown member 'usher'"},
      {"\"step\":7", "\"step\":-7", "step"},
      {"\"step\":7", "\"step\":7.0", "step"},
      {"\"first_frame\":0", "\"first_frame\":1", "are not its part"},
      {"-shard-0001-of", "-shard-0002-of", "instead of"},
      {"\"dtype\":\"f32\"", "\"dtype\":\"f33\"", "'f33' is not a dtype"},
      {"\"shape\":[7]", "\"shape\":[9]", "'model.bias': 28 bytes"},
      {"\"name\":\"mask\"", "\"name\":\"double\"", "is there twice"},
      {"\"frame_bytes\":256", "\"frame_bytes\":512", "its place is"},
      {"\"frame_bytes\":256", "\"frame_bytes\":0", "frames of 0"},
      {"\"codec\":\"planes\"", "\"codec\":\"plains\"", "'plains' is not a codec"},
  };
  for (const auto& [from, to, expected] : kCases) {
    const auto manifest = ParseManifest(WithReplaced(from, to));
    ASSERT_FALSE(manifest.ok()) << from;
    EXPECT_NE(manifest.error().message.find(expected), std::string::npos)
        << from << " gives " << manifest.error().message;
  }
}

// Lines are swapped, doubled, cut and changed, and the digest made to fit.
TEST(Manifest, RandomChangesNeitherCrashNorAllocate) {
  const uint64_t seed = 61;
  Random random(seed);
  const std::string good = ManifestText(Sample());
  const size_t body = good.rfind(",\n\"digest\":\"");
  int read = 0;
  constexpr int kRounds = Rounds(5000, 1000);
  for (int round = 0; round < kRounds; ++round) {
    std::string text = good;
    for (uint64_t i = random.Uniform(3); i < 3; ++i) {
      const size_t at = random.Uniform(body - 40);  // the end itself stays findable
      switch (random.Uniform(4)) {
        case 0: text[at] = static_cast<char>(random.Next()); break;
        case 1: text.insert(at, 1, "0123456789-[]{},\"e."[random.Uniform(19)]); break;
        case 2: text.erase(at, random.Uniform(3)); break;
        default: text.insert(at, "99999999999"); break;
      }
    }
    read += ParseManifest(Sealed(text)).ok() ? 1 : 0;
  }
  EXPECT_LT(read, kRounds);
}

TEST(Description, RefusesWhatJsonCannotHold) {
  Description description;
  description.metadata["rate"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(CheckDescription(description).error().message.find("'rate' is not finite"),
            std::string::npos);
  description.metadata["rate"] = std::string("\xff");
  EXPECT_NE(CheckDescription(description).error().message.find("not UTF-8"), std::string::npos);
}

TEST(Description, RefusesAStepThatNoDirectoryNameHolds) {
  Description description;
  for (const uint64_t step : {kStepMax + 1, ~uint64_t{0}}) {
    description.step = step;
    EXPECT_FALSE(CheckDescription(description).ok());
    const auto read = ParseDescriptionText(DescriptionText(description, "0123456789abcdef"));
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().message.find("step " + std::to_string(step)), std::string::npos)
        << read.error().message;
  }
  description.step = kStepMax;
  EXPECT_OK(CheckDescription(description));
  EXPECT_EQ(ParseStepDirName(StepDirName(kStepMax)), kStepMax);
}

TEST(TensorDigest, FollowsFromPiecesHoweverFramesCutTheTensor) {
  const TestState state = TestState::Make(9, 400);
  ASSERT_OK_AND_ASSIGN(const Layout layout, Layout::Make(state.specs, 128));
  std::vector<std::vector<Digest>> pieces(state.specs.size());
  for (uint64_t frame = 0; frame < layout.frame_count(); ++frame) {
    for (const Piece& piece : layout.PiecesOf(frame)) {
      pieces[piece.tensor].push_back(DigestOf(std::span<const std::byte>(
          state.bytes[piece.tensor]).subspan(piece.tensor_offset, piece.bytes)));
    }
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(TensorDigest(pieces[i]), TensorDigest(layout, i, state.bytes[i]));
  }
}

// A search through the others for each would take hundreds of times as long.
TEST(Description, TakesManyKeysInLinearTime) {
  Description description;
  for (int i = 0; i < Rounds(100'000, 10'000); ++i) {
    description.metadata["key-" + std::to_string(i)] = int64_t{i};
    description.user["key-" + std::to_string(i)] = "text";
  }
  ASSERT_OK_AND_ASSIGN(const ParsedDescription parsed,
                       ParseDescriptionText(DescriptionText(description, "0123456789abcdef")));
  EXPECT_EQ(parsed.description.metadata, description.metadata);
  EXPECT_EQ(parsed.description.user, description.user);
}

}  // namespace
}  // namespace keel
