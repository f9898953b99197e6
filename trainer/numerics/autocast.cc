// Sets LibTorch's thread-local autocast switches, and puts them back.
#include "trainer/numerics/autocast.h"

#include <ATen/autocast_mode.h>

namespace keel {

AutocastScope::AutocastScope(at::DeviceType device, Precision precision)
    : device_(device), on_(precision != Precision::kFp32) {
  if (!on_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  was_type_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, precision == Precision::kBf16 ? at::kBFloat16
                                                                          : at::kHalf);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!on_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, was_type_);
}

}  // namespace keel
