// HttpBase: the numeric address of an HTTP service, since looking up a name could take long.
// Promises   pure; an error names what is refused, and the form that is expected.
// Threads    any. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace keel {

struct HttpBase {
  std::string address = "169.254.169.254";   // of all clouds' metadata services
  uint16_t port = 80;
  std::string prefix = "";                   // before each path: "/proxy", or nothing
  bool operator==(const HttpBase&) const = default;
};
// "http://127.0.0.1:8080/proxy"; localhost is 127.0.0.1.
Result<HttpBase> ParseBaseUrl(const std::string& text);

}  // namespace keel
