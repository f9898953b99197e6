// ReadKernelLog(): reads the kernel's log, or a file that was kept of one, line by line.
// Promises   ends with the log, as it is then, or at the deadline; holds one line at a time, of
//            which it hands on the first 4 KiB. Of /dev/kmsg, what was there before somebody
//            cleared it (dmesg --clear) is left out, as dmesg leaves it out.
// Does not   wait for what the kernel may log later; understand a line (tools/keel/health_xid.h).
// Threads    any.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace keel {

struct KernelLogRead {
  int error = 0;         // errno of what failed; 0: nothing
  bool is_whole = true;  // false: the deadline came before the end
};

KernelLogRead ReadKernelLog(const std::string& path, TimePoint deadline,
                            const std::function<void(std::string_view)>& take);

}  // namespace keel
