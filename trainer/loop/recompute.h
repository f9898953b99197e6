// Recompute: computes the lane of an evidence file once more, on this machine, and tells whose
// results it comes to.
// Does not   train: of the state only the model and the numbers are those of the evidence
//            afterwards.
// Threads    the training thread.
// Errors     those of ReadEvidence(); kInvalid: the program is not the job's, or fails.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "trainer/state/train_state.h"

namespace keel {

struct Recomputed {
  struct Claim {
    std::string member;
    std::string role;
    bool is_second = false;
    std::string differs;       // in what; empty: it is the same result
  };
  uint64_t step = 0;
  int lane = 0;
  std::string verdict;         // of the job, then
  std::vector<Claim> claims;
};

// `fingerprint`: of this program and machine.
Result<Recomputed> Recompute(TrainState& state, const std::string& fingerprint, Files& files,
                             const std::string& path);

Json RecomputedJson(const Recomputed& recomputed);

}  // namespace keel
