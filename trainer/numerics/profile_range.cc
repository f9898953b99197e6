// Uses the table of functions that LibTorch's CUDA part fills in, so no CUDA header is needed.
#include "trainer/numerics/profile_range.h"

#include <torch/csrc/profiler/stubs/base.h>

namespace keel {

using torch::profiler::impl::cudaStubs;

ProfileRange::ProfileRange(c10::Device device, const char* name)
    : on_(device.is_cuda() && cudaStubs()->enabled()) {
  if (on_) cudaStubs()->rangePush(name);
}

ProfileRange::~ProfileRange() {
  if (on_) cudaStubs()->rangePop();
}

}  // namespace keel
