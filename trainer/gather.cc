// Plays the plan of trainer/gather_plan.h over the group.
#include "trainer/gather.h"

#include <cstring>
#include <string>
#include <utility>

#include "store/torch_guard.h"
#include "trainer/epoch_group.h"
#include "trainer/gather_plan.h"

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

Status PlayRound(EpochGroup& group, const GatherRound& round, Tag tag,
                 const std::vector<size_t>& sizes, std::vector<RecordBytes>& records) {
  EpochGroup::Batch batch(group);
  const at::Tensor out = Joined(round.sends, records, sizes);
  const at::Tensor in = RoomFor(round.receives, sizes);
  KEEL_TRY(batch.Receive(in, round.from, tag));
  KEEL_TRY(batch.Send(out, round.to, tag));
  KEEL_TRY(batch.Wait());
  Split(in, round.receives, sizes, records);
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
  const Tag tag = group.NextTag(TagKind::kGather);
  for (const GatherRound& round : PlanGather(group.rank(), group.size())) {
    const Result<Status> played = Guard("gathering records", [&] {
      return PlayRound(group, round, tag, sizes, records);
    });
    if (!played.ok()) {
      group.Abort(played.error());
      return played.error();
    }
    if (!played->ok()) return played->error();
  }
  return records;
}

}  // namespace keel
