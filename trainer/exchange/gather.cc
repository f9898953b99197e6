// Plays the plan of trainer/exchange/gather_plan.h over the group.
#include "trainer/exchange/gather.h"

#include <cstring>
#include <string>
#include <utility>

#include "store/torch_guard.h"
#include "trainer/exchange/gather_plan.h"
#include "trainer/group/epoch_group.h"

namespace keel {
namespace {

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

// A message leaves only once its receiver has said that it waits for it. All say so for all rounds
// while they wait in the first one, so that the later rounds need not wait for it.
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
      Guard("gathering records", [&] { return Play(group, sizes, records); });
  if (!played.ok()) {
    group.Abort(played.error());
    return played.error();
  }
  if (!played->ok()) return played->error();
  return records;
}

}  // namespace keel
