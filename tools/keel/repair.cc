// `keel repair CKPT OUT_DIR`: a new checkpoint of what is still whole of a damaged one.
#include "ckpt/salvage.h"

#include "base/file_helpers.h"
#include "base/random.h"
#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/removal.h"
#include "tools/keel/commands.h"
#include "tools/keel/progress_bar.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

// The catalog's reading of CKPT prefers complete steps, which need no repair. Here a directory must
// say which of its steps is meant, unless it holds only one. A step's own directory is taken under
// whatever name it was copied to.
Result<std::string> FindStep(Files& files, const Options& options) {
  const std::string& text = options.positionals()[0];
  if (options.Has("step")) {
    return ResolveCheckpoint(files, text + "@" + std::to_string(options.Integer("step")));
  }
  const auto steps = ListSteps(files, text);
  if (!steps.ok()) return ResolveCheckpoint(files, text);
  if (steps->empty()) return text;
  if (steps->size() == 1) return steps->front().dir;
  std::string message = text + " holds " + std::to_string(steps->size()) +
                        " steps: say which one with --step";
  for (const StepEntry& entry : *steps) {
    message += "\n  " + std::to_string(entry.step) + ": " +
               std::string(StepStateName(entry.state)) +
               (entry.reason.empty() ? "" : ", " + entry.reason);
  }
  return Error{Code::kInvalid, message};
}

Json TensorJson(const PlacedTensor& tensor, const TensorFate& fate) {
  Json lost = Json::array();
  for (const LostRange& range : fate.lost) {
    lost.push_back({{"first", range.first}, {"last", range.last}, {"reason", range.reason}});
  }
  return {{"name", tensor.spec.name},
          {"dtype", DtypeName(tensor.spec.dtype)},
          {"shape", Json(tensor.spec.shape)},
          {"bytes", tensor.bytes},
          {"whole", fate.is_whole()},
          {"lost", std::move(lost)}};
}

Json AttemptJson(const AttemptFate& fate) {
  return {{"attempt", fate.attempt},
          {"committed", fate.is_committed},
          {"being_written", fate.is_live},
          {"trouble", fate.trouble},
          {"shards", fate.shard_troubles},
          {"mended_frames", fate.mended_frames},
          {"whole_tensors", fate.whole_count()},
          {"whole_bytes", fate.whole_bytes()},
          {"all_tensors", fate.tensors.size()}};
}

std::string AttemptLine(const AttemptFate& fate, bool is_chosen) {
  std::string text = (is_chosen ? "* " : "  ") + fate.attempt +
                     (fate.is_committed ? " (committed): " : ": ");
  if (!fate.trouble.empty()) return text + fate.trouble + "\n";
  text += std::to_string(fate.whole_count()) + " of " +
          CountText(fate.tensors.size(), "tensor") + " whole, " + BytesText(fate.whole_bytes()) +
          "\n";
  for (const std::string& trouble : fate.shard_troubles) text += "    " + trouble + "\n";
  if (fate.mended_frames > 0) {
    text += "    " + CountText(fate.mended_frames, "frame") +
            " recovered, though bytes around the content were changed\n";
  }
  return text;
}

std::string TensorLine(const PlacedTensor& tensor, const TensorFate& fate, const Paint& paint) {
  const std::string name = QuoteForLog(tensor.spec.name) + " " + TypeText(tensor.spec) + "\n";
  if (fate.is_whole()) return paint.Good("whole") + "  " + name;
  std::string text = paint.Bad("lost") + "   " + name;
  for (const LostRange& range : fate.lost) {
    text += "         elements " + std::to_string(range.first) + " to " +
            std::to_string(range.last) + ": " + range.reason + "\n";
  }
  return text;
}

// The text names what is lost; what is whole, which may be thousands, only on request.
Outcome Report(const Salvage& salvage, const std::string& dir, bool name_whole,
               const Paint& paint) {
  const AttemptDecision& decision = salvage.decision();
  Outcome outcome{{{"dir", dir},
                   {"manifest", salvage.manifest_trouble()},
                   {"attempt", nullptr},
                   {"reason", decision.reason},
                   {"attempts", Json::array()},
                   {"tensors", Json::array()},
                   {"whole_tensors", 0},
                   {"lost_tensors", 0},
                   {"written", nullptr}},
                  "", kExitNo};
  if (!salvage.manifest_trouble().empty()) outcome.text = salvage.manifest_trouble() + "\n";
  outcome.text += "attempts in " + dir + " (* is taken: " + decision.reason + ")\n";
  for (size_t i = 0; i < salvage.fates().size(); ++i) {
    outcome.json["attempts"].push_back(AttemptJson(salvage.fates()[i]));
    outcome.text += AttemptLine(salvage.fates()[i], decision.chosen == i);
  }
  if (!decision.chosen) return outcome;
  const AttemptFate& fate = salvage.fates()[*decision.chosen];
  for (size_t i = 0; i < fate.tensors.size(); ++i) {
    outcome.json["tensors"].push_back(TensorJson(fate.layout.tensors()[i], fate.tensors[i]));
    if (name_whole || !fate.tensors[i].is_whole()) {
      outcome.text += TensorLine(fate.layout.tensors()[i], fate.tensors[i], paint);
    }
  }
  outcome.json["attempt"] = fate.attempt;
  outcome.json["whole_tensors"] = fate.whole_count();
  outcome.json["lost_tensors"] = fate.tensors.size() - fate.whole_count();
  outcome.exit_code = fate.is_whole() ? 0 : kExitNo;
  return outcome;
}

Status WriteNew(const World& world, const Salvage& salvage, const std::string& out,
                Outcome* outcome) {
  Random random(EntropySeed());
  ProgressBar bar(world);
  KEEL_TRY_ASSIGN(const CommitReport report,
                  salvage.Write(world.files, out, NewAttempt(random), world.clock.WallNanos(),
                                {.progress = bar.progress()}));
  SweepDeadAttempts(world.files, report.step_dir);
  outcome->json["written"] = report.step_dir;
  outcome->text += "written to " + report.step_dir + " (" + BytesText(report.stored_bytes) + ")\n";
  return Ok();
}

}  // namespace

OptionTable RepairTable() {
  OptionTable table = CommandTable(
      "repair",
      "Finds out which tensors of a damaged checkpoint are still whole, to the last bit, and "
      "writes them to a new checkpoint in OUT_DIR. Works without a manifest, with shards missing, "
      "cut off or damaged, and on saves that were never committed. What is there stays as it is. "
      "All tensors come from one attempt, the one with the most whole bytes: two attempts of a "
      "step may hold different data. The new checkpoint says in its user keys 'repair', "
      "'repaired_from' and 'repair_lost' what it is.",
      "CKPT OUT_DIR", "something is lost; what is whole was written, if there was anything");
  table.Add(Option::Integer("step", 0, "Which step to repair, if CKPT is a directory of several")
                .AtLeast(0)
                .Optional());
  table.Add(Option::Text("attempt", "", "Look at this attempt only").Placeholder("ID"));
  table.Add(Option::Flag("dry-run", false, "Only show what is whole; OUT_DIR may be left out"));
  table.Add(Option::Flag("whole", false, "List the whole tensors, too, not only the lost ones"));
  table.Add(Option::Integer("threads", 2, "How many threads read and check").Range(1, 1024));
  table.AddExample("keel repair runs/bert@1200 --dry-run", "What is left of step 1200");
  table.AddExample("keel repair runs/bert --step 1200 rescued",
                   "Save it as rescued/step-000001200");
  table.AddExample("keel repair runs/bert@1200 --dry-run --json | jq -r "
                   "'.tensors[] | select(.whole | not) | .name'",
                   "The names of what is lost");
  return table;
}

Result<Outcome> RunRepair(const World& world, const Options& options) {
  const bool dry_run = options.Flag("dry-run");
  const bool has_out = options.positionals().size() > 1;
  if (!dry_run && !has_out) {
    return Error{Code::kInvalid, "OUT_DIR is missing: name it, or add --dry-run to only look"};
  }
  KEEL_TRY_ASSIGN(const std::string dir, FindStep(world.files, options));
  std::unique_ptr<Salvage> salvage;
  {
    ProgressBar bar(world);
    KEEL_TRY_ASSIGN(salvage, Salvage::Survey(world.files, dir, options.Text("attempt"),
                                             {.threads = static_cast<int>(
                                                  options.Integer("threads")),
                                              .progress = bar.progress()}));
  }
  Outcome outcome = Report(*salvage, dir, options.Flag("whole"), world.paint);
  if (salvage->needs_no_repair()) {
    outcome.text += "nothing to repair: it is whole, and nothing was written\n";
  } else if (!salvage->decision().chosen) {
    outcome.text += "nothing was written\n";
  } else if (!dry_run) {
    KEEL_TRY(WriteNew(world, *salvage, options.positionals()[1], &outcome));
  }
  return outcome;
}

}  // namespace keel
