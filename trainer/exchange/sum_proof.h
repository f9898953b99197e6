// SumProof: makes the sums of one step twice, by other workers each time, and keeps a digest of
// what came of each slice.
// Promises   what a reduction leaves is that of its second time, and the same as without a proof.
//            The first one is made of copies, and its result thrown away.
// Does not   compare anything (trainer/exchange/sum_claims.h).
// Threads    one at a time. All members make the same reductions, one after the other.
// Errors     those of the group, which is aborted then. Throws as ATen does: call it inside
//            CatchTorch().
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "trainer/exchange/flat_reduction.h"
#include "trainer/exchange/sum_claims.h"
#include "trainer/group/epoch_group.h"

namespace keel {

class SumProof {
 public:
  explicit SumProof(EpochGroup& group) : group_(group) {}

  // Of the step that begins. `turn`: who adds what the first time (SumsMade); nothing: sums are
  // made once.
  void BeginStep(const std::optional<int>& turn);
  bool is_on() const { return turn_.has_value(); }
  // As FlatReduction. Nobody reads its nodes any more when it returns.
  Status Reduce(const LaneShares& shares, const at::Tensor& into,
                std::vector<TreeSum::Entry> own, ReductionScratch& scratch);
  // Of all reductions of the step; nothing where they were made once. Ends the proof.
  std::optional<SumsMade> Take();

 private:
  Status ReduceCopies(const LaneShares& shares, const at::Tensor& into,
                      const std::vector<TreeSum::Entry>& own, ReductionScratch& scratch);
  void Note(const at::Tensor& sums, std::vector<Digester>& digesters) const;

  EpochGroup& group_;
  std::optional<int> turn_;
  std::vector<Digester> slices_;   // by the rank that adds them without a turn
  std::vector<Digester> again_;
  Digester inputs_;                // of this worker's own slice
  Digester inputs_again_;          // of the one that it adds, too
  // Those of an own host may read them until they have told that they did.
  std::vector<at::Tensor> copies_;
};

}  // namespace keel
