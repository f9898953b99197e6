// DataParallel: plain data-parallel training: every worker computes its own gradients, c10d's Reducer
// averages them over the group with all-reduce while backward goes on.
// Promises   after Backward() every worker holds the same gradients, so equal models stay equal.
// Does not   survive the loss of a worker, or give the same bits for another number of workers: sums are
//            made in the group's own order.
// Threads    one.
// Errors     what the group gives: kPeerLost, kTimeout, kForeign. After an error make another one.
#pragma once

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <memory>
#include <vector>

#include "base/result.h"
#include "trainer/process_group.h"

namespace keel {

class DataParallel {
 public:
  // Copies rank 0's parameters to all, so that a forgotten seed does no harm.
  static Result<std::unique_ptr<DataParallel>> Open(std::vector<at::Tensor> parameters, Group group);
  ~DataParallel();

  // In this order, once a step: the loss may be computed in between in any way.
  Status BeforeForward();
  Status Backward(const at::Tensor& loss);

 private:
  DataParallel(std::vector<at::Tensor> parameters, Group group);

  std::vector<at::Tensor> parameters_;
  Group group_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace keel
