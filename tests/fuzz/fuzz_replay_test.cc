// What fuzzing starts from and what it once found, run by any compiler under any sanitizer; and
// that the ways past the digests lead where they should.
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/posix_files.h"
#include "base/random.h"
#include "ckpt/shard_reader.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/shard_parts.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

class FuzzReplay : public testing::TestWithParam<const FuzzTarget*> {};

TEST_P(FuzzReplay, SeedsAreHandled) {
  const auto seeds = GetParam()->seeds();
  EXPECT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) GetParam()->run(BytesOf(seed));
}

TEST_P(FuzzReplay, WhatWasFoundIsHandled) {
  PosixFiles files;
  const std::string dir = KEEL_SOURCE_DIR "/tests/fuzz/found/" + std::string(GetParam()->name);
  const auto entries = files.List(dir);
  if (!entries.ok()) return;  // nothing yet
  for (const DirEntry& entry : *entries) {
    ASSERT_OK_AND_ASSIGN(const auto input, ReadWhole(files, JoinPath(dir, entry.name), 1 << 20));
    SCOPED_TRACE(entry.name);
    GetParam()->run(BytesOf(input));
  }
}

TEST_P(FuzzReplay, DamagedSeedsAreHandled) {
  Random random(17);
  for (const std::string& seed : GetParam()->seeds()) {
    for (int round = 0; round < 30 && !seed.empty(); ++round) {
      std::string bad = seed;
      for (uint64_t i = random.Uniform(4); i < 4; ++i) {
        bad[random.Uniform(bad.size())] = static_cast<char>(random.Next());
      }
      bad.resize(bad.size() - (round % 3 == 0 ? random.Uniform(bad.size()) : 0));
      GetParam()->run(BytesOf(bad));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzReplay, testing::ValuesIn(kFuzzTargets),
                         [](const auto& info) { return std::string(info.param->name); });

bool Opens(std::string_view shard) {
  MemoryFiles files;
  const auto file = files.Open("/shard", {.write = true, .create = true});
  EXPECT_TRUE((*file)->WriteAt(0, BytesOf(shard)).ok());
  return ShardReader::Open(files, "/shard").ok();
}

TEST(ShardParts, AreAWholeShardAgainWhenPutTogether) {
  for (const std::string& seed : kShardTarget.seeds()) {
    const auto parts = TakeApart(seed);
    ASSERT_TRUE(parts.has_value());
    std::string again = PutTogether(*parts);
    SealShard(std::as_writable_bytes(std::span(again)));
    EXPECT_TRUE(again == seed);
  }
}

TEST(ShardParts, SealedAfterAChangeTheyOpen) {
  for (const std::string& seed : kShardTarget.seeds()) {
    auto parts = TakeApart(seed);
    ASSERT_TRUE(parts.has_value());
    parts->description += " ";
    if (!parts->frames.empty()) parts->frames[0].back() ^= 1;
    std::string changed = PutTogether(*parts);
    EXPECT_FALSE(Opens(changed));
    SealShard(std::as_writable_bytes(std::span(changed)));
    EXPECT_TRUE(Opens(changed));
  }
}

}  // namespace
}  // namespace keel
