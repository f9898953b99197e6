// Where a bucket is: the URL that names it, and the host and path that reach it.
// Promises   a bucket's name that S3 would refuse is refused here, with its rule. A store that the
//            user names (AWS_ENDPOINT_URL) is asked by path, as it may own no names of hosts;
//            AWS itself by the bucket's own host, unless the bucket's name has dots, which no
//            certificate of AWS covers.
// Threads    a plain value. Errors: kInvalid.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/s3/dialect.h"

namespace keel {

struct BucketUrl {
  const S3Dialect* dialect = &kAwsDialect;
  std::string bucket = {};
  std::string prefix = {};   // without a "/" at either end
};
// "s3://bucket", "s3://bucket/some/prefix", "gs://bucket".
Result<BucketUrl> ParseBucketUrl(std::string_view url);

// The store's own address, if it is not AWS: "http://127.0.0.1:9000".
struct StoreUrl {
  std::string scheme;        // "http" or "https"
  std::string host;          // with its port, if one was given
  std::string path = {};     // "/below", or empty
};
Result<StoreUrl> ParseStoreUrl(std::string_view url, std::string_view named_by);

struct S3Address {
  std::string bucket;
  std::string region;
  StoreUrl own = {};         // of the user, or Google's; an empty host: AWS
  const S3Dialect* dialect = &kAwsDialect;

  bool is_aws() const { return own.host.empty(); }
  // "s3://bucket".
  std::string url() const { return std::string(dialect->scheme) + bucket; }
  // Where the name cannot be a part of a host's. Old buckets may have capitals and '_'.
  bool by_path() const {
    return !is_aws() || bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") !=
                            std::string::npos;
  }
  std::string scheme() const { return is_aws() ? "https" : own.scheme; }
  std::string host() const;
  // Encoded. An empty key: of the bucket itself.
  std::string PathOf(std::string_view key) const;
};

}  // namespace keel
