// SimStranger: somebody without the job's token who can write to its boards, and does.
// Promises   what it writes is nothing that a member has meant to say there and then: garbage, a
//            value that was cut, changed, put back or moved from another key.
// Does not   remove keys, or change the numbers that are added to: that stays open.
// Threads    one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/memory_store.h"
#include "store/seal/seal.h"

namespace keel {

// Of the simulated job's token.
const Seal& SimSeal();

class SimStranger {
 public:
  explicit SimStranger(Random random) : random_(std::move(random)) {}

  // What it did, in words; empty: there is nothing to spoil yet. `slots`: of members, at most.
  std::string Strike(MemoryBoard& board, const std::string& job, int slots);

 private:
  std::string Forged(const std::string& key, const std::string& text);

  Random random_;
  std::map<std::string, std::vector<std::string>> seen_;   // by key, the oldest first
};

}  // namespace keel
