// Gather: brings a small record of every member to every member.
// Promises   all records, by rank; a member that got them knows that every member has called it.
// Does not   tell what the others got: one may succeed while another one fails.
// Threads    one at a time per group; all members call it equally often.
// Errors     those of the group, which is aborted then.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"

namespace keel {

class EpochGroup;

using RecordBytes = std::vector<std::byte>;

// `sizes`: the length of each member's record, by rank; all members know them.
Result<std::vector<RecordBytes>> Gather(EpochGroup& group, const RecordBytes& mine,
                                        const std::vector<size_t>& sizes);

// The same for records of any length, which the others need not know before.
Result<std::vector<RecordBytes>> GatherRecords(EpochGroup& group, const RecordBytes& mine);
Result<std::vector<std::string>> GatherTexts(EpochGroup& group, std::string_view mine);
Result<std::vector<bool>> GatherFlags(EpochGroup& group, bool mine);
Result<std::vector<Digest>> GatherDigests(EpochGroup& group, const Digest& mine);

RecordBytes RecordOf(std::string_view text);
std::string TextOf(std::span<const std::byte> bytes);

}  // namespace keel
