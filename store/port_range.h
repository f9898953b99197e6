// PortRange: the ports among which we choose, where a network lets only some of them through.
// Promises   pure; an error names what is refused, and the form that is expected.
// Threads    a plain value. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace keel {

struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;   // 0: the system picks any free port
  bool is_any() const { return last == 0; }
  bool Holds(const PortRange& other) const {
    return first <= other.first && other.last <= last;
  }
  bool operator==(const PortRange&) const = default;
};

// So many are open at the same time in a launcher that keeps the job's board, and some for those
// that other programs have taken.
inline constexpr int kPortsLeast = 8;

// "29400-29499", both included.
Result<PortRange> ParsePortRange(const std::string& text);

// "29400-29499"
std::string PortRangeText(const PortRange& ports);

}  // namespace keel
