// Checks the method, then the permission, then the path.
#include "elastic/status/request.h"

#include <algorithm>
#include <string>

namespace keel {
namespace {

constexpr std::string_view kScheme = "bearer ";

// Takes the same time however much of it is right.
bool IsSame(std::string_view told, std::string_view token) {
  unsigned differing = told.size() == token.size() ? 0 : 1;
  for (size_t i = 0; i < told.size(); ++i) {
    differing |= static_cast<unsigned char>(told[i] ^ token[i % token.size()]);
  }
  return differing == 0;
}

std::string_view TokenOfQuery(std::string_view target) {
  const size_t mark = target.find('?');
  std::string_view query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  constexpr std::string_view kName = "token=";
  for (;;) {
    const size_t end = query.find('&');
    const std::string_view part = query.substr(0, end);
    if (part.starts_with(kName)) return part.substr(kName.size());
    if (end == std::string_view::npos) return "";
    query.remove_prefix(end + 1);
  }
}

// The scheme's case does not matter (RFC 9110, 11.1), the token's does.
bool IsBearer(std::string_view authorization) {
  return std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                    authorization.begin() + std::min(kScheme.size(), authorization.size()),
                    [](char expected, char told) {
                      return expected == (told >= 'A' && told <= 'Z' ? told - 'A' + 'a' : told);
                    });
}

bool KnowsToken(const StatusRequest& request, std::string_view token) {
  const bool has_header = IsBearer(request.authorization);
  return (has_header && IsSame(request.authorization.substr(kScheme.size()), token)) ||
         IsSame(TokenOfQuery(request.target), token);
}

// "localhost:8090", "127.0.0.1", "[::1]:8090"
bool IsLoopbackName(std::string_view host) {
  const size_t bracket = host.find(']');
  const size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view name = host.substr(0, colon);
  if (name == "localhost" || name == "[::1]") return true;
  return name.starts_with("127.") && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '.' || (c >= '0' && c <= '9');
  });
}

}  // namespace

StatusAnswer JudgeRequest(const StatusRequest& request, std::string_view token) {
  if (request.method != "GET") return StatusAnswer::kNotGet;
  if (!token.empty() && !KnowsToken(request, token)) return StatusAnswer::kNoToken;
  const bool may_be_anybody = token.empty() && !request.host.empty();
  if (may_be_anybody && !IsLoopbackName(request.host)) return StatusAnswer::kOtherHost;
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (path == "/") return StatusAnswer::kPage;
  if (path == "/api") return StatusAnswer::kApi;
  if (path == "/metrics") return StatusAnswer::kMetrics;
  return StatusAnswer::kNotFound;
}

Status CheckStatusToken(std::string_view token) {
  const bool is_plain = std::all_of(token.begin(), token.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '_' || c == '.' || c == '~';
  });
  if (is_plain && token.size() >= kStatusTokenBytesMin) return Ok();
  return Error{Code::kInvalid, "it must have " + std::to_string(kStatusTokenBytesMin) +
                                   " characters or more, of letters, digits and -._~ only"};
}

}  // namespace keel
