// What a request to the status page is given: decided before anything is rendered.
// Promises   pure. Only GET is served. Where there is a token, only to who knows it; where there is
//            none, only to who asked for this machine by a name of the loopback: a page of the
//            web that has its own name resolve to 127.0.0.1 reads nothing here.
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
  std::string_view host;            // of the header; empty: there was none
  std::string_view authorization;   // "Bearer ..."
};

enum class StatusAnswer { kPage, kApi, kMetrics, kNotFound, kNotGet, kNoToken, kOtherHost };

// An empty token: none is needed.
StatusAnswer JudgeRequest(const StatusRequest& request, std::string_view token);

inline constexpr size_t kStatusTokenBytesMin = 16;
// Long enough, and of characters that mean themselves in a URL.
Status CheckStatusToken(std::string_view token);

}  // namespace keel
