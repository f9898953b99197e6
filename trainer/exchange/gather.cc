// Plays the plan of trainer/exchange/gather_plan.h over the group.
#include "trainer/exchange/gather.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "store/catch_torch.h"
#include "trainer/exchange/gather_plan.h"
#include "trainer/group/epoch_group.h"

namespace keel {
namespace {

constexpr uint64_t kRecordBytesMost = uint64_t{1} << 30;

at::Tensor RoomFor(const std::vector<int>& ranks, const std::vector<size_t>& sizes) {
  size_t bytes = 0;
  for (const int rank : ranks) bytes += sizes[static_cast<size_t>(rank)];
  return at::empty({static_cast<int64_t>(bytes)}, at::kByte);
}

at::Tensor Joined(const std::vector<int>& ranks, const std::vector<RecordBytes>& records,
                  const std::vector<size_t>& sizes) {
  at::Tensor joined = RoomFor(ranks, sizes);
  auto* next = static_cast<std::byte*>(joined.data_ptr());
  for (const int rank : ranks) {
    const RecordBytes& record = records[static_cast<size_t>(rank)];
    if (!record.empty()) std::memcpy(next, record.data(), record.size());
    next += record.size();
  }
  return joined;
}

void Split(const at::Tensor& joined, const std::vector<int>& ranks,
           const std::vector<size_t>& sizes, std::vector<RecordBytes>& records) {
  const auto* next = static_cast<const std::byte*>(joined.const_data_ptr());
  for (const int rank : ranks) {
    const size_t size = sizes[static_cast<size_t>(rank)];
    records[static_cast<size_t>(rank)].assign(next, next + size);
    next += size;
  }
}

struct OpenRound {
  GatherRound plan;
  at::Tensor in;
  EpochGroup::Batch batch;
};

// Gloo sends a message only once its receiver has said that it waits for it. All receives are
// posted before the first wait, so that the later rounds need not wait for that.
Status Play(EpochGroup& group, const std::vector<size_t>& sizes,
            std::vector<RecordBytes>& records) {
  const Tag tag = group.NextTag(TagKind::kGather);
  std::vector<OpenRound> rounds;
  const auto send = [&](OpenRound& round) {
    return round.batch.Send(Joined(round.plan.sends, records, sizes), round.plan.to, tag);
  };
  for (GatherRound& plan : PlanGather(group.rank(), group.size())) {
    at::Tensor in = RoomFor(plan.receives, sizes);
    rounds.push_back({std::move(plan), std::move(in), EpochGroup::Batch(group)});
    OpenRound& round = rounds.back();
    KEEL_TRY(round.batch.Receive(round.in, round.plan.from, tag));
    if (rounds.size() == 1) KEEL_TRY(send(round));
  }
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (i > 0) KEEL_TRY(send(rounds[i]));
    KEEL_TRY(rounds[i].batch.Wait());
    Split(rounds[i].in, rounds[i].plan.receives, sizes, records);
  }
  return Ok();
}

}  // namespace

Result<std::vector<RecordBytes>> Gather(EpochGroup& group, const RecordBytes& mine,
                                        const std::vector<size_t>& sizes) {
  const auto rank = static_cast<size_t>(group.rank());
  KEEL_CHECK(sizes.size() == static_cast<size_t>(group.size()) && mine.size() == sizes[rank],
             "sizes of " << sizes.size() << " records; ours has " << mine.size() << " bytes");
  std::vector<RecordBytes> records(sizes.size());
  records[rank] = mine;
  const Result<Status> played =
      CatchTorch("gathering records", [&] { return Play(group, sizes, records); });
  if (!played.ok()) {
    group.Abort(played.error());
    return played.error();
  }
  if (!played->ok()) return played->error();
  return records;
}

Result<std::vector<RecordBytes>> GatherRecords(EpochGroup& group, const RecordBytes& mine) {
  const uint64_t size = mine.size();
  RecordBytes size_bytes(sizeof size);
  std::memcpy(size_bytes.data(), &size, sizeof size);
  const std::vector<size_t> lengths(static_cast<size_t>(group.size()), sizeof size);
  KEEL_TRY_ASSIGN(const auto all_sizes, Gather(group, size_bytes, lengths));
  std::vector<size_t> sizes;
  for (const RecordBytes& bytes : all_sizes) {
    uint64_t one = 0;
    std::memcpy(&one, bytes.data(), sizeof one);
    if (one > kRecordBytesMost) {   // its memory or a message went wrong, and we are none the worse
      const Error garbled{Code::kPeerLost, group.NameOf(static_cast<int>(sizes.size())) +
                                               " would send " + std::to_string(one) +
                                               " bytes at once, which none of our records has"};
      group.Abort(garbled);
      return garbled;
    }
    sizes.push_back(one);
  }
  return Gather(group, mine, sizes);
}

Result<std::vector<std::string>> GatherTexts(EpochGroup& group, std::string_view mine) {
  KEEL_TRY_ASSIGN(const auto all, GatherRecords(group, RecordOf(mine)));
  std::vector<std::string> texts;
  for (const RecordBytes& bytes : all) texts.push_back(TextOf(bytes));
  return texts;
}

Result<std::vector<bool>> GatherFlags(EpochGroup& group, bool mine) {
  const std::vector<size_t> lengths(static_cast<size_t>(group.size()), 1);
  KEEL_TRY_ASSIGN(const auto all, Gather(group, {std::byte{mine}}, lengths));
  std::vector<bool> flags;
  for (const RecordBytes& bytes : all) flags.push_back(bytes[0] != std::byte{0});
  return flags;
}

Result<std::vector<Digest>> GatherDigests(EpochGroup& group, const Digest& mine) {
  const std::vector<size_t> lengths(static_cast<size_t>(group.size()), mine.bytes.size());
  KEEL_TRY_ASSIGN(const auto all,
                  Gather(group, {mine.bytes.begin(), mine.bytes.end()}, lengths));
  std::vector<Digest> digests(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::copy(all[rank].begin(), all[rank].end(), digests[rank].bytes.begin());
  }
  return digests;
}

RecordBytes RecordOf(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace keel
