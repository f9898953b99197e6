// Decides how to answer a request to the status page, before anything is rendered.
// Promises   pure. Only GET is served. With a token, only those who know it are served; without
//            one, only requests that name this machine by a loopback name: a page of the web whose
//            own name resolves to 127.0.0.1 can read nothing here.
// Does not   know sockets (elastic/status/server.h).
// Threads    pure functions. Errors: kInvalid.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

struct StatusRequest {
  std::string_view method;
  std::string_view target;          // "/api?token=..."
  std::string_view host;            // the header's; empty: there was none
  std::string_view authorization;   // "Bearer ..."
};

enum class StatusAnswer { kPage, kApi, kMetrics, kNotFound, kNotGet, kNoToken, kOtherHost };

// An empty token: none is needed.
StatusAnswer JudgeRequest(const StatusRequest& request, std::string_view token);

inline constexpr size_t kStatusTokenBytesMin = 16;
// It must be long enough, with characters that need no escape in a URL.
Status CheckStatusToken(std::string_view token);

}  // namespace keel
