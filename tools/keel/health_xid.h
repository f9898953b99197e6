// HealthXid: finds the errors of GPUs (Xid) in the kernel's log, and concludes which GPUs are
// unfit.
// Promises   pure, whatever bytes come, in memory that does not grow with the log. Only what stands
//            behind the last start of the machine counts.
// Does not   open the log (tools/keel/kernel_log.h); say what a number means
//            (tools/keel/xid_table.h).
// Threads    one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tools/keel/health_findings.h"

namespace keel {

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
struct XidLine {
  std::string bus;    // "0000:3b:00"
  int number = 0;
  std::string words;  // what stands behind the number
};
// None: the line tells no Xid.
std::optional<XidLine> ParseXidLine(std::string_view line);

// One kind of error of one GPU.
struct XidSeen {
  uint64_t count = 0;
  uint64_t fatal = 0;     // of these, whose words have "Fatal"
  std::string words;      // of the last one
  std::optional<Duration> last_at;  // since the machine started, where the log says it
};

class XidReader {
 public:
  // One line, without its end: a record of /dev/kmsg, or what dmesg or a system's log makes of it.
  void Add(std::string_view line);

  // By bus and number.
  const std::map<std::pair<std::string, int>, XidSeen>& seen() const { return seen_; }
  // Further ones, of which nothing is kept.
  uint64_t left_out() const { return left_out_; }
  // Lines that speak of an error, and are none that the kernel is known to write.
  uint64_t not_understood() const { return not_understood_; }
  // Whether the start of the machine is in the log.
  bool has_start() const { return has_start_; }
  // How long after that the first record was made, where it says so.
  const std::optional<Duration>& first_at() const { return first_at_; }

 private:
  std::map<std::pair<std::string, int>, XidSeen> seen_;
  uint64_t left_out_ = 0;
  uint64_t not_understood_ = 0;
  bool has_lines_ = false;
  bool has_start_ = false;
  std::optional<Duration> first_at_;
};

// `log`: as a sentence names it, "the kernel's log".
std::vector<HealthFinding> XidFindings(const XidReader& reader, const std::string& log);

// The kernel's own log, /dev/kmsg, could not be read: `error` is an errno.
HealthFinding SilentKernelLog(int error);

}  // namespace keel
