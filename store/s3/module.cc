// The inside of the bucket module.
#include "base/posix_files.h"
#include "store/bucket_module.h"
#include "store/s3/s3_objects.h"

namespace keel {
namespace {

class S3Opener : public BucketOpener {
 public:
  Result<std::unique_ptr<Objects>> Open(const std::string& url, bool is_unguarded) override {
    KEEL_TRY_ASSIGN(const BucketUrl parts, ParseBucketUrl(url));
    if (!parts.prefix.empty()) {
      return Error{Code::kInvalid, "the bucket of '" + url + "' is opened by its own name, " +
                                       std::string(parts.dialect->scheme) + parts.bucket};
    }
    KEEL_TRY_ASSIGN(auto objects, S3Objects::Open(parts.bucket, OwnEnvironment(), files_,
                                                  {.is_unguarded = is_unguarded},
                                                  *parts.dialect));
    return std::unique_ptr<Objects>(std::move(objects));
  }

 private:
  PosixFiles files_;
};

}  // namespace
}  // namespace keel

extern "C" __attribute__((visibility("default"))) keel::BucketOpener* keel_bucket_module(
    int version, keel::LogFormat format, keel::LogLevel level) {
  if (version != keel::kBucketModuleVersion) return nullptr;
  keel::SetLogFormat(format);
  keel::SetLogLevel(level);
  static keel::S3Opener opener;
  return &opener;
}
