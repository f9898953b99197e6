// DataParallel: plain data-parallel training. Every worker computes its own gradients, and c10d's
// Reducer averages them over the group with all-reduce while backward goes on.
// Promises   after Backward() every worker holds the same gradients, so equal models stay equal.
// Does not   survive the loss of a worker, or give the same bits for another number of workers:
//            sums are made in the group's own order.
// Threads    one.
// Errors     those of the group: kPeerLost, kTimeout, kForeign. After an error make another
//            object.
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
  static Result<std::unique_ptr<DataParallel>> Open(std::vector<at::Tensor> parameters,
                                                    Group group);
  ~DataParallel();

  // Call both in this order, once per step; compute the loss in between in any way.
  Status BeforeForward();
  Status Backward(const at::Tensor& loss);

 private:
  DataParallel(std::vector<at::Tensor> parameters, Group group);

  std::vector<at::Tensor> parameters_;
  Group group_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace keel
