// A fixed head of little-endian numbers, then the losses.
#include "trainer/loop/vote_record.h"

#include <bit>
#include <cstring>
#include <iterator>
#include <string>

namespace keel {
namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie");

enum Flags : uint64_t {
  kStop = 1,
  kSave = 2,
  kJoinWaiting = 4,
  kLeaving = 8,
  kHasDeadline = 16,
  kHasDigest = 32,
  kHasSaveTime = 64,
  kHasPiece = 128,
  // The state of the save lies above these, and below the rest.
  kHasOwnLane = 1 << 11,
  kHasOtherLane = 1 << 12,
  kHasSums = 1 << 13,
  kHasSlices = 1 << 14,
  kHasSlicesAgain = 1 << 15,
  kHasInputs = 1 << 16,
  kHasInputsAgain = 1 << 17,
};
constexpr int kSavingShift = 8;
constexpr uint64_t kSavingMask = uint64_t{7} << kSavingShift;

// In the order in which they lie.
struct DigestField {
  uint64_t flag;
  std::optional<Digest> VoteRecord::*field;
};
constexpr DigestField kDigests[] = {
    {kHasDigest, &VoteRecord::parameters},   {kHasPiece, &VoteRecord::piece},
    {kHasOwnLane, &VoteRecord::own_lane},    {kHasOtherLane, &VoteRecord::other_lane},
    {kHasSums, &VoteRecord::sums},           {kHasSlices, &VoteRecord::slices},
    {kHasSlicesAgain, &VoteRecord::slices_again}, {kHasInputs, &VoteRecord::inputs},
    {kHasInputsAgain, &VoteRecord::inputs_again},
};

constexpr uint64_t AllFlags() {
  uint64_t flags = kStop | kSave | kJoinWaiting | kLeaving | kHasDeadline | kHasSaveTime;
  for (const DigestField& one : kDigests) flags |= one.flag;
  return flags | kSavingMask;
}

struct Head {
  int64_t step = 0;
  uint64_t flags = 0;
  int64_t deadline_ms = 0;
  int64_t save_ns = 0;
  int64_t compute_ns = 0;
  int64_t exchange_ns = 0;
  int64_t sent_ns = 0;
  std::array<std::array<std::byte, 16>, std::size(kDigests)> digests{};
};
static_assert(sizeof(Head) == 200, "no padding that would be sent");

uint64_t FlagsOf(const VoteRecord& record) {
  uint64_t flags = 0;
  if (record.stop) flags |= kStop;
  if (record.save) flags |= kSave;
  if (record.join_waiting) flags |= kJoinWaiting;
  if (record.leaving) flags |= kLeaving;
  if (record.deadline_ms) flags |= kHasDeadline;
  if (record.save_ns) flags |= kHasSaveTime;
  for (const DigestField& one : kDigests) {
    if (record.*one.field) flags |= one.flag;
  }
  return flags | static_cast<uint64_t>(record.saving) << kSavingShift;
}

}  // namespace

bool VoteRecord::operator==(const VoteRecord& other) const {
  return EncodeVote(*this) == EncodeVote(other);
}

size_t VoteRecordBytes(int lanes) {
  return sizeof(Head) + static_cast<size_t>(lanes) * sizeof(double);
}

std::vector<std::byte> EncodeVote(const VoteRecord& record) {
  Head head;
  head.step = record.step;
  head.flags = FlagsOf(record);
  head.deadline_ms = record.deadline_ms.value_or(0);
  head.save_ns = record.save_ns.value_or(0);
  head.compute_ns = record.compute_ns;
  head.exchange_ns = record.exchange_ns;
  head.sent_ns = record.sent_ns;
  for (size_t i = 0; i < std::size(kDigests); ++i) {
    const std::optional<Digest>& digest = record.*kDigests[i].field;
    if (digest) head.digests[i] = digest->bytes;
  }
  std::vector<std::byte> bytes(VoteRecordBytes(static_cast<int>(record.losses.size())));
  std::memcpy(bytes.data(), &head, sizeof(Head));
  if (!record.losses.empty()) {
    std::memcpy(bytes.data() + sizeof(Head), record.losses.data(), bytes.size() - sizeof(Head));
  }
  return bytes;
}

Result<VoteRecord> DecodeVote(std::span<const std::byte> bytes, int lanes) {
  if (bytes.size() != VoteRecordBytes(lanes)) {
    return Error{Code::kCorrupt, "a vote of " + std::to_string(bytes.size()) + " bytes, not " +
                                     std::to_string(VoteRecordBytes(lanes)) + " for " +
                                     std::to_string(lanes) + " lanes"};
  }
  Head head;
  std::memcpy(&head, bytes.data(), sizeof(Head));
  const uint64_t saving = (head.flags & kSavingMask) >> kSavingShift;
  if ((head.flags & ~AllFlags()) != 0 || saving >= kSaveStates) {
    return Error{Code::kCorrupt, "a vote with unknown flags " + std::to_string(head.flags) +
                                     "; do all workers run the same version?"};
  }
  VoteRecord record;
  record.step = head.step;
  record.stop = (head.flags & kStop) != 0;
  record.save = (head.flags & kSave) != 0;
  record.saving = static_cast<SaveState>(saving);
  record.join_waiting = (head.flags & kJoinWaiting) != 0;
  record.leaving = (head.flags & kLeaving) != 0;
  if ((head.flags & kHasDeadline) != 0) record.deadline_ms = head.deadline_ms;
  if ((head.flags & kHasSaveTime) != 0) record.save_ns = head.save_ns;
  record.compute_ns = head.compute_ns;
  record.exchange_ns = head.exchange_ns;
  record.sent_ns = head.sent_ns;
  for (size_t i = 0; i < std::size(kDigests); ++i) {
    if ((head.flags & kDigests[i].flag) != 0) record.*kDigests[i].field = Digest{head.digests[i]};
  }
  record.losses.resize(static_cast<size_t>(lanes));
  if (lanes > 0) {
    std::memcpy(record.losses.data(), bytes.data() + sizeof(Head), bytes.size() - sizeof(Head));
  }
  return record;
}

}  // namespace keel
