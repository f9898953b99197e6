// HealthGpuProduct: reads what gpu_product.py says that GPUs have computed, and concludes which of
// them are unfit.
// Promises   pure, whatever bytes come. Only a wrong product, an error of CUDA's that hardware
//            makes, and a GPU that does not finish, are faults: a Python or a PyTorch that is not
//            there, or does not work, is not. What all of several GPUs get wrong alike is told, and
//            no fault of theirs.
// Does not   run it (tools/keel/health_look.h).
// Threads    pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/keel/health_findings.h"

namespace keel {

struct GpuProductRun {
  std::string program;  // the Python, as the user names it
  std::string trouble;  // what it did instead of ending well: "exited with 1"; empty: it did
  std::string out;
  std::string err;
};
std::vector<HealthFinding> GpuProductFindings(const GpuProductRun& run);

// No product was computed on a GPU, and why.
HealthFinding NoGpuProduct(const std::string& why, const std::string& cure = "");

// Whether CUDA's words are of an error that a program as ours does not make.
bool IsOfHardware(std::string_view words);

}  // namespace keel
