// Two puts of one key, a list, and the removal of what was put.
#include "store/lease/object_probe.h"

#include <algorithm>

namespace keel {
namespace {

constexpr size_t kProbeDigits = 16;

Status Probe(Objects& bucket, const std::string& key, const std::string& way_out) {
  KEEL_TRY(bucket.PutIfAbsent(key, "first"));
  const Status second = bucket.PutIfAbsent(key, "second");
  const std::string name = bucket.name() + "/" + key;
  if (second.ok()) {
    return Error{Code::kInvalid,
                 "the store of " + bucket.name() + " replaces objects though it is asked not to "
                     "(PUT with If-None-Match: *, tried at " + name + "): two savers could damage "
                     "each other's checkpoints. Save in a store that honours it (AWS S3, R2, Ceph, "
                     "SeaweedFS), or in a directory" + way_out};
  }
  if (second.error().code != Code::kExists) return second.error();
  KEEL_TRY_ASSIGN(const ObjectListing listing, bucket.List(key, Objects::Depth::kAll));
  const bool is_listed = std::any_of(listing.objects.begin(), listing.objects.end(),
                                     [&](const ObjectInfo& one) { return one.key == key; });
  if (is_listed) return Ok();
  return Error{Code::kInvalid, "the store of " + bucket.name() + " does not list " + name +
                                   ", which was put just before: checkpoints could not be found "
                                   "in it. Save in a store whose lists are never late"};
}

}  // namespace

Status ProbeObjects(Objects& bucket, const std::string& prefix, Random& random,
                    const std::string& way_out) {
  const std::string key = prefix + "probe-" + RandomId(random, kProbeDigits);
  const Status probed = Probe(bucket, key, way_out);
  const Status removed = bucket.Remove({key});
  if (!probed.ok()) return probed;
  return removed;
}

}  // namespace keel
