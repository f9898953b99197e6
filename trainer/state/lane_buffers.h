// LaneBuffers: a model's buffers (BatchNorm's running statistics and counters) when a step is
// several lanes, computed by any workers.
// Each lane starts from the step's values. What the lanes made of floating buffers is averaged in
// the order of trainer/numerics/lanes.h; a counter advances once per step by what one lane adds, or
// by the whole number next to the mean where lanes add unlike ones.
// Promises   lane results are one flat tensor, which is folded and exchanged like a gradient.
//            After EndStep() with the mean, buffers are the same on every worker, including those
//            without lanes. A buffer that no lane changed (a mask, a table of angles) keeps its
//            very bits. A step that is dropped leaves no trace after Restore().
// Does not   add or exchange anything itself. Booleans and complex buffers must not change: they
//            have no mean, and LaneResult() throws a c10::Error that says so.
// Threads    one.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace keel {

class LaneBuffers {
 public:
  // Live tensors. With none of them all methods are cheap, and flat tensors empty.
  explicit LaneBuffers(std::vector<at::Tensor> buffers);

  bool empty() const { return buffers_.empty(); }
  // Elements of the flat tensor, and its type: float, or double where some buffer is that wide.
  // Behind the buffers' own elements there is one for each buffer: whether the lane changed it.
  int64_t elements() const { return elements_; }
  at::ScalarType type() const { return type_; }

  // Remembers the step's values; to be called after a transfer or restore, too.
  void BeginStep();
  // Brings back the step's values before each lane's forward.
  void Restore();
  // To be called after a lane's forward. Returns a new tensor: floating buffers as they are,
  // integers as what was added; then for each buffer 1 if the lane changed it, else 0.
  at::Tensor LaneResult() const;
  // Makes the mean of all V lanes' results the step's outcome.
  void EndStep(const at::Tensor& mean);

 private:
  std::vector<at::Tensor> buffers_;   // all that have a mean
  std::vector<at::Tensor> before_;
  std::vector<at::Tensor> flags_;     // booleans
  std::vector<at::Tensor> flags_before_;
  int64_t elements_ = 0;
  at::ScalarType type_ = at::kFloat;
};

}  // namespace keel
