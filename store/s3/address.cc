// The rules of names and hosts.
#include "store/s3/address.h"

#include <algorithm>

#include "base/text.h"
#include "store/s3/percent.h"

namespace keel {
namespace {

constexpr size_t kBucketBytesMin = 3;
constexpr size_t kBucketBytesMax = 63;

bool IsBucketByte(char c) {
  // Capitals and "_" are of buckets that are older than the rule.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

std::string_view WithoutSlashes(std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<BucketUrl> ParseBucketUrl(std::string_view url) {
  const bool is_google = url.starts_with(kGoogleDialect.scheme);
  const S3Dialect& dialect = is_google ? kGoogleDialect : kAwsDialect;
  if (!url.starts_with(dialect.scheme)) {
    return MustBe(url, "s3://BUCKET or s3://BUCKET/PREFIX (gs:// for Google's)");
  }
  const std::string_view rest = url.substr(dialect.scheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view bucket = rest.substr(0, slash);
  const bool has_size = bucket.size() >= kBucketBytesMin && bucket.size() <= kBucketBytesMax;
  if (!has_size || !std::all_of(bucket.begin(), bucket.end(), IsBucketByte) ||
      bucket.find("..") != bucket.npos) {
    return Error{Code::kInvalid, Shown(url) + " names no bucket: its name must be 3 to 63 letters, "
                                     "digits, dots and dashes, as in s3://BUCKET/PREFIX"};
  }
  return BucketUrl{&dialect, std::string(bucket), std::string(WithoutSlashes(rest.substr(slash)))};
}

Result<StoreUrl> ParseStoreUrl(std::string_view url, std::string_view named_by) {
  const std::string wanted = "a URL as http://HOST:PORT or https://HOST (it is from " +
                             std::string(named_by) + ")";
  StoreUrl store;
  for (const std::string_view scheme : {"http", "https"}) {
    if (url.starts_with(std::string(scheme) + "://")) store.scheme = scheme;
  }
  if (store.scheme.empty()) return MustBe(url, wanted);
  const std::string_view rest = url.substr(store.scheme.size() + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  store.host = rest.substr(0, slash);
  const std::string_view path = WithoutSlashes(rest.substr(slash));
  if (!path.empty()) store.path = "/" + std::string(path);
  const bool is_odd = url.find_first_of(" \t\r\n?#") != url.npos;
  if (store.host.empty() || store.host.find('@') != store.host.npos || is_odd) {
    return MustBe(url, wanted);
  }
  // The port of the scheme is not sent in the header Host, which is signed.
  const std::string usual = store.scheme == "http" ? ":80" : ":443";
  if (store.host.ends_with(usual)) store.host.resize(store.host.size() - usual.size());
  return store;
}

std::string S3Address::host() const {
  if (!is_aws()) return own.host;
  const bool is_china = region.starts_with("cn-");
  const std::string base = "s3." + region + ".amazonaws.com" + (is_china ? ".cn" : "");
  return by_path() ? base : bucket + "." + base;
}

std::string S3Address::PathOf(std::string_view key) const {
  return own.path + (by_path() ? "/" + PercentEncoded(bucket) : "") +
         (key.empty() && by_path() ? "" : "/" + PercentEncodedPath(key));
}

}  // namespace keel
