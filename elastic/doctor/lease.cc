// The directory may be of a network, and stand still.
#include "elastic/doctor/lease.h"

#include "base/object_files.h"
#include "base/within.h"
#include "store/bucket_files.h"
#include "store/lease/object_probe.h"
#include "store/lease/put_if_absent.h"

namespace keel {
namespace {

constexpr Duration kTryLimit = std::chrono::seconds(5);

Status Try(Files& files, const std::string& directory, Random random) {
  if (IsBucketPath(directory)) {
    KEEL_TRY_ASSIGN(const BucketPlace place, OwnBuckets().Bucket(directory));
    return ProbeObjects(*place.bucket, PrefixOf(place), random);
  }
  const Result<FileInfo> found = files.Stat(directory);
  if (!found.ok()) return found.error();
  if (found->kind != FileKind::kDirectory) {
    return Error{Code::kInvalid, directory + " is not a directory"};
  }
  return ProbePutIfAbsent(files, directory, random);
}

}  // namespace

Status TryLeaseDirectory(Files& files, const std::string& directory, Random random) {
  const auto tried = Within<Status>(
      kTryLimit, [&files, directory, random] { return Try(files, directory, random); });
  if (tried) return *tried;
  return Error{Code::kTimeout, "it does not answer within " + DurationText(kTryLimit) +
                                   "; is its server up? (of a directory: see mount, dmesg)"};
}

}  // namespace keel
