// AWS's signature, version 4, in the header Authorization, or Google's, which has other names.
// Promises   what AWS's test vectors say; a session token is signed with the rest.
// Does not   send anything, or hash a body: the caller says what stands for it. Prints no secret.
// Threads    any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/s3/dialect.h"

namespace keel {

// Names and values as they are, not encoded.
using HttpPairs = std::vector<std::pair<std::string, std::string>>;

struct S3Credentials {
  std::string key_id;
  std::string secret;
  std::string token = {};       // of a session; empty: none
  int64_t ends_at_ns = 0;       // by the wall clock; 0: never
  bool is_bearer = false;       // `token` is all there is, and is shown instead of a signature
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

struct SigningScope {
  std::string region;
  std::string service = "s3";
  int64_t wall_ns = 0;          // when, by the server's clock
  const S3Dialect* dialect = &kAwsDialect;
};

struct RequestToSign {
  std::string method;
  std::string path;             // encoded, as it is sent
  HttpPairs query;
  HttpPairs headers;            // all of them are signed, whatever their case
  std::string payload;          // the body's SHA-256 in hex, or kUnsignedPayload
};

// "a=1&b=": sorted and encoded as the signature has it, so that it may be sent as it is.
std::string CanonicalQuery(const HttpPairs& query);
// What is hashed of the request: for tests, and for whoever looks for a difference.
std::string CanonicalRequest(const RequestToSign& request);
// The value of Authorization. The caller has put X-Amz-Date and a session's token into `headers`.
std::string Authorization(const RequestToSign& request, const S3Credentials& credentials,
                          const SigningScope& scope);

}  // namespace keel
