// SumClaims: what two workers say the sum of each slice is, in a step whose sums were made twice;
// and who is wrong where they differ, once the step was made again.
// Promises   members that compare the same claims name the same ones. What only workers of one host
//            say proves nothing where another host says something else. Nobody is named for what
//            changed before it was added.
// Does not   add or send anything (trainer/exchange/sum_proof.h).
// Threads    plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"

namespace keel {

// Slice s counts as the member of rank s has added it. The one `turn` ranks before it has added it,
// too.
struct SumsMade {
  int turn = 0;
  std::vector<Digest> slices;
  std::vector<Digest> again;
  // Of what this worker added to its own slice, and to the other one.
  Digest inputs = {};
  Digest inputs_again = {};

  bool Differ() const { return slices != again; }
};

// Who adds the slices, too: of another host where there is one. `doubts`: so many times the step
// was made before; each time another worker adds a slice, first one who has nothing to do with the
// first dispute, as far as there are such ones.
int TurnOfSums(uint64_t turn, const std::vector<std::string>& hosts, int64_t doubts);

struct SumClaims {
  std::vector<std::string> members;   // by rank: "node7/0"
  std::vector<std::string> hosts;
  SumsMade made;
  std::vector<std::optional<Digest>> inputs;   // as each one tells
  std::vector<std::optional<Digest>> inputs_again;

  // The same for all members that saw the same.
  Digest DigestOfAll() const;
};

// Whose sums of one slice differ.
std::vector<std::string> DisputedBy(const SumClaims& claims);

struct SumVerdict {
  std::vector<std::string> wrong = {};   // members; empty: that cannot be told
  std::string reason = {};
};
// `before`: of the step as it was first made.
SumVerdict DecideSums(const SumClaims& before, const SumClaims& now);

}  // namespace keel
