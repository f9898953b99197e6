// The directory may be of a network, and stand still.
#include "elastic/launch/lease.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <optional>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/object_files.h"
#include "base/posix_files.h"
#include "base/within.h"
#include "store/bucket_files.h"
#include "store/lease/dir_lease.h"
#include "store/lease/object_lease.h"
#include "store/lease/object_probe.h"

namespace keel {
namespace {

constexpr Duration kOpenLimit = std::chrono::seconds(20);

Result<std::unique_ptr<DirLease>> OpenDir(const LaunchConfig& config, Random random) {
  static PosixFiles& files = *new PosixFiles;   // a thread that hangs in it may outlive all else
  // All members of a job have one name, and are one run.
  const LeaseOwner owner{config.run_id, config.run_id};
  const std::string& dir = config.lease_directory;
  if (config.is_lease_found) KEEL_TRY(MakeDirs(files, dir));   // as the program itself would do
  return DirLease::Open(files, random, dir, owner);
}

// A bucket needs no folder, and is probed as a directory is.
Result<std::unique_ptr<Lease>> OpenBucket(const LaunchConfig& config, Random random) {
  KEEL_TRY_ASSIGN(const BucketPlace place, OwnBuckets().Bucket(config.lease_directory));
  const std::string prefix = PrefixOf(place);
  KEEL_TRY(ProbeObjects(*place.bucket, prefix, random));
  KEEL_TRY_ASSIGN(std::unique_ptr<ObjectLease> lease,
                  ObjectLease::Make(*place.bucket, random, prefix,
                                    {config.run_id, config.run_id}));
  KEEL_TRY(lease->Look());
  return std::unique_ptr<Lease>(std::move(lease));
}

Result<std::unique_ptr<Lease>> OpenWhereItIs(const LaunchConfig& config, Random random) {
  if (IsBucketPath(config.lease_directory)) return OpenBucket(config, std::move(random));
  KEEL_TRY_ASSIGN(std::unique_ptr<DirLease> lease, OpenDir(config, std::move(random)));
  return std::unique_ptr<Lease>(std::move(lease));
}

}  // namespace

std::string LeaseFolderOf(const LaunchConfig& config) {
  if (config.lease_directory.empty()) return "";
  const std::string folder = JoinPath(config.lease_directory, LeaseFolderName(config.run_id));
  std::array<char, PATH_MAX> here{};
  // A worker may change its directory.
  const bool is_whole = folder.starts_with('/') || IsBucketPath(folder);
  if (is_whole || getcwd(here.data(), here.size()) == nullptr) return folder;
  return JoinPath(here.data(), folder);
}

Result<std::unique_ptr<Lease>> OpenLease(const LaunchConfig& config, Random random) {
  if (config.lease_directory.empty()) return std::unique_ptr<Lease>();
  using Opened = Result<std::unique_ptr<Lease>>;
  auto opened =
      Within<Opened>(kOpenLimit, [config, random] { return OpenWhereItIs(config, random); });
  if (!opened) {
    opened = Error{Code::kTimeout, "the lease in " + config.lease_directory +
                                       " has not answered for " + DurationText(kOpenLimit)};
  }
  if (opened->ok()) return std::move(**opened);
  if (!config.is_lease_found) return opened->error();
  LogWarn("no-lease", {{"directory", config.lease_directory},
                       {"reason", opened->error().message},
                       {"cure", "name a directory that all hosts share with --lease"}});
  return std::unique_ptr<Lease>();
}

}  // namespace keel
