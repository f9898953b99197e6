// A lease of its own for the prefix, and one thread that beats.
#include "trainer/save/bucket_hold.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/object_files.h"
#include "base/text.h"
#include "elastic/process/quiet_thread.h"
#include "store/lease/lease_names.h"
#include "store/lease/object_probe.h"
#include "trainer/save/process_mark.h"

namespace keel {
namespace {

// All jobs that save below a prefix ask for one lease.
constexpr const char* kHoldName = "job";
// Beside the leases of launchers, which are named after their jobs.
constexpr const char* kHoldFolder = "held/";
constexpr Duration kReleaseLimit = std::chrono::seconds(1);
constexpr int kLostRacesMax = 3;
constexpr const char* kWayOut =
    "; or, where no other job will ever save there, say --checkpoint-unguarded";
constexpr Duration kHoldPoll = std::chrono::milliseconds(500);

Result<std::unique_ptr<ObjectLease>> LeaseOf(const BucketPlace& place, Random& random) {
  return ObjectLease::Make(*place.bucket, random, PrefixOf(place) + kHoldFolder,
                           {kHoldName, kHoldName});
}

Result<HoldSight> Look(ObjectLease& lease) {
  HoldSight sight;
  KEEL_TRY_ASSIGN(sight.lease, lease.Look());
  sight.quiet = lease.quiet();
  if (sight.lease.term == 0) return sight;
  const Result<std::string> claim = lease.ClaimName(sight.lease.term);
  if (claim.ok()) sight.claim = *claim;
  sight.is_process_gone = IsProcessGone(ParseBucketHolder(sight.lease.text).process);
  return sight;
}

}  // namespace

std::string BucketHolderText(const BucketHolder& holder) {
  return Json{{"holder", holder.words}, {"job", holder.job}, {"process", holder.process}}.dump();
}

BucketHolder ParseBucketHolder(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* name) -> std::string {
    const bool is_there = json.is_object() && json.contains(name) && json[name].is_string();
    return is_there ? json[name].get<std::string>() : "";
  };
  return {text_of("holder"), text_of("job"), text_of("process")};
}

HoldVerdict JudgeHold(const HoldSight& sight, const std::string& job, const std::string& former) {
  using Kind = HoldVerdict::Kind;
  if (sight.lease.term == 0) return {Kind::kClaim, "nobody has saved there yet"};
  if (sight.lease.released) return {Kind::kClaim, "its last holder has let go of it"};
  if (!former.empty() && sight.claim == former) {
    return {Kind::kClaim, "its holder is not in this job's epoch any more"};
  }
  if (sight.is_process_gone) return {Kind::kClaim, "the process that held it is gone"};
  const std::string quiet = DurationText(sight.quiet);
  if (sight.quiet >= kHoldQuiet) {
    return {Kind::kClaim, "its holder has been quiet for " + quiet};
  }
  const BucketHolder holder = ParseBucketHolder(sight.lease.text);
  const std::string why = (holder.words.empty() ? "a holder whose claim cannot be read"
                                                : holder.words) +
                          ", last heard of " + quiet + " ago";
  // It may be this very job, whose machine has vanished.
  return {holder.job == job ? Kind::kWait : Kind::kRefused, why};
}

Result<std::unique_ptr<JobDirectory>> BucketHold::Take(const BucketPlace& place, Clock& clock,
                                                       Random& random, const std::string& root,
                                                       const JobHolder& holder,
                                                       const std::string& former,
                                                       Duration limit) {
  KEEL_TRY(ProbeObjects(*place.bucket, PrefixOf(place), random, kWayOut));
  KEEL_TRY_ASSIGN(std::unique_ptr<ObjectLease> lease, LeaseOf(place, random));
  const std::string text =
      BucketHolderText({JobHolderText(holder), holder.job, OwnProcessMark()});
  const TimePoint deadline = clock.Monotonic() + limit;
  std::optional<std::string> told;
  int lost_races = 0;
  for (;;) {
    KEEL_TRY_ASSIGN(const HoldSight sight, keel::Look(*lease));
    const HoldVerdict verdict = JudgeHold(sight, holder.job, former);
    if (verdict.kind == HoldVerdict::Kind::kClaim) {
      const auto grant = lease->Claim(sight.lease.term + 1, text);
      if (grant.ok()) {
        LogDebug("checkpoint-prefix-held", {{"dir", root}, {"why", verdict.why}});
        return std::unique_ptr<JobDirectory>(new BucketHold(std::move(lease), root));
      }
      // Another one was faster: look who it is, once or twice.
      const bool is_lost = IsLeaseLost(grant.error());
      if (!is_lost || ++lost_races > kLostRacesMax) return grant.error();
      continue;
    }
    const TimePoint now = clock.Monotonic();
    if (verdict.kind == HoldVerdict::Kind::kRefused || now >= deadline) {
      return Error{Code::kExists, verdict.why};
    }
    if (!std::exchange(told, verdict.why)) {
      LogInfo("checkpoint-prefix-awaited",
              {{"dir", root},
               {"holder", verdict.why},
               {"note", "once it has been quiet for " + DurationText(kHoldQuiet) +
                            ", this job takes its place"}});
    }
    clock.SleepFor(kHoldPoll);
  }
}

struct BucketHold::Beating {
  Beating(std::unique_ptr<ObjectLease> held, std::string where)
      : lease(std::move(held)), root(std::move(where)) {}

  const std::unique_ptr<ObjectLease> lease;   // used by the thread alone
  const std::string root;
  std::atomic<bool> is_lost{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ending = false;                     // guarded by mutex
  bool has_ended = false;                     // guarded by mutex
};

BucketHold::BucketHold(std::unique_ptr<ObjectLease> lease, std::string root)
    : id_(lease->OwnClaimName()),
      beating_(std::make_shared<Beating>(std::move(lease), std::move(root))) {
  StartQuietThread("keel-hold", [beating = beating_] {
    Beat(*beating);
    const std::lock_guard lock(beating->mutex);
    beating->has_ended = true;
    beating->changed.notify_all();
  }).detach();
}

// A store that does not answer is not waited for: the next job waits a while longer instead.
BucketHold::~BucketHold() {
  std::unique_lock lock(beating_->mutex);
  beating_->is_ending = true;
  beating_->changed.notify_all();
  beating_->changed.wait_for(lock, kReleaseLimit, [&] { return beating_->has_ended; });
}

bool BucketHold::IsInPlace() const { return !beating_->is_lost; }

void BucketHold::Beat(Beating& beating) {
  std::unique_lock lock(beating.mutex);
  while (!beating.changed.wait_for(lock, kHoldBeat, [&] { return beating.is_ending; })) {
    lock.unlock();
    const Status beaten = beating.lease->Beat();
    lock.lock();
    if (beaten.ok()) continue;
    beating.is_lost = IsLeaseLost(beaten);
    LogWarn(beating.is_lost ? "checkpoint-prefix-lost" : "checkpoint-prefix-late",
            {{"dir", beating.root}, {"reason", beaten.error().message}});
    if (beating.is_lost) return;
  }
  lock.unlock();
  (void)beating.lease->Release();
}

// Whether `root`, as this process sees it, holds the claim of that name.
Status BucketHold::Look(const BucketPlace& place, const std::string& root, const std::string& id) {
  Random random(EntropySeed());
  KEEL_TRY_ASSIGN(const std::unique_ptr<ObjectLease> lease, LeaseOf(place, random));
  const Result<int64_t> term = ParseInteger(id.substr(0, id.find('-')));
  const Error elsewhere{Code::kNotFound, root + " holds no claim " + id};
  if (!term.ok()) return elsewhere;
  const Result<std::string> claim = lease->ClaimName(*term);
  if (!claim.ok() && claim.error().code != Code::kNotFound) return claim.error();
  return claim.ok() && *claim == id ? Ok() : Status(elsewhere);
}

}  // namespace keel
