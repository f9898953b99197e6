// What is checked, written and read back on the way to a commit; where, ckpt/step_place.h knows.
#include "ckpt/save.h"

#include <utility>

#include "base/file_helpers.h"
#include "ckpt/catalog.h"
#include "ckpt/checkpoint.h"
#include "ckpt/error_list.h"
#include "ckpt/names.h"
#include "ckpt/step_place.h"

namespace keel {
namespace {

std::string Doing(const SavePlan& plan) {
  return "saving step " + std::to_string(plan.description.step);
}

}  // namespace

Save::Save(Files& files, SavePlan plan)
    : files_(files),
      plan_(std::move(plan)),
      step_dir_(JoinPath(plan_.root, StepDirName(plan_.description.step))) {}

Result<std::unique_ptr<Save>> Save::Begin(Files& files, SavePlan plan) {
  std::unique_ptr<Save> save(new Save(files, std::move(plan)));
  const Status status = save->Prepare();
  if (!status.ok()) return status.error().Doing(Doing(save->plan_));
  return save;
}

Status Save::Prepare() {
  KEEL_TRY(CheckAttempt(plan_.attempt));
  if (plan_.parts == 0 || plan_.parts > kShardsMax || plan_.part >= plan_.parts) {
    return Error{Code::kInvalid, "part " + std::to_string(plan_.part) + " of " +
                                     std::to_string(plan_.parts) + " writers (9999 at most)"};
  }
  KEEL_TRY(CheckDescription(plan_.description));
  KEEL_TRY(CheckUncommitted());
  KEEL_TRY_ASSIGN(place_, StepPlace::At(files_, {plan_.root, step_dir_, Name(plan_.part)}));
  const Status begun = place_->Prepare();
  if (!begun.ok()) place_->Leave();
  return begun;
}

Save::~Save() = default;

// A manifest that cannot be read commits nothing, and may be replaced; one of a newer version may
// not.
Status Save::CheckUncommitted() const {
  const Result<Manifest> manifest = ReadManifest(files_, step_dir_);
  if (!manifest.ok()) {
    const Code code = manifest.error().code;
    if (code == Code::kNotFound || code == Code::kCorrupt) return Ok();
    if (code != Code::kInvalid) return manifest.error();
  }
  return Error{Code::kExists, step_dir_ + " is committed already" +
                                  (manifest.ok() ? ", by attempt " + manifest->attempt : "") +
                                  "; a committed checkpoint is never overwritten"};
}

Result<ShardSummary> Save::WriteShard(TensorSource& source, const WriteOptions& options) {
  const ShardName name = Name(plan_.part);
  const auto write = [&]() -> Result<ShardSummary> {
    const WriteOptions adapted = place_->Adapt(options);
    const uint64_t bytes_max = ShardBytesMax(name, plan_.description);
    KEEL_TRY_ASSIGN(const auto file,
                    place_->MakeShard(bytes_max, adapted.direct, adapted.progress));
    auto shard = keel::WriteShard(*file, name, plan_.description, source, adapted);
    if (shard.ok()) return shard;
    place_->DropShard();  // the first error is reported
    return shard.error().Doing("writing shard " + file->path());
  };
  auto written = write();
  if (written.ok()) {
    const Status kept = place_->KeepShard();
    if (!kept.ok()) written = kept.error();
  }
  if (!written.ok()) {
    Abandon();
    return written.error().Doing(Doing(plan_));
  }
  return written;
}

void Save::Abandon() {
  if (!place_->has_locks()) return;
  const Result<bool> committed = Exists(files_, JoinPath(step_dir_, kManifestName));
  if (!committed.ok() || *committed) return;
  place_->Leave();
  place_->DropShard();
}

Result<Manifest> Save::BuildManifest(int64_t saved_at_ns) const {
  Manifest manifest;
  manifest.description = plan_.description;
  manifest.attempt = plan_.attempt;
  manifest.saved_at_ns = saved_at_ns;
  std::vector<std::unique_ptr<ShardReader>> shards;
  ErrorList errors;
  for (uint32_t part = 0; part < plan_.parts; ++part) {
    const std::string file = ShardFileName(Name(part));
    auto shard = ShardReader::Open(files_, JoinPath(step_dir_, file));
    Status status = shard.ok() ? CheckShardFits(**shard, plan_.description, Name(part))
                               : Status(shard.error());
    if (!status.ok()) {
      errors.Add(status.error());
      continue;
    }
    manifest.shards.push_back(
        {file, (*shard)->bytes(), (*shard)->digest(), (*shard)->header().frames});
    shards.push_back(std::move(*shard));
  }
  KEEL_TRY(errors.ToStatus("the attempt's shards"));
  manifest.tensor_digests = CombineTensorDigests(plan_.description.layout, shards);
  return manifest;
}

Result<CommitReport> Save::Commit(int64_t saved_at_ns,
                                  const std::function<Status()>& may_appear) {
  const auto manifest = BuildManifest(saved_at_ns);
  if (!manifest.ok()) return manifest.error().Doing(Doing(plan_));
  const Status published = place_->Publish(ManifestText(*manifest), [&]() -> Status {
    KEEL_TRY(CheckUncommitted());
    return may_appear();
  });
  if (!published.ok()) return published.error().Doing(Doing(plan_));
  if (!place_->has_locks()) {
    const Status there = CheckIsThere(files_, step_dir_, plan_.attempt);
    if (!there.ok()) return there.error().Doing(Doing(plan_));
  }
  CommitReport report{step_dir_, 0, plan_.description.layout.tensor_bytes()};
  for (const ManifestShard& shard : manifest->shards) report.stored_bytes += shard.bytes;
  return report;
}

namespace {

Result<CommitReport> SaveAlone(Files& files, SavePlan plan, TensorSource& source,
                               const WriteOptions& options, int64_t saved_at_ns) {
  KEEL_TRY_ASSIGN(const auto save, Save::Begin(files, std::move(plan)));
  KEEL_TRY(save->WriteShard(source, options));
  auto committed = save->Commit(saved_at_ns);
  if (!committed.ok()) save->Abandon();
  return committed;
}

bool HasNameOfStep(std::string_view dir) {
  while (dir.ends_with('/')) dir.remove_suffix(1);
  return ParseStepDirName(dir.substr(dir.rfind('/') + 1)).has_value();
}

// `dir` and its parents, as far as they do not exist; the deepest comes first.
std::vector<std::string> MissingDirs(Files& files, std::string dir) {
  std::vector<std::string> missing;
  for (;;) {
    const auto there = Exists(files, dir);
    if (!there.ok() || *there || ParentDir(dir) == dir) return missing;
    missing.push_back(dir);
    dir = ParentDir(dir);
  }
}

}  // namespace

// Retention would not remove a checkpoint that contains another one, and nobody would find that.
Status CheckTakesSteps(Files& files, const std::string& root) {
  if (!HasNameOfStep(root) && !files.Stat(JoinPath(root, kManifestName)).ok()) return Ok();
  return Error{Code::kInvalid, root + " is a checkpoint, or has the name of one, and no other one "
                                      "is put in it: name the directory above, " +
                                   ParentDir(root)};
}

Result<CommitReport> SaveCheckpoint(Files& files, SavePlan plan, TensorSource& source,
                                    const WriteOptions& options, int64_t saved_at_ns) {
  KEEL_TRY(CheckTakesSteps(files, plan.root));
  const std::vector<std::string> missing = MissingDirs(files, plan.root);
  auto committed = SaveAlone(files, std::move(plan), source, options, saved_at_ns);
  if (committed.ok()) return committed;
  // RemoveDir() fails on those that were not made or are not empty, so they need no check.
  for (const std::string& dir : missing) (void)files.RemoveDir(dir);
  return committed;
}

}  // namespace keel
