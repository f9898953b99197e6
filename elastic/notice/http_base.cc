// The text before the first slash is the endpoint; the rest is put before each path.
#include "elastic/notice/http_base.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "store/host_port.h"

namespace keel {

Result<HttpBase> ParseBaseUrl(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  const std::string form =
      "http://ADDRESS[:PORT][/PATH], the address in numbers (names are not looked up) or localhost";
  std::string_view rest = Trim(text);
  if (!rest.starts_with(kScheme)) return MustBe(text, form);
  rest.remove_prefix(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  const bool is_plain = std::all_of(path.begin(), path.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '?' && c != '#';
  });
  const Result<HostPort> where = ParseEndpoint(std::string(rest.substr(0, slash)));
  if (slash == 0 || !where.ok() || !is_plain) return MustBe(text, form);
  const std::optional<std::string> address = NumericHost(where->host);
  if (!address || where->port == 0) return MustBe(text, form);
  return HttpBase{*address, where->port.value_or(80), std::string(path)};
}

}  // namespace keel
