// Encodes, gathers, decodes, and checks that all voted on the same step.
#include "trainer/loop/vote.h"

#include <string>

#include "trainer/exchange/gather.h"
#include "trainer/group/epoch_group.h"
#include "trainer/numerics/lanes.h"

namespace keel {
namespace {

Result<std::vector<VoteRecord>> DecodeAll(const EpochGroup& group, const VoteRecord& own, int lanes,
                                          const std::vector<RecordBytes>& all) {
  std::vector<VoteRecord> records;
  for (int rank = 0; rank < group.size(); ++rank) {
    const int count = LanesOf(rank, group.size(), lanes).count();
    Result<VoteRecord> record = DecodeVote(all[static_cast<size_t>(rank)], count);
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

Result<std::vector<VoteRecord>> Vote(EpochGroup& group, const VoteRecord& record, int lanes) {
  std::vector<size_t> sizes;
  for (int rank = 0; rank < group.size(); ++rank) {
    sizes.push_back(VoteRecordBytes(LanesOf(rank, group.size(), lanes).count()));
  }
  KEEL_TRY_ASSIGN(const std::vector<RecordBytes> all, Gather(group, EncodeVote(record), sizes));
  Result<std::vector<VoteRecord>> records = DecodeAll(group, record, lanes, all);
  if (!records.ok()) group.Abort(records.error());
  return records;
}

}  // namespace keel
