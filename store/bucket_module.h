// The bucket module: the client of an object store in a shared object of its own. Programs that
// use no bucket then load neither it nor libcurl.
// Threads    the entry: any.
#pragma once

#include <string>

#include "base/log.h"
#include "base/objects.h"
#include "base/result.h"

namespace keel {

// Raise it whenever the classes that cross the border change: another version is refused.
inline constexpr int kBucketModuleVersion = 4;
inline constexpr const char* kBucketModuleEntry = "keel_bucket_module";
inline constexpr const char* kBucketModuleFile = "libkeel_s3.so";

// Opens the bucket of a URL ("s3://bucket"), with credentials and endpoint from the environment and
// the user's configuration. Asks the store nothing yet.
class BucketOpener {
 public:
  virtual ~BucketOpener() = default;
  // `is_unguarded`: for a store that ignores conditions (S3Options of store/s3/client.h).
  virtual Result<std::unique_ptr<Objects>> Open(const std::string& url, bool is_unguarded) = 0;
};

// The module has a log of its own, so it is told how to log. Returns null for another version; not
// to be freed.
using BucketModuleEntry = BucketOpener* (*)(int version, LogFormat format, LogLevel level);

}  // namespace keel
