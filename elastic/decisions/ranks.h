// Ranks: who gets which number in a new epoch (PROTOCOL.md section 7).
// Promises   ranks are 0 .. n-1, each given once; the same input, in any order, gives the same.
// Threads    pure functions.
#pragma once

#include <string>
#include <vector>

#include "elastic/protocol/records.h"

namespace keel {

// A seat that is to take part.
struct Candidate {
  int64_t slot = 0;
  int index = 0;
  std::string worker;     // incarnation; empty: the worker is yet to be started
  int former_rank = -1;   // in the epoch that is over; -1: it was not in it
};

// Survivors keep their rank where it is below the new size; the others take the free ones in order
// of (slot, index).
std::vector<EpochWorker> RanksInPlace(std::vector<Candidate> candidates);

// Ranks run through the hosts in their order, so that a host's are neighbours.
std::vector<EpochWorker> RanksForeign(const std::vector<EpochHost>& hosts,
                                      std::vector<Candidate> candidates);

}  // namespace keel
