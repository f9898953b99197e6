// `keel gc DIR`: removes the checkpoints that a retention policy gives up.
#include <optional>

#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/retention.h"
#include "tools/keel/commands.h"
#include "tools/keel/text_table.h"

namespace keel {
namespace {

using Partial = RetentionPolicy::Partial;

RetentionPolicy PolicyOf(const Options& options) {
  RetentionPolicy policy;
  policy.keep_last = static_cast<uint64_t>(options.Integer("keep"));
  policy.keep_every = static_cast<uint64_t>(options.Integer("keep-every"));
  const std::string& partial = options.Text("partial");
  policy.partial = partial == "keep"    ? Partial::kKeep
                   : partial == "older" ? Partial::kRemoveOlder
                                        : Partial::kRemoveAll;
  policy.remove_damaged = options.Flag("remove-damaged");
  return policy;
}

// One step, given where its directory is expected, would look like a directory with nothing to do.
Status CheckRoot(Files& files, const std::string& text) {
  const std::optional<std::string> root = RootOfStep(files, text);
  if (!root.has_value()) return Ok();
  return Error{Code::kInvalid, text + " names one checkpoint, but gc decides on all that a "
                                      "directory holds: name the directory, `keel gc " + *root +
                                   "` (keel pin and keel unpin say what it may remove)"};
}

}  // namespace

OptionTable GcTable() {
  OptionTable table = CommandTable(
      "gc",
      "Removes old checkpoints, and files of saves that died. The newest complete checkpoint, "
      "pinned ones and those being written always stay.",
      "DIR", "");
  table.Add(Option::Integer("keep", 3, "How many of the newest complete checkpoints to keep")
                .Range(1, 1'000'000'000));
  table.Add(Option::Integer("keep-every", 0,
                            "Keep the first checkpoint at or after each multiple of this step; "
                            "0: none")
                .AtLeast(0));
  table.Add(Option::Choice("partial", {"keep", "older", "all"}, "older",
                           "Which incomplete checkpoints to remove. keep: none; older: those older "
                           "than the newest complete one; all: all that no process is writing"));
  table.Add(Option::Flag("remove-damaged", false,
                         "Treat damaged checkpoints as incomplete ones"));
  table.Add(Option::Flag("dry-run", false, "Only show what would be removed"));
  table.AddExample("keel gc runs/bert --keep 5 --keep-every 1000 --dry-run",
                   "What would be removed if five and one of each thousand steps were kept");
  return table;
}

Result<Outcome> RunGc(const World& world, const Options& options) {
  const std::string& root = options.positionals()[0];
  const bool dry_run = options.Flag("dry-run");
  KEEL_TRY(CheckRoot(world.files, root));
  KEEL_TRY_ASSIGN(const RetentionReport report,
                  ApplyRetention(world.files, root, PolicyOf(options), dry_run));
  Outcome outcome;
  outcome.json = {{"dir", root},
                  {"dry_run", dry_run},
                  {"bytes_freed", report.bytes_freed},
                  {"checkpoints", Json::array()}};
  TextTable table({">STEP", "VERDICT", "WHY"});
  for (const RetentionVerdict& verdict : report.verdicts) {
    outcome.json["checkpoints"].push_back({{"step", verdict.step},
                                           {"dir", verdict.dir},
                                           {"removed", verdict.remove},
                                           {"reason", verdict.reason}});
    const std::string word = verdict.vanished  ? "gone"
                             : !verdict.remove ? "stays"
                             : dry_run         ? "would go"
                                               : "removed";
    table.Add({{std::to_string(verdict.step)},
               {word, verdict.remove ? world.paint.Warn(word) : word},
               {verdict.reason}});
  }
  outcome.text = table.Text() + BytesText(report.bytes_freed) +
                 (dry_run ? " would be freed\n" : " freed\n");
  return outcome;
}

}  // namespace keel
