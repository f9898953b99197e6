// One lock is taken, then all others are looked at.
#include "trainer/save/job_locks.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file_error.h"
#include "base/file_helpers.h"
#include "base/log.h"
#include "base/text.h"
#include "ckpt/names.h"
#include "store/own_address.h"

namespace keel {
namespace {

constexpr Duration kLockPoll = std::chrono::milliseconds(20);
constexpr uint64_t kHolderBytesMax = 16 << 10;
constexpr std::string_view kEpochWords = ", epoch ";

// What ends the text of a holder that has a lease.
std::string LeaseWords(const std::string& lease) { return " of " + lease; }

// The epoch of a holder with that lease; nothing for any other holder.
std::optional<int64_t> EpochIn(std::string_view text, const std::string& lease) {
  const std::string end = LeaseWords(lease);
  if (lease.empty() || !text.ends_with(end)) return std::nullopt;
  text.remove_suffix(end.size());
  const size_t words = text.rfind(kEpochWords);
  if (words == std::string_view::npos) return std::nullopt;
  const Result<int64_t> epoch = ParseInteger(text.substr(words + kEpochWords.size()));
  return epoch.ok() ? std::optional(*epoch) : std::nullopt;
}

// What its holder wrote there; "" where that cannot be read, which nobody passes over.
std::string HolderOf(Files& files, const std::string& path) {
  const Result<std::string> text = ReadWhole(files, path, kHolderBytesMax);
  return text.ok() ? *text : std::string();
}

bool IsOlder(const std::string& text, const JobHolder& holder) {
  const std::optional<int64_t> epoch = EpochIn(text, holder.lease);
  return epoch && *epoch < holder.epoch;
}

// Who else holds the directory and is not passed over; kExists.
Status CheckOthers(Files& files, const std::string& root, const JobHolder& holder,
                   OlderLocks older, std::string_view own_name) {
  KEEL_TRY_ASSIGN(const std::vector<DirEntry> entries, files.List(root));
  for (const DirEntry& entry : entries) {
    const bool is_lock = entry.name == kJobLockName || IsLaterJobLockName(entry.name);
    if (!is_lock || entry.name == own_name) continue;
    const std::string path = JoinPath(root, entry.name);
    KEEL_TRY_ASSIGN(const bool is_locked, files.IsLocked(path));
    if (!is_locked) continue;
    const std::string text = HolderOf(files, path);
    if (older == OlderLocks::kWaitFor || !IsOlder(text, holder)) return LockHeldError(path, text);
    LogWarn("lock-passed-over",
            {{"lock", path},
             {"holder", text},
             {"note", "it is of an epoch of this job that is over, and its worker stands still or "
                      "is out of reach: the job's lease keeps it from saving"}});
  }
  return Ok();
}

}  // namespace

Result<std::unique_ptr<FileLock>> TakeLock(Files& files, Clock& clock, const std::string& path,
                                           const std::string& owner, Duration limit) {
  const TimePoint deadline = clock.Monotonic() + limit;
  for (;;) {
    auto lock = files.Lock(path, owner);
    const bool held = !lock.ok() && lock.error().code == Code::kExists;
    if (!held || clock.Monotonic() >= deadline) return lock;
    clock.SleepFor(kLockPoll);
  }
}

std::string JobHolderText(const JobHolder& holder) {
  const std::string who =
      "job " + holder.job + ", process " + std::to_string(getpid()) + " on " + OwnHostName();
  if (holder.lease.empty()) return who;
  return who + std::string(kEpochWords) + std::to_string(holder.epoch) + LeaseWords(holder.lease);
}

Result<JobLock> TakeJobLock(Files& files, Clock& clock, const std::string& root,
                            const JobHolder& holder, OlderLocks older, Duration limit) {
  const std::string text = JobHolderText(holder);
  const auto take = [&](const std::string& name) -> Result<JobLock> {
    const std::string path = JoinPath(root, name);
    KEEL_TRY_ASSIGN(auto lock, files.Lock(path, text));
    KEEL_TRY(CheckOthers(files, root, holder, older, name));
    return JobLock{std::move(lock), path, name != kJobLockName};
  };
  const std::string common(kJobLockName), own = LaterJobLockName(holder.epoch);
  const TimePoint begin = clock.Monotonic();
  for (;;) {
    Result<JobLock> taken = take(common);
    const Duration waited = clock.Monotonic() - begin;
    const bool may_pass = older == OlderLocks::kPassOver &&
                          waited >= std::min(limit, kPassOverAfter) &&
                          IsOlder(HolderOf(files, JoinPath(root, common)), holder);
    const auto is_held = [&] { return !taken.ok() && taken.error().code == Code::kExists; };
    if (is_held() && may_pass) taken = take(own);
    if (!is_held() || waited >= limit) return taken;
    clock.SleepFor(kLockPoll);
  }
}

void RemoveFreeJobLocks(Files& files, const std::string& root) {
  const auto entries = files.List(root);
  if (!entries.ok()) return;
  for (const DirEntry& entry : *entries) {
    if (!IsLaterJobLockName(entry.name)) continue;
    const std::string path = JoinPath(root, entry.name);
    // Only a holder may remove it.
    if (const auto lock = files.Lock(path, ""); lock.ok()) (void)files.Remove(path);
  }
}

}  // namespace keel
