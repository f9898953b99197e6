// `keel ls DIR`: which checkpoints a directory holds.
#include <algorithm>

#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/removal.h"
#include "tools/keel/commands.h"
#include "tools/keel/text_table.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

Json EntryJson(const StepEntry& entry) {
  Json json = {{"step", entry.step},
               {"dir", entry.dir},
               {"state", StepStateName(entry.state)},
               {"reason", entry.reason},
               {"pinned", entry.pinned},
               {"in_progress", entry.in_progress},
               {"stored_bytes", entry.stored_bytes}};
  if (entry.state != StepState::kComplete) return json;
  json["content_bytes"] = entry.content_bytes;
  json["writers"] = entry.writers;
  json["attempt"] = entry.attempt;
  json["saved_at_ns"] = entry.saved_at_ns;
  if (!entry.repair.empty()) json["repair"] = entry.repair;
  return json;
}

TextTable::Cell StateCell(const StepEntry& entry, const Paint& paint) {
  const std::string name(StepStateName(entry.state));
  switch (entry.state) {
    case StepState::kComplete: return {name, paint.Good(name)};
    case StepState::kDamaged: return {name, paint.Bad(name)};
    case StepState::kPartial:
    case StepState::kNewer: break;
  }
  return {name, paint.Warn(name)};
}

std::string RemarkOf(const StepEntry& entry) {
  std::string remark = entry.pinned ? "pinned" : "";
  const auto add = [&](const std::string& more) {
    if (!more.empty()) remark += (remark.empty() ? "" : "; ") + more;
  };
  add(entry.reason);
  if (!entry.repair.empty()) add("repair: " + QuoteForLog(entry.repair));
  return remark;
}

std::vector<TextTable::Cell> Row(const StepEntry& entry, const Paint& paint) {
  const bool complete = entry.state == StepState::kComplete;
  return {{std::to_string(entry.step)},
          StateCell(entry, paint),
          {complete ? TimeText(entry.saved_at_ns) : "-"},
          {BytesText(entry.stored_bytes)},
          {complete ? RatioText(entry.stored_bytes, entry.content_bytes) : "-"},
          {complete ? std::to_string(entry.writers) : "-"},
          {RemarkOf(entry)}};
}

// All that a directory holds, or the one that the text names.
Result<std::vector<StepEntry>> FindSteps(Files& files, const std::string& text) {
  if (!RootOfStep(files, text).has_value()) return ListSteps(files, text);
  KEEL_TRY_ASSIGN(const std::string dir, ResolveCheckpoint(files, text));
  KEEL_TRY_ASSIGN(StepEntry entry, LookAtStep(files, dir));
  return std::vector<StepEntry>{std::move(entry)};
}

// What a list of objects does not show, and a store bills. "" where there is none.
std::string UnfinishedText(const std::vector<UnfinishedObject>& unfinished) {
  if (unfinished.empty()) return "";
  int64_t oldest_ns = unfinished.front().began_at_ns;
  for (const UnfinishedObject& one : unfinished) oldest_ns = std::min(oldest_ns, one.began_at_ns);
  return CountText(unfinished.size(), "upload") + " begun and not finished, the oldest " +
         TimeText(oldest_ns) + "; what nobody has gone on with for an hour `keel gc` discards\n";
}

Json UnfinishedJson(const std::vector<UnfinishedObject>& unfinished) {
  Json all = Json::array();
  for (const UnfinishedObject& one : unfinished) {
    all.push_back({{"key", one.key}, {"began_at_ns", one.began_at_ns}});
  }
  return all;
}

}  // namespace

OptionTable LsTable() {
  OptionTable table = CommandTable(
      "ls",
      "Lists the checkpoints in a directory, or the one that is named: step, state and its reason, "
      "time of the save, size.",
      "DIR|CKPT", "");
  table.AddExample("keel ls runs/bert", "What there is to resume from");
  table.AddExample("keel ls runs/bert --json | jq '.checkpoints[-1].step'",
                   "The highest step, whatever its state");
  return table;
}

Result<Outcome> RunLs(const World& world, const Options& options) {
  const std::string& root = options.positionals()[0];
  KEEL_TRY_ASSIGN(const auto steps, FindSteps(world.files, root));
  Outcome outcome;
  outcome.json = {{"dir", root}, {"checkpoints", Json::array()}};
  TextTable table({">STEP", "STATE", "SAVED (UTC)", ">SIZE", ">RATIO", ">WRITERS", "REMARK"});
  for (const StepEntry& entry : steps) {
    outcome.json["checkpoints"].push_back(EntryJson(entry));
    table.Add(Row(entry, world.paint));
  }
  outcome.text = steps.empty() ? "no checkpoints in " + root + "\n" : table.Text();
  const auto unfinished =
      UnfinishedShards(world.files, RootOfStep(world.files, root).value_or(root));
  if (!unfinished.ok()) {
    outcome.text += "uploads that are not finished cannot be listed: " +
                    unfinished.error().message + "\n";
  } else if (!unfinished->empty()) {
    outcome.json["unfinished_uploads"] = UnfinishedJson(*unfinished);
    outcome.text += UnfinishedText(*unfinished);
  }
  return outcome;
}

}  // namespace keel
