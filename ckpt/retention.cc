// The decision, and the order in which files go.
#include "ckpt/retention.h"

#include <algorithm>
#include <set>

#include "base/file_helpers.h"
#include "ckpt/names.h"

namespace keel {
namespace {

using Partial = RetentionPolicy::Partial;

// Why a complete step stays; empty: it may go. `newer`: how many complete ones are newer.
std::string WhyKeep(const StepEntry& entry, uint64_t newer, const RetentionPolicy& policy) {
  if (newer == 0) return "newest complete";
  if (newer < policy.keep_last) return "one of the last " + std::to_string(policy.keep_last);
  if (policy.keep_every > 0 && entry.step % policy.keep_every == 0) {
    return "step is a multiple of " + std::to_string(policy.keep_every);
  }
  return "";
}

RetentionVerdict JudgeIncomplete(const StepEntry& entry, bool has_newer,
                                 const RetentionPolicy& policy) {
  RetentionVerdict verdict{entry.step, entry.dir, false, ""};
  if (entry.state == StepState::kDamaged && !policy.remove_damaged) {
    verdict.reason = "damaged: kept for repair";
  } else if (policy.partial == Partial::kKeep) {
    verdict.reason = "not complete: kept for repair";
  } else if (policy.partial == Partial::kRemoveOlder && !has_newer) {
    verdict.reason = "not complete, but newer than all complete ones";
  } else {
    verdict.remove = true;
    verdict.reason = entry.state == StepState::kDamaged ? "damaged" : "not complete";
  }
  return verdict;
}

RetentionVerdict JudgeOne(const StepEntry& entry, uint64_t newer, const RetentionPolicy& policy) {
  if (entry.pinned) return {entry.step, entry.dir, false, "pinned"};
  if (entry.in_progress) return {entry.step, entry.dir, false, "being written"};
  if (entry.state == StepState::kNewer) {
    return {entry.step, entry.dir, false, "written by a newer version"};
  }
  if (entry.state != StepState::kComplete) return JudgeIncomplete(entry, newer > 0, policy);
  const std::string why = WhyKeep(entry, newer, policy);
  if (!why.empty()) return {entry.step, entry.dir, false, why};
  return {entry.step, entry.dir, true, std::to_string(newer) + " newer ones are complete"};
}

// Files of dead attempts in a directory that stays: `keep` is the attempt that it is committed by.
Result<uint64_t> SweepStep(Files& files, const std::string& dir, const std::string& keep,
                           bool dry_run) {
  KEEL_TRY_ASSIGN(const auto entries, files.List(dir));
  uint64_t freed = 0;
  for (const DirEntry& entry : entries) {
    const StepFile file = ParseStepFile(entry.name);
    using Kind = StepFile::Kind;
    const bool is_of_attempt = file.kind == Kind::kShard || file.kind == Kind::kManifestTemp ||
                               file.kind == Kind::kShardLock;
    if (!is_of_attempt || (file.kind == Kind::kShard && file.shard.attempt == keep)) continue;
    const std::string path = JoinPath(dir, entry.name);
    const Result<FileInfo> info = files.Stat(path);
    if (info.ok()) freed += info->bytes;
    if (!dry_run) KEEL_TRY(files.Remove(path));
  }
  return freed;
}

}  // namespace

std::vector<RetentionVerdict> DecideRetention(const std::vector<StepEntry>& entries,
                                              const RetentionPolicy& policy) {
  std::vector<uint64_t> complete;
  for (const StepEntry& entry : entries) {
    if (entry.state == StepState::kComplete) complete.push_back(entry.step);
  }
  std::sort(complete.begin(), complete.end());
  std::vector<RetentionVerdict> verdicts;
  for (const StepEntry& entry : entries) {
    const auto newer = std::upper_bound(complete.begin(), complete.end(), entry.step);
    verdicts.push_back(JudgeOne(entry, complete.end() - newer, policy));
  }
  return verdicts;
}

Status RemoveCheckpoint(Files& files, const std::string& step_dir) {
  KEEL_TRY_ASSIGN(const auto entries, files.List(step_dir));
  const auto has = [&](std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const DirEntry& entry) { return entry.name == name; });
  };
  if (has(kManifestName)) {
    KEEL_TRY(files.Remove(JoinPath(step_dir, kManifestName)));
    // Otherwise a loss of power could bring the manifest back, without its shards.
    KEEL_TRY(files.SyncDir(step_dir));
  }
  for (const DirEntry& entry : entries) {
    const StepFile::Kind kind = ParseStepFile(entry.name).kind;
    if (kind == StepFile::Kind::kForeign || kind == StepFile::Kind::kManifest) continue;
    KEEL_TRY(files.Remove(JoinPath(step_dir, entry.name)));
  }
  KEEL_TRY(files.RemoveDir(step_dir));
  return files.SyncDir(ParentDir(step_dir));
}

Result<RetentionReport> ApplyRetention(Files& files, const std::string& root,
                                       const RetentionPolicy& policy, bool dry_run) {
  KEEL_TRY_ASSIGN(const auto entries, ListSteps(files, root));
  RetentionReport report;
  report.verdicts = DecideRetention(entries, policy);
  for (size_t i = 0; i < entries.size(); ++i) {
    const StepEntry& entry = entries[i];
    if (report.verdicts[i].remove) {
      if (!dry_run) KEEL_TRY(RemoveCheckpoint(files, entry.dir));
      report.bytes_freed += entry.stored_bytes;
    } else if (entry.state == StepState::kComplete && !entry.in_progress) {
      KEEL_TRY_ASSIGN(const uint64_t freed, SweepStep(files, entry.dir, entry.attempt, dry_run));
      report.bytes_freed += freed;
    }
  }
  return report;
}

}  // namespace keel
