// Both ports are read as store/host_port.h reads one.
#include "store/port_range.h"

#include <optional>

#include "base/text.h"
#include "store/host_port.h"

namespace keel {

Result<PortRange> ParsePortRange(const std::string& text) {
  const size_t dash = text.find('-');
  std::optional<uint16_t> first, last;
  if (dash != std::string::npos) {
    first = PortIn(std::string_view(text).substr(0, dash));
    last = PortIn(std::string_view(text).substr(dash + 1));
  }
  if (!first || !last || *first == 0) {
    return MustBe(text, "FIRST-LAST, as 29400-29499, with ports from 1 to 65535");
  }
  const int count = *last - *first + 1;
  if (count < kPortsLeast) {
    return MustBe(text, "FIRST-LAST with at least " + std::to_string(kPortsLeast) +
                            " ports for each launcher of a machine");
  }
  return PortRange{*first, *last};
}

std::string PortRangeText(const PortRange& ports) {
  return std::to_string(ports.first) + "-" + std::to_string(ports.last);
}

}  // namespace keel
