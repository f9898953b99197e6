// A young upload needs no question to the store; an old one is judged by its newest part.
#include "base/upload_age.h"

#include <chrono>

namespace keel {
namespace {

bool IsOld(Objects& bucket, int64_t written_at_ns) {
  return std::chrono::nanoseconds(bucket.StoreNanos() - written_at_ns) >= kBucketQuiet;
}

}  // namespace

Result<bool> IsDead(Objects& bucket, const UnfinishedObject& upload) {
  if (!IsOld(bucket, upload.began_at_ns)) return false;
  KEEL_TRY_ASSIGN(const int64_t written_at_ns, bucket.LastWritten(upload));
  return written_at_ns != 0 && IsOld(bucket, written_at_ns);
}

Status DiscardIfDead(Objects& bucket, const UnfinishedObject& upload) {
  const Result<bool> is_dead = IsDead(bucket, upload);
  if (is_dead.ok()) return *is_dead ? bucket.Discard(upload) : Ok();
  return is_dead.error().code == Code::kNotFound ? Ok() : Status(is_dead.error());
}

}  // namespace keel
