// UploadAge: tells an upload to a bucket that nobody goes on with from one that somebody does.
// Promises   a process that goes on is never taken for a dead one: its upload is as old as the
//            newest bytes of it that the store has, not as its beginning. What the store does not
//            tell counts as alive.
// Does not   know a process that stands still for kBucketQuiet from one that has died.
// Threads    any. Errors: those of base/objects.h.
#pragma once

#include "base/clock.h"
#include "base/objects.h"
#include "base/result.h"

namespace keel {

// In a bucket nobody holds a lock. What is unfinished there counts as being written as long as
// something of it is younger than this, by the store's clock.
inline constexpr Duration kBucketQuiet = std::chrono::hours(1);

Result<bool> IsDead(Objects& bucket, const UnfinishedObject& upload);
// One that is finished or discarded meanwhile is no error.
Status DiscardIfDead(Objects& bucket, const UnfinishedObject& upload);

}  // namespace keel
