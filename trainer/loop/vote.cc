// Encodes, gathers, decodes, and checks that all voted on the same step.
#include "trainer/loop/vote.h"

#include <string>

#include "trainer/exchange/gather.h"
#include "trainer/group/epoch_group.h"

namespace keel {
namespace {

// How long to wait for the others at the epoch's end, when all know already how it ends.
constexpr std::chrono::seconds kPartLimit(1);

Result<std::vector<VoteRecord>> DecodeAll(const EpochGroup& group, const VoteRecord& own,
                                          const Placement& placement,
                                          const std::vector<RecordBytes>& all) {
  std::vector<VoteRecord> records;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto index = static_cast<size_t>(rank);
    Result<VoteRecord> record = DecodeVote(all[index], placement[index].count());
    if (!record.ok()) return record.error().Doing("the vote of " + group.NameOf(rank));
    if (record->step != own.step) {
      return Error{Code::kStaleEpoch, group.NameOf(rank) + " votes on step " +
                                          std::to_string(record->step) + ", we (rank " +
                                          std::to_string(group.rank()) + ") on step " +
                                          std::to_string(own.step)};
    }
    records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace

Result<std::vector<VoteRecord>> Vote(EpochGroup& group, const VoteRecord& record,
                                     const Placement& placement) {
  std::vector<size_t> sizes;
  for (const LaneRange& range : placement) sizes.push_back(VoteRecordBytes(range.count()));
  KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, Gather(group, EncodeVote(record), sizes));
  Result<std::vector<VoteRecord>> records = DecodeAll(group, record, placement, all);
  if (!records.ok()) group.Abort(records.error());
  return records;
}

void PartInOrder(EpochGroup& group) {
  group.LimitTo(kPartLimit);
  const std::vector<size_t> sizes(static_cast<size_t>(group.size()), 1);
  if (Gather(group, RecordBytes(1), sizes).ok()) group.Parted();
}

}  // namespace keel
