// `keel cp CKPT|DIR|FILE ROOT|FILE`: a checkpoint, or all that a directory holds, once more
// elsewhere; to and from a safetensors file it is what `keel export` and `keel import` do.
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

// From the oldest on, so that a copy that is cut short has the beginning of what there is.
Result<std::vector<std::string>> WhatToCopy(Files& files, const std::string& text, bool all) {
  std::vector<std::string> dirs;
  if (!all) {
    KEEL_TRY_ASSIGN(std::string dir, ResolveCheckpoint(files, text));
    dirs.push_back(std::move(dir));
    return dirs;
  }
  if (RootOfStep(files, text).has_value()) {
    return Error{Code::kInvalid, text + " names one checkpoint, and --all takes the directory of "
                                        "several: name that, or leave --all out"};
  }
  KEEL_TRY_ASSIGN(const auto steps, ListSteps(files, text));
  for (const StepEntry& step : steps) {
    if (step.state == StepState::kComplete) dirs.push_back(step.dir);
  }
  if (!dirs.empty()) return dirs;
  return Error{Code::kNotFound, "no complete checkpoint in " + text};
}

// Whether that very checkpoint is there already.
Result<bool> HasCopy(Files& files, const Checkpoint& from, const std::string& root) {
  const std::string dir = JoinPath(root, StepDirName(from.manifest().description.step));
  const Result<StepEntry> there = LookAtStep(files, dir);
  if (!there.ok() && there.error().code == Code::kNotFound) return false;
  if (!there.ok()) return there.error();
  return there->state == StepState::kComplete && there->attempt == from.manifest().attempt;
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
  KEEL_TRY_ASSIGN(const auto dirs,
                  WhatToCopy(world.files, options.positionals()[0], options.Flag("all")));
  Outcome outcome;
  outcome.json = {{"root", root}, {"checkpoints", Json::array()}};
  for (const std::string& dir : dirs) {
    KEEL_TRY_ASSIGN(const auto from, Checkpoint::Open(world.files, dir));
    KEEL_TRY_ASSIGN(const bool there, HasCopy(world.files, *from, root));
    std::string copied_to;
    if (!there) {
      ProgressBar bar(world);
      KEEL_TRY_ASSIGN(const CommitReport report,
                      CopyCheckpoint(world.files, *from, root, bar.progress()));
      copied_to = report.step_dir;
    }
    outcome.json["checkpoints"].push_back({{"step", from->manifest().description.step},
                                           {"from", dir},
                                           {"copied", !there},
                                           {"bytes", from->stored_bytes()}});
    outcome.text += there ? dir + " is in " + root + " already\n"
                          : dir + " copied to " + copied_to + " (" +
                                BytesText(from->stored_bytes()) + ")\n";
  }
  return outcome;
}

}  // namespace keel
