// TreeSum: the sum over lanes of flat tensors, in the one order of trainer/numerics/lanes.h.
// Promises   a + b is always computed with the lower lanes' value as `a`, element by element, so
//            the bits do not depend on who adds. At most one tensor per digit of the binary
//            counter is held. Additions are made in place, in the tensors that were pushed.
// Does not   copy what it is given: a pushed tensor may be overwritten until Take() or Finish().
// Threads    one at a time.
// Errors     throws c10::Error as ATen does: call it inside CatchTorch().
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/numerics/fold.h"

namespace keel {

class TreeSum {
 public:
  using Entry = FoldStack<at::Tensor>::Entry;

  void Push(LaneNode node, at::Tensor value) { stack_.Push(node, std::move(value), Add); }

  // Writes the mean over `lanes` lanes, all of which were pushed, into `into`, which may be one of
  // the tensors pushed. The division is one multiplication by 1/lanes.
  void FinishMean(int lanes, at::Tensor& into) {
    const at::Tensor sum = stack_.Finish(Add);
    at::mul_out(into, sum, at::scalar_tensor(1.0 / lanes, at::kDouble));  // keeps sum's type
  }

  const std::vector<Entry>& entries() const { return stack_.entries(); }
  std::vector<Entry> Take() { return stack_.Take(); }
  void Clear() { stack_.Clear(); }

 private:
  static at::Tensor Add(at::Tensor left, const at::Tensor& right) { return left.add_(right); }

  FoldStack<at::Tensor> stack_;
};

}  // namespace keel
