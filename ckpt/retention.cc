// Makes the decision, and carries it out.
#include "ckpt/retention.h"

#include <algorithm>

#include "ckpt/error_list.h"
#include "ckpt/removal.h"

namespace keel {
namespace {

using Partial = RetentionPolicy::Partial;

// Why a complete step stays; empty: it may go. `complete`: the steps that count, rising.
std::string WhyKeep(const StepEntry& entry, const std::vector<uint64_t>& complete, uint64_t newer,
                    const RetentionPolicy& policy) {
  if (policy.made && entry.step > *policy.made) return "newer than what the job makes";
  if (newer == 0) return "newest complete";
  if (policy.needed == entry.step) return "being copied to the mirror";
  if (newer < policy.keep_last) return "one of the last " + std::to_string(policy.keep_last);
  const std::optional<uint64_t> multiple = KeptFor(entry.step, complete, policy.keep_every);
  return multiple ? "the first from step " + std::to_string(*multiple) + " on" : "";
}

RetentionVerdict JudgeIncomplete(const StepEntry& entry, bool has_newer,
                                 const RetentionPolicy& policy) {
  RetentionVerdict verdict{entry.step, entry.dir, false, ""};
  const bool is_damaged = entry.state == StepState::kDamaged || entry.put_aside;
  if (entry.unreadable) {
    verdict.reason = "it could not be read, and may be whole";
  } else if (is_damaged && !policy.remove_damaged) {
    verdict.reason = "damaged: kept for repair";
  } else if (policy.partial == Partial::kKeep) {
    verdict.reason = "not complete: kept for repair";
  } else if (policy.partial == Partial::kRemoveOlder && !has_newer) {
    verdict.reason = "not complete, but newer than all complete ones";
  } else {
    verdict.remove = true;
    verdict.reason = is_damaged ? "damaged" : "not complete";
  }
  return verdict;
}

RetentionVerdict JudgeOne(const StepEntry& entry, const std::vector<uint64_t>& complete,
                          const RetentionPolicy& policy) {
  const uint64_t newer = static_cast<uint64_t>(
      complete.end() - std::upper_bound(complete.begin(), complete.end(), entry.step));
  if (entry.pinned) return {entry.step, entry.dir, false, "pinned"};
  if (entry.in_progress) return {entry.step, entry.dir, false, "being written"};
  if (entry.state == StepState::kNewer) {
    return {entry.step, entry.dir, false, "written by a newer version"};
  }
  if (entry.state != StepState::kComplete) return JudgeIncomplete(entry, newer > 0, policy);
  const std::string why = WhyKeep(entry, complete, newer, policy);
  if (!why.empty()) return {entry.step, entry.dir, false, why};
  return {entry.step, entry.dir, true, std::to_string(newer) + " newer ones are complete"};
}

// Why a step that was to be removed was not, for people; empty: it was removed.
std::string WhyNotRemoved(Removal removal) {
  switch (removal) {
    case Removal::kRemoved: return "";
    case Removal::kVanished: return "removed meanwhile by another process";
    case Removal::kBeingWritten: return "being written";
    case Removal::kPinned: return "pinned";
    case Removal::kLink: return "a symbolic link to a directory elsewhere";
    case Removal::kChanged: return "changed since it was judged";
  }
  return "unknown";
}

}  // namespace

std::optional<uint64_t> KeptFor(uint64_t step, const std::vector<uint64_t>& complete,
                                uint64_t every) {
  if (every == 0 || (step > 0 && step < every)) return std::nullopt;
  const uint64_t multiple = step - step % every;
  const auto first = std::lower_bound(complete.begin(), complete.end(), multiple);
  if (first != complete.end() && *first < step) return std::nullopt;
  return multiple;
}

std::vector<RetentionVerdict> DecideRetention(const std::vector<StepEntry>& entries,
                                              const RetentionPolicy& policy) {
  std::vector<uint64_t> complete;
  for (const StepEntry& entry : entries) {
    const bool counts = !policy.made || entry.step <= *policy.made;
    if (counts && entry.state == StepState::kComplete) complete.push_back(entry.step);
  }
  std::sort(complete.begin(), complete.end());
  std::vector<RetentionVerdict> verdicts;
  for (const StepEntry& entry : entries) verdicts.push_back(JudgeOne(entry, complete, policy));
  return verdicts;
}

namespace {

// What a link leads to belongs to another run, from which this one began.
Result<bool> IsLink(Files& files, const std::string& dir) {
  KEEL_TRY_ASSIGN(const std::string place, files.Resolve(dir));
  return place != dir;
}

// Carries out one verdict, which then says what became of it; returns the bytes freed.
Result<uint64_t> Carry(Files& files, const StepEntry& entry, bool dry_run,
                       RetentionVerdict* verdict) {
  KEEL_TRY_ASSIGN(const bool is_link, IsLink(files, entry.dir));
  if (!verdict->remove) {
    const bool may_sweep =
        entry.state == StepState::kComplete && !entry.in_progress && !is_link;
    return may_sweep ? SweepCheckpoint(files, entry, dry_run) : uint64_t{0};
  }
  Removal removal = is_link ? Removal::kLink : Removal::kRemoved;
  if (!dry_run && !is_link) {
    KEEL_TRY_ASSIGN(removal, RemoveCheckpoint(files, entry));
  }
  if (removal == Removal::kRemoved) return entry.stored_bytes;
  verdict->remove = false;
  verdict->vanished = removal == Removal::kVanished;
  verdict->reason = WhyNotRemoved(removal);
  return uint64_t{0};
}

}  // namespace

Result<RetentionReport> ApplyRetention(Files& files, const std::string& root,
                                       const RetentionPolicy& policy, bool dry_run,
                                       const std::function<bool()>& has_to_end) {
  KEEL_TRY_ASSIGN(const auto entries, ListSteps(files, root));
  RetentionReport report;
  report.verdicts = DecideRetention(entries, policy);
  // One step that cannot be removed, for example because of a foreign file in it, must not let all
  // newer ones fill the disk.
  ErrorList errors;
  bool is_cut_off = false;
  for (size_t i = 0; i < entries.size(); ++i) {
    RetentionVerdict& verdict = report.verdicts[i];
    if (is_cut_off) {
      if (verdict.remove) verdict.reason = "the next one removes it: there was no time left";
      verdict.remove = false;
      continue;
    }
    const auto freed = Carry(files, entries[i], dry_run, &verdict);
    if (freed.ok()) {
      report.bytes_freed += *freed;
    } else {
      errors.Add(freed.error());
    }
    is_cut_off = freed.ok() && verdict.remove && has_to_end && has_to_end();
  }
  const Status discarded = dry_run || is_cut_off ? Ok() : DiscardDeadUploads(files, root);
  // Not all who may remove objects may list uploads, and not all stores have such a list.
  if (!discarded.ok() && discarded.error().code != Code::kInvalid) errors.Add(discarded.error());
  KEEL_TRY(errors.ToStatus("removing checkpoints in " + root + " (all others are dealt with)"));
  return report;
}

}  // namespace keel
