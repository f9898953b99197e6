// VoteRecord: what is written is read again, and nothing else is.
#include "trainer/loop/vote_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace keel {
namespace {

VoteRecord RandomRecord(Random& random, int lanes) {
  VoteRecord record;
  record.step = static_cast<int64_t>(random.Next());
  record.stop = random.Chance(0.5);
  record.save = random.Chance(0.5);
  record.saving = static_cast<SaveState>(random.Uniform(kSaveStates));
  record.join_waiting = random.Chance(0.5);
  record.leaving = random.Chance(0.5);
  if (random.Chance(0.5)) record.deadline_ms = static_cast<int64_t>(random.Uniform(100000));
  if (random.Chance(0.5)) record.save_ns = static_cast<int64_t>(random.Uniform(1u << 30));
  record.compute_ns = static_cast<int64_t>(random.Uniform(1u << 30));
  record.exchange_ns = static_cast<int64_t>(random.Uniform(1u << 30));
  record.sent_ns = static_cast<int64_t>(random.Uniform(1u << 30));
  if (random.Chance(0.5)) {
    record.parameters.emplace();
    random.Bytes(record.parameters->bytes);
  }
  if (random.Chance(0.5)) {
    record.piece.emplace();
    random.Bytes(record.piece->bytes);
  }
  for (auto* const digest : {&record.own_lane, &record.other_lane, &record.sums, &record.slices,
                             &record.slices_again, &record.inputs, &record.inputs_again}) {
    if (!random.Chance(0.5)) continue;
    digest->emplace();
    random.Bytes((*digest)->bytes);
  }
  for (int lane = 0; lane < lanes; ++lane) record.losses.push_back(random.Double());
  return record;
}

TEST(VoteRecord, DecodesToWhatWasEncoded) {
  Random random(7);
  for (int round = 0; round < 500; ++round) {
    const int lanes = static_cast<int>(random.Uniform(5));
    const VoteRecord record = RandomRecord(random, lanes);
    const auto bytes = EncodeVote(record);
    ASSERT_EQ(bytes.size(), VoteRecordBytes(lanes));
    const Result<VoteRecord> decoded = DecodeVote(bytes, lanes);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->step, record.step);
    EXPECT_EQ(decoded->stop, record.stop);
    EXPECT_EQ(decoded->save, record.save);
    EXPECT_EQ(decoded->saving, record.saving);
    EXPECT_EQ(decoded->join_waiting, record.join_waiting);
    EXPECT_EQ(decoded->leaving, record.leaving);
    EXPECT_EQ(decoded->deadline_ms, record.deadline_ms);
    EXPECT_EQ(decoded->save_ns, record.save_ns);
    EXPECT_EQ(decoded->compute_ns, record.compute_ns);
    EXPECT_EQ(decoded->exchange_ns, record.exchange_ns);
    EXPECT_EQ(decoded->sent_ns, record.sent_ns);
    EXPECT_EQ(decoded->parameters, record.parameters);
    EXPECT_EQ(decoded->piece, record.piece);
    EXPECT_EQ(decoded->own_lane, record.own_lane);
    EXPECT_EQ(decoded->other_lane, record.other_lane);
    EXPECT_EQ(decoded->sums, record.sums);
    EXPECT_EQ(decoded->slices, record.slices);
    EXPECT_EQ(decoded->slices_again, record.slices_again);
    EXPECT_EQ(decoded->inputs, record.inputs);
    EXPECT_EQ(decoded->inputs_again, record.inputs_again);
    EXPECT_EQ(decoded->losses, record.losses);
    EXPECT_EQ(*decoded, record);
  }
}

TEST(VoteRecord, LossesKeepTheirBits) {
  VoteRecord record;
  record.losses = {std::numeric_limits<double>::quiet_NaN(), -0.0,
                   std::numeric_limits<double>::infinity()};
  const Result<VoteRecord> decoded = DecodeVote(EncodeVote(record), 3);
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(std::isnan(decoded->losses[0]));
  EXPECT_TRUE(std::signbit(decoded->losses[1]));
  EXPECT_EQ(*decoded, record);
  VoteRecord other = record;
  other.losses[1] = 0.0;
  EXPECT_FALSE(other == record);
}

TEST(VoteRecord, AnotherLengthIsAnError) {
  const auto bytes = EncodeVote({});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeVote(std::span(bytes).first(size), 0).error().code, Code::kCorrupt);
  }
  EXPECT_EQ(DecodeVote(bytes, 1).error().code, Code::kCorrupt);
}

TEST(VoteRecord, AnUnknownFlagIsAnError) {
  auto bytes = EncodeVote({});
  bytes[10] = std::byte{4};
  EXPECT_EQ(DecodeVote(bytes, 0).error().code, Code::kCorrupt);
}

TEST(VoteRecord, AnUnknownStateOfTheSaveIsAnError) {
  auto bytes = EncodeVote({});
  bytes[9] = std::byte{kSaveStates};
  EXPECT_EQ(DecodeVote(bytes, 0).error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace keel
