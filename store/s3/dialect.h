// S3Dialect: what AWS's stores and Google's name differently, who otherwise say the same.
// Threads    plain values that live as long as the program.
#pragma once

#include <string_view>
#include <utility>

namespace keel {

struct S3Dialect {
  std::string_view scheme;        // of URLs
  std::string_view headers;       // what its own ones begin with
  // Of a signature.
  std::string_view algorithm;
  std::string_view key_prefix;
  std::string_view terminator;
  std::string_view service;
  // A put with this header fails where the key is taken.
  std::pair<std::string_view, std::string_view> if_absent;
  // A body's CRC32C: the header, and what stands before the sum.
  std::pair<std::string_view, std::string_view> crc;
  // Of an upload in parts: which sums they have is said at its beginning, and each at its end.
  bool announces_sums;
  bool removes_many;              // by one request
  // For people.
  std::string_view keys;          // where keys come from
  std::string_view endpoint;      // what names another store
};

inline constexpr S3Dialect kAwsDialect = {
    .scheme = "s3://",
    .headers = "x-amz-",
    .algorithm = "AWS4-HMAC-SHA256",
    .key_prefix = "AWS4",
    .terminator = "aws4_request",
    .service = "s3",
    .if_absent = {"If-None-Match", "*"},
    .crc = {"x-amz-checksum-crc32c", ""},
    .announces_sums = true,
    .removes_many = true,
    .keys = "the AWS credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or those of "
            "AWS_PROFILE)",
    .endpoint = "AWS_ENDPOINT_URL_S3 and AWS_REGION"};

// Google Cloud Storage's XML API.
inline constexpr S3Dialect kGoogleDialect = {
    .scheme = "gs://",
    .headers = "x-goog-",
    .algorithm = "GOOG4-HMAC-SHA256",
    .key_prefix = "GOOG4",
    .terminator = "goog4_request",
    .service = "storage",
    .if_absent = {"x-goog-if-generation-match", "0"},
    .crc = {"x-goog-hash", "crc32c="},
    .announces_sums = false,
    .removes_many = false,
    .keys = "Google's credentials (GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, or the account of "
            "this machine)",
    .endpoint = "STORAGE_EMULATOR_HOST"};

}  // namespace keel
