// ClaimRecord: what is in a claim and in a beat, as values and as bytes.
// Promises   Parse...(...Text(x)) gives x back; what was cut, flipped or mixed is refused, by a
//            digest of all that precedes it.
// Does not   compare a record with the place it was found in (dir_lease.h).
// Threads    plain values. Errors: kCorrupt, kInvalid (of another version).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

struct ClaimRecord {
  std::string job;
  std::string run;
  int64_t term = 0;
  std::string claimant;   // an id of the process that claimed, so that it knows its own claim
  std::string text;
  bool operator==(const ClaimRecord&) const = default;
};

struct BeatRecord {
  std::string claimant;
  int64_t count = 0;       // of the beats so far
  bool released = false;
  bool operator==(const BeatRecord&) const = default;
};

std::string ClaimText(const ClaimRecord& record);
std::string BeatText(const BeatRecord& record);
Result<ClaimRecord> ParseClaim(std::string_view text);
// That of a term, as it was found at `path`: whatever is wrong with it is kCorrupt, in words.
Result<ClaimRecord> ParseClaimAt(const std::string& path, int64_t term, std::string_view text);
Result<BeatRecord> ParseBeat(std::string_view text);

}  // namespace keel
