// HttpBase: where a service of HTTP is, in numbers, since a name could take long to be looked up.
// Promises   pure; what is refused is named, with the form that is expected.
// Threads    any. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace keel {

struct HttpBase {
  std::string address = "169.254.169.254";   // of the metadata services of all clouds
  uint16_t port = 80;
  std::string prefix = "";                   // before each path: "/proxy", or nothing
  bool operator==(const HttpBase&) const = default;
};
// "http://127.0.0.1:8080/proxy"; localhost is 127.0.0.1.
Result<HttpBase> ParseBaseUrl(const std::string& text);

}  // namespace keel
