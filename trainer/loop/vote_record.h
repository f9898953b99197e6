// VoteRecord: what a worker says in the vote that decides a step, and how it is written.
// Promises   what is encoded decodes to the same record, losses bit for bit. A record's length
//            depends on its number of lanes only.
// Errors     kCorrupt: the bytes are no record of that many lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "trainer/save/save_schedule.h"

namespace keel {

struct VoteRecord {
  int64_t step = 0;
  bool stop = false;          // wants the job to stop
  bool save = false;          // wants a checkpoint
  SaveState saving = SaveState::kIdle;  // how far its save under way is
  bool join_waiting = false;  // somebody waits to join
  bool leaving = false;       // was told to stop, which it may say later
  std::optional<int64_t> deadline_ms = {};  // how long it has left
  std::optional<int64_t> save_ns = {};      // how long it takes to save its share, if known
  int64_t compute_ns = 0;              // forward and backward of its lanes
  int64_t exchange_ns = 0;             // what it waited for the others beyond that
  int64_t sent_ns = 0;                 // what it sent of the state to who catches up took so long
  std::optional<Digest> parameters = {};    // sent only every so many steps
  // Of parts of its state before the step: one after a new epoch began, and one in a step that is
  // rechecked.
  std::optional<Digest> piece = {};
  // In a step that is rechecked: of its own lane that another worker computes, too; of that of
  // another one which it does; of the sums of all gradients; of all slices of sums as they came to
  // it, and as they came the other time; and of what it added in these (SumsMade).
  std::optional<Digest> own_lane = {};
  std::optional<Digest> other_lane = {};
  std::optional<Digest> sums = {};
  std::optional<Digest> slices = {};
  std::optional<Digest> slices_again = {};
  std::optional<Digest> inputs = {};
  std::optional<Digest> inputs_again = {};
  std::vector<double> losses = {};          // one for each of its own lanes

  // Compares bits, so that a NaN equals itself.
  bool operator==(const VoteRecord& other) const;
};

size_t VoteRecordBytes(int lanes);
std::vector<std::byte> EncodeVote(const VoteRecord& record);
Result<VoteRecord> DecodeVote(std::span<const std::byte> bytes, int lanes);

}  // namespace keel
