// `keel cp CKPT|DIR|FILE ROOT|FILE`: a checkpoint, or all that a directory holds, once more
// elsewhere; to and from a safetensors file it is what `keel export` and `keel import` do.
#include <algorithm>
#include <optional>
#include <string>

#include "base/file_helpers.h"
#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/copy.h"
#include "ckpt/names.h"
#include "ckpt/safetensors.h"
#include "tools/keel/commands.h"
#include "tools/keel/progress_bar.h"

namespace keel {
namespace {

constexpr int kTries = 10;   // for the newest one, while a running job removes each in its turn

struct Copying {
  const World& world;
  const std::string text;   // names what is copied
  const std::string root;
  const bool all;
  Outcome outcome = {};
};

// Whether that very checkpoint is there already.
Result<bool> HasCopy(Files& files, const Checkpoint& from, const std::string& root) {
  const std::string dir = JoinPath(root, StepDirName(from.manifest().description.step));
  const Result<StepEntry> there = LookAtStep(files, dir);
  if (!there.ok() && there.error().code == Code::kNotFound) return false;
  if (!there.ok()) return there.error();
  return there->state == StepState::kComplete && there->attempt == from.manifest().attempt;
}

Status CopyOne(Copying& work, const std::string& dir) {
  Files& files = work.world.files;
  KEEL_TRY_ASSIGN(const auto from, OpenNamed(files, dir, work.text));
  KEEL_TRY_ASSIGN(bool there, HasCopy(files, *from, work.root));
  std::string copied_to;
  if (!there) {
    ProgressBar bar(work.world);
    const auto report = CopyCheckpoint(files, *from, work.root, bar.progress());
    if (report.ok()) {
      copied_to = report->step_dir;
    } else if (report.error().code == Code::kExists) {
      // Another process may have copied the same one meanwhile.
      KEEL_TRY_ASSIGN(there, HasCopy(files, *from, work.root));
    }
    if (!report.ok() && !there) return report.error();
  }
  work.outcome.json["checkpoints"].push_back({{"step", from->manifest().description.step},
                                              {"from", dir},
                                              {"copied", !there},
                                              {"bytes", from->stored_bytes()}});
  work.outcome.text += there ? dir + " is in " + work.root + " already\n"
                             : dir + " copied to " + copied_to + " (" +
                                   BytesText(from->stored_bytes()) + ")\n";
  return Ok();
}

// A running job may remove it as old while it is copied: then the one that the text names by now.
Status CopyNamed(Copying& work) {
  for (int tries = 1;; ++tries) {
    KEEL_TRY_ASSIGN(const std::string dir, ResolveCheckpoint(work.world.files, work.text));
    const bool was_removed = IsRemoved(work.world.files, dir);
    const Status copied = CopyOne(work, dir);
    if (copied.ok() || !IsRemoved(work.world.files, dir)) return copied;
    KEEL_TRY_ASSIGN(const std::string next, ResolveCheckpoint(work.world.files, work.text));
    if (next != dir && tries < kTries) continue;
    if (was_removed) return copied;   // as far as we know it never existed
    return Error{Code::kNotFound, dir + " was removed while it was copied"};
  }
}

// One that is damaged must not keep all others from being copied.
void TellNotCopied(const StepEntry& step, const std::string& why, Outcome* outcome) {
  outcome->exit_code = kExitFailed;
  outcome->json["checkpoints"].push_back(
      {{"step", step.step}, {"from", step.dir}, {"copied", false}, {"error", why}});
  outcome->text += step.dir + " is not copied: " + why + "\n";
}

// What is there beyond step `last`, which becomes the newest of them; returns how many of them a
// running job has removed meanwhile.
Result<int> CopyBeyond(Copying& work, std::optional<uint64_t>* last) {
  Files& files = work.world.files;
  KEEL_TRY_ASSIGN(const auto steps, ListSteps(files, work.text));
  int removed = 0;
  for (const StepEntry& step : steps) {
    if (step.state == StepState::kPartial || (*last && step.step <= **last)) continue;
    *last = step.step;
    if (step.state != StepState::kComplete) {
      TellNotCopied(step, step.reason, &work.outcome);
      continue;
    }
    const Status copied = CopyOne(work, step.dir);
    if (copied.ok()) continue;
    const Code code = copied.error().code;
    const bool is_removed = code != Code::kNoSpace && IsRemoved(files, step.dir);
    if (!is_removed && (code == Code::kCorrupt || code == Code::kExists)) {
      TellNotCopied(step, copied.error().message, &work.outcome);
      continue;
    }
    if (!is_removed) return copied.error();
    ++removed;
    work.outcome.json["checkpoints"].push_back(
        {{"step", step.step}, {"from", step.dir}, {"copied", false}, {"removed", true}});
    work.outcome.text += step.dir + " was removed meanwhile, and is not copied\n";
  }
  return removed;
}

// From the oldest on, so that a copy that is cut short has the beginning of what there is. That is
// the order in which a running job removes them, too, and then it has made newer ones.
Status CopyAll(Copying& work) {
  if (RootOfStep(work.world.files, work.text).has_value()) {
    return Error{Code::kInvalid, work.text + " names one checkpoint, and --all takes the directory "
                                             "of several: name that, or leave --all out"};
  }
  std::optional<uint64_t> last;
  for (int tries = 1, removed = 1; removed > 0 && tries <= kTries; ++tries) {
    KEEL_TRY_ASSIGN(removed, CopyBeyond(work, &last));
  }
  const Json& told = work.outcome.json["checkpoints"];
  const bool has_any = std::any_of(told.begin(), told.end(), [](const Json& one) {
    return !one.contains("removed");
  });
  if (has_any) return Ok();
  if (last) {
    return Error{Code::kNotFound, "all checkpoints in " + work.text + " were removed while they "
                                  "were copied: does a job there keep too few? Try again"};
  }
  return Error{Code::kNotFound, "no complete checkpoint in " + work.text};
}

// As that command does it without options of its own.
Result<Outcome> RunAs(const World& world, const OptionTable& table,
                      Result<Outcome> (*run)(const World&, const Options&),
                      const Options& options) {
  if (options.Flag("all")) {
    return Error{Code::kInvalid, "a .safetensors file holds one checkpoint: leave --all out"};
  }
  const std::vector<std::string>& names = options.positionals();
  KEEL_TRY_ASSIGN(const Options theirs, ParseOptions(table, {{"--", names[0], names[1]}, {}}));
  return run(world, theirs);
}

}  // namespace

OptionTable CpTable() {
  OptionTable table = CommandTable(
      "cp",
      "Copies a checkpoint into the directory or bucket ROOT, byte by byte, as ROOT/step-...: "
      "between directories and buckets in any direction. Each byte is verified on its way, and the "
      "manifest comes last. A copy that is there already is left alone. Where one of both ends in "
      ".safetensors, this is keel export or keel import without options.",
      "CKPT|DIR|FILE ROOT|FILE", "");
  table.Add(Option::Flag("all", false, "All complete checkpoints of DIR, not only its newest one"));
  table.AddExample("keel cp runs/bert@1200 s3://my-bucket/bert", "One checkpoint into a bucket");
  table.AddExample("keel cp s3://my-bucket/bert runs/bert --all", "All of them to this disk");
  table.AddExample("keel cp s3://my-bucket/bert bert.safetensors", "The newest as safetensors");
  return table;
}

Result<Outcome> RunCp(const World& world, const Options& options) {
  const std::string& root = options.positionals()[1];
  if (root.ends_with(kSafetensorsEnding)) {
    return RunAs(world, ExportTable(), RunExport, options);
  }
  if (options.positionals()[0].ends_with(kSafetensorsEnding)) {
    return RunAs(world, ImportTable(), RunImport, options);
  }
  Copying work{world, options.positionals()[0], root, options.Flag("all")};
  work.outcome.json = {{"root", root}, {"checkpoints", Json::array()}};
  KEEL_TRY(work.all ? CopyAll(work) : CopyNamed(work));
  return std::move(work.outcome);
}

}  // namespace keel
