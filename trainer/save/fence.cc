// The directory may be of a network, and stand still.
#include "trainer/save/fence.h"

#include <utility>

#include "base/log.h"
#include "base/within.h"
#include "elastic/protocol/records.h"
#include "store/bucket_files.h"
#include "store/lease/dir_lease.h"
#include "store/lease/object_lease.h"

namespace keel {
namespace {

constexpr Duration kLookLimit = std::chrono::seconds(3);

// The newest claim.
Result<LinkRecord> NewestLink(const std::string& folder, const std::string& job) {
  auto sight = Within<Result<LeaseSight>>(kLookLimit, [folder, job]() -> Result<LeaseSight> {
    Files& files = OwnBuckets();   // a thread that hangs in it may outlive all else
    KEEL_TRY_ASSIGN(const BucketPlace place, files.Bucket(folder));
    if (place.bucket != nullptr) return ObjectLease::LookInto(*place.bucket, place.key, job);
    return DirLease::LookInto(files, folder, job);
  });
  if (!sight) {
    sight = Error{Code::kTimeout, folder + " has not answered for " + DurationText(kLookLimit)};
  }
  if (!sight->ok()) return sight->error();
  if ((*sight)->term == 0) return Error{Code::kNotFound, folder + " holds no claim"};
  if (!(*sight)->damage.empty()) return Error{Code::kCorrupt, (*sight)->damage};
  return ParseLink("the newest claim in " + folder, (*sight)->text);
}

}  // namespace

Fence::Fence(std::string folder, std::string job, Duration word_limit)
    : folder_(std::move(folder)), job_(std::move(job)), word_limit_(word_limit) {}

void Fence::BeginEpoch(int64_t number) {
  const std::lock_guard lock(mutex_);
  epoch_ = number;
  begun_.notify_all();
}

int64_t Fence::epoch() const {
  const std::lock_guard lock(mutex_);
  return epoch_;
}

std::string Fence::lease_name() const { return folder_.substr(folder_.rfind('/') + 1); }

// Where the lease cannot be read, or its newest claim is damaged, the checkpoint is committed: each
// step of an epoch needs all of its workers, so an epoch that is over here makes no steps that the
// newer one does not have. What it can commit is at most one checkpoint of a step that both have
// made; it replaces none, and retention counts it like any other.
Status Fence::Check() const {
  if (folder_.empty()) return Ok();
  const Result<LinkRecord> newest = NewestLink(folder_, job_);
  if (!newest.ok()) {
    LogDebug("lease-not-read", {{"folder", folder_}, {"reason", newest.error().message}});
    return Ok();
  }
  const BoardPlace& place = newest->place;
  std::unique_lock lock(mutex_);
  // A commit beside training may find the claim of an epoch that this worker is about to enter.
  const bool is_ours =
      begun_.wait_for(lock, word_limit_, [&] { return epoch_ == 0 || epoch_ >= place.epoch; });
  if (is_ours) return Ok();
  return Error{Code::kStaleEpoch,
               "epoch " + std::to_string(place.epoch) + " of the job has begun, coordinated by " +
                   PlaceText(place) + ", and this worker is still in epoch " +
                   std::to_string(epoch_) + ": the job has gone on without it, and saves there; "
                   "this checkpoint is dropped. The lease in " + folder_ + " says so"};
}

}  // namespace keel
