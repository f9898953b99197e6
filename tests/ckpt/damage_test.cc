// Every byte matters: each bit of a small checkpoint flipped, each file cut at every length.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "ckpt/catalog.h"
#include "ckpt/names.h"
#include "ckpt/verify.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"

namespace keel {
namespace {

const std::string kStepDir = "/c/step-000000001";
// Every so many-th bit is flipped: each place of a byte comes in turn.
constexpr size_t kBitStride = Rounds(1, 11);

TestState SmallState() {
  Random random(5);
  TestState state;
  state.Add("w", Dtype::kF32, {150}, random);
  state.Add("b", Dtype::kBf16, {21}, random);
  state.Add("n", Dtype::kI64, {}, random);
  return state;
}

class DamageTest : public testing::Test {
 protected:
  void SetUp() override {
    MemorySource source(state_.Spans());
    SavePlan plan = PlanOf(state_, "/c", 1, 1, 256);
    ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));
    shard_ = ShardFileName({plan.attempt, 0, 1});
  }

  // Fine where the load gave the right bits; the error otherwise. Wrong bits fail the test, as do
  // memory that was touched by a load that failed.
  Status Load() {
    const auto checkpoint = Checkpoint::Open(files_, kStepDir);
    if (!checkpoint.ok()) return checkpoint.error();
    TestState loaded = blank_;
    RestoreOptions options;
    options.threads = 1;
    const auto restored = Restore(**checkpoint, loaded.Targets(), options);
    if (!restored.ok()) {
      EXPECT_EQ(loaded.bytes, blank_.bytes) << "a failed load has touched memory";
      return restored.error();
    }
    EXPECT_EQ(loaded.bytes, state_.bytes) << "wrong bits";
    return Ok();
  }

  void ExpectNamesPlace(const Status& status, const std::string& file, const std::string& what) {
    ASSERT_FALSE(status.ok()) << file << " " << what << " was not noticed";
    const std::string& message = status.error().message;
    ASSERT_NE(message.find(file), std::string::npos) << what << ": " << message;
    bool has_place = false;
    for (const char* word : {"byte", "header", "frame", "end"}) {
      has_place = has_place || message.find(word) != std::string::npos;
    }
    ASSERT_TRUE(has_place) << what << ": " << message;
  }

  std::string Content(const std::string& name) {
    return *ReadWhole(files_, JoinPath(kStepDir, name), 1 << 20);
  }
  void Replace(const std::string& name, std::string_view content) {
    const auto file = files_.Open(JoinPath(kStepDir, name), {.write = true, .truncate = true});
    ASSERT_OK((*file)->WriteAt(0, BytesOf(content)));
    ASSERT_OK((*file)->Sync());
  }

  // Makes the shard's digest fit what it is now.
  static void Seal(std::string* shard) {
    const auto bytes = std::as_writable_bytes(std::span(*shard));
    const auto tail = bytes.last(kShardTailBytes);
    uint64_t index_offset = 0;
    std::memcpy(&index_offset, tail.data(), sizeof index_offset);
    const uint64_t end = bytes.size() - kShardTailBytes;
    const auto footer = bytes.first(end).subspan(std::min(index_offset, end));
    const Digest digest = ShardDigest(bytes.first(kShardHeaderBytes), footer, tail);
    std::memcpy(tail.data() + 40, digest.bytes.data(), kDigestBytes);
  }

  MemoryFiles files_;
  TestState state_ = SmallState();
  TestState blank_ = state_.Blank();
  std::string shard_;
};

TEST_F(DamageTest, EveryFlippedBitIsFound) {
  int flips = 0;
  for (const std::string& name : {std::string(kManifestName), shard_}) {
    std::string content = Content(name);
    ASSERT_OK_AND_ASSIGN(const auto file, files_.Open(JoinPath(kStepDir, name), {.write = true}));
    for (size_t bit = 0; bit < content.size() * 8; bit += kBitStride, ++flips) {
      char& byte = content[bit / 8];
      byte = static_cast<char>(byte ^ 1 << bit % 8);
      ASSERT_OK(file->WriteAt(bit / 8, BytesOf({&byte, 1})));
      ASSERT_OK(file->Sync());
      ExpectNamesPlace(Load(), name, "bit " + std::to_string(bit));
      if (HasFailure()) return;
      byte = static_cast<char>(byte ^ 1 << bit % 8);
      ASSERT_OK(file->WriteAt(bit / 8, BytesOf({&byte, 1})));
      ASSERT_OK(file->Sync());
    }
  }
  ASSERT_OK(Load());
  std::printf("%d flipped bits, all found\n", flips);
}

TEST_F(DamageTest, EveryTruncationIsFound) {
  for (const std::string& name : {std::string(kManifestName), shard_}) {
    const std::string content = Content(name);
    for (size_t bytes = 0; bytes < content.size(); bytes += kPointStride) {
      Replace(name, std::string_view(content).substr(0, bytes));
      ExpectNamesPlace(Load(), name, "cut to " + std::to_string(bytes));
      if (HasFailure()) return;
    }
    Replace(name, content + 'x');
    ExpectNamesPlace(Load(), name, "one byte longer");
    Replace(name, content);
  }
  ASSERT_OK(Load());
}

TEST_F(DamageTest, AMissingShardIsNamed) {
  ASSERT_OK(files_.Remove(JoinPath(kStepDir, shard_)));
  const Status status = Load();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(shard_), std::string::npos);
  ASSERT_OK_AND_ASSIGN(const StepEntry entry, LookAtStep(files_, kStepDir));
  EXPECT_EQ(entry.state, StepState::kDamaged);
  EXPECT_NE(entry.reason.find(shard_), std::string::npos) << entry.reason;
}

TEST_F(DamageTest, VerifyNamesTensorAndElements) {
  std::string content = Content(shard_);
  content[kShardHeaderBytes + kFrameHeaderBytes + 5] ^= 1;
  Replace(shard_, content);
  ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files_, kStepDir));
  for (const Depth depth : {Depth::kStored, Depth::kContent}) {
    ASSERT_OK_AND_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {.depth = depth}));
    ASSERT_EQ(damages.size(), 1u);
    const std::string message = DamageError(checkpoint->layout(), damages[0]).message;
    EXPECT_NE(message.find("frame 0 at byte 64 ('w' elements 0 to 63)"), std::string::npos)
        << message;
  }
}

// As far as the disk goes, nothing needs to be unpacked to find it.
TEST_F(DamageTest, EveryFlippedBitOfAFrameIsFoundAsItLies) {
  const std::string good = Content(shard_);
  ASSERT_OK_AND_ASSIGN(const ShardTail tail,
                       ParseShardTail(BytesOf(good).last(kShardTailBytes), good.size()));
  for (size_t bit = kShardHeaderBytes * 8; bit < tail.index_offset * 8; bit += kBitStride) {
    std::string content = good;
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ 1 << bit % 8);
    Replace(shard_, content);
    ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(files_, kStepDir));
    ASSERT_OK_AND_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {.depth = Depth::kStored}));
    ASSERT_EQ(damages.size(), 1u) << "bit " << bit;
  }
}

// Every field of header and tail set to extremes, with a shard digest that fits, so that what reads
// them is reached.
TEST_F(DamageTest, HostileSizesNeitherCrashNorAllocate) {
  const std::string good = Content(shard_);
  const size_t tail_at = good.size() - kShardTailBytes;
  for (const size_t field : {size_t{8}, size_t{12}, size_t{16}, size_t{20}, size_t{24}, size_t{32},
                             size_t{40}, tail_at, tail_at + 8, tail_at + 16, tail_at + 24,
                             tail_at + 32}) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 40,
                                 ~uint64_t{0}, ~uint64_t{0} - 31}) {
      std::string bad = good;
      std::memcpy(bad.data() + field, &value, sizeof value);
      Seal(&bad);
      if (bad == good) continue;
      Replace(shard_, bad);
      const auto shard = ShardReader::Open(files_, JoinPath(kStepDir, shard_));
      // What a shard alone cannot know, its manifest does.
      EXPECT_FALSE(shard.ok() && Load().ok()) << field << " " << value;
    }
  }
}

TEST_F(DamageTest, ANewerVersionIsNamedAsSuch) {
  std::string newer = Content(shard_);
  newer[8] = 2;
  Seal(&newer);
  Replace(shard_, newer);
  const auto shard = ShardReader::Open(files_, JoinPath(kStepDir, shard_));
  ASSERT_FALSE(shard.ok());
  EXPECT_EQ(shard.error().code, Code::kInvalid);
  EXPECT_NE(shard.error().message.find("newer"), std::string::npos) << shard.error().message;
}

// Index and description at random, sealed with digests that fit.
TEST_F(DamageTest, RandomFootersNeitherCrashNorLie) {
  const uint64_t seed = 51;
  Random random(seed);
  const std::string good = Content(shard_);
  const auto tail = BytesOf(good).last(kShardTailBytes);
  ASSERT_OK_AND_ASSIGN(const ShardTail parsed, ParseShardTail(tail, good.size()));
  for (int round = 0; round < Rounds(3000, 600); ++round) {
    std::string bad = good;
    for (uint64_t i = random.Uniform(4); i < 4; ++i) {
      const size_t at = parsed.index_offset + random.Uniform(parsed.footer_bytes());
      bad[at] = static_cast<char>(random.Next());
    }
    Seal(&bad);
    Replace(shard_, bad);
    const auto shard = ShardReader::Open(files_, JoinPath(kStepDir, shard_));
    if (shard.ok()) (void)ParseDescriptionText((*shard)->description_text());
    EXPECT_TRUE(bad == good || !Load().ok()) << "seed " << seed << ", round " << round;
  }
}

}  // namespace
}  // namespace keel
