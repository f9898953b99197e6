// HealthCpu: computes the known product on each of some processors, all at the same time.
// Promises   each thread stays on its processor; every processor computes at least once in each
//            way; the bits of one wrong product are kept for whoever wants to look at them.
// Does not   say what that means (tools/keel/health_findings.h); use more than the given
//            processors; find a fault that does not show in that time.
// Threads    one for each processor, which have ended when it returns.
// Errors     none: what could not be done on a processor is told in its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tools/keel/health_product.h"

namespace keel {

// What one processor came to.
struct ProcessorWork {
  int processor = 0;
  std::string trouble = {};   // why it could not be tried; empty: it was
  uint64_t products = 0;
  uint64_t wrong = 0;         // of these, whose digest was not the known one
  // Of the first wrong one:
  std::string kernel = {};
  std::optional<SquareMatrix> product = {};
};

// The numbers of those that this process may run on, in order; empty if nobody can tell.
std::vector<int> OwnProcessors();

// `duration`: how long each one computes, about; zero: once in each way.
std::vector<ProcessorWork> ComputeOnEach(const std::vector<int>& processors,
                                         const std::vector<ProductKernel>& kernels,
                                         Duration duration, Clock& clock);

}  // namespace keel
