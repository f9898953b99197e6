// ProfileRange: a scope with a name that shows in a GPU's profiler (NVTX, as drawn by Nsight
// Systems).
// Promises   on the CPU nothing is called; on CUDA a push and its pop, by the same thread.
// Does not   measure: trainer/step_times.h does.
#pragma once

#include <c10/core/Device.h>

namespace keel {

class ProfileRange {
 public:
  ProfileRange(c10::Device device, const char* name);
  ~ProfileRange();
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  const bool on_;
};

}  // namespace keel
