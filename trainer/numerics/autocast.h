// AutocastScope: mixed precision for what is computed while it lives.
// Promises   with kFp32 nothing changes. Otherwise LibTorch's autocast is on for the device; at
//            the end its former setting is put back, and the cache of converted weights dropped.
// Does not   cover backward, which follows the types of forward by itself: end the scope before
//            it.
// Threads    it belongs to the thread that made it, like the setting.
#pragma once

#include <ATen/ATen.h>

#include "trainer/precision.h"

namespace keel {

class AutocastScope {
 public:
  AutocastScope(at::DeviceType device, Precision precision);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const at::DeviceType device_;
  const bool on_;
  bool was_enabled_ = false;
  at::ScalarType was_type_ = at::kFloat;
};

}  // namespace keel
