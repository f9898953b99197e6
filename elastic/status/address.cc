// A port alone means the loopback: opening the page to a network must be explicit.
#include "elastic/status/address.h"

#include "base/text.h"
#include "store/host_port.h"

namespace keel {

Result<StatusAddress> ParseStatusAddress(const std::string& text) {
  const std::string trimmed(Trim(text));
  const bool is_port = !trimmed.empty() && PortIn(trimmed).has_value();
  const std::string loopback = "127.0.0.1:";
  const Result<HostPort> where =
      ParseEndpoint(is_port ? loopback + trimmed
                    : trimmed.starts_with(':') ? loopback + trimmed.substr(1)
                                               : trimmed);
  const std::string form = "ADDRESS:PORT with an address in numbers (127.0.0.1:8090, "
                           "0.0.0.0:8090, [::]:8090), or a port of this machine alone (8090)";
  if (!where.ok() || !where->port) return MustBe(text, form);
  const std::optional<std::string> address = NumericHost(where->host);
  if (!address) return MustBe(text, form);
  return StatusAddress{*address, *where->port};
}

}  // namespace keel
