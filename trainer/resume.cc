// Looks, compares, verifies, and only then restores.
#include "trainer/resume.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/error_list.h"
#include "ckpt/names.h"
#include "ckpt/restore.h"
#include "ckpt/verify.h"
#include "trainer/fingerprint.h"
#include "trainer/saved_config.h"
#include "trainer/state_image.h"
#include "trainer/weights.h"

namespace keel {
namespace {

constexpr Duration kTickPeriod = std::chrono::seconds(1);
// More would wait for the disk.
constexpr int kReadingThreadsMax = 8;

Error Refused(std::string why) { return {Code::kInvalid, std::move(why)}; }

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Runs `work` while the caller's tick tells that it gets on.
template <class Work>
auto Ticking(const ResumeTick& tick, const Progress& progress, Work work) {
  auto done = std::async(std::launch::async, std::move(work));
  uint64_t before = 0;
  while (done.wait_for(kTickPeriod) != std::future_status::ready) {
    const uint64_t now = progress.bytes_done;
    if (now != before) tick();
    before = now;
  }
  return done.get();
}

// --- Whose checkpoint is it? ---

// Empty where it says no such thing.
std::string TextIn(const Metadata& metadata, const std::string& name) {
  const auto held = metadata.find(name);
  const auto* text = held == metadata.end() ? nullptr : std::get_if<std::string>(&held->second);
  return text == nullptr ? std::string() : *text;
}

// What it says of itself; older or foreign writers may not have said all.
std::string FingerprintIn(const Metadata& metadata) {
  const std::string text = TextIn(metadata, "fingerprint");
  if (!text.empty()) return text;
  Fingerprint said;
  for (const char* name : {"lanes", "lane_batch", "seed", "samples"}) {
    const auto one = metadata.find(name);
    if (one != metadata.end()) said.Add(name, MetadataText(one->second));
  }
  return said.Text();
}

void CompareTensors(const Layout& layout, const std::vector<TensorSpec>& ours, ErrorList* errors) {
  for (const TensorSpec& spec : ours) {
    const auto found = layout.Find(spec.name);
    if (!found) {
      errors->Add(Refused("tensor " + spec.name + " is not in the checkpoint"));
    } else if (layout.tensors()[*found].spec != spec) {
      errors->Add(Refused("tensor " + spec.name + " is " + TypeText(spec) + " here and " +
                          TypeText(layout.tensors()[*found].spec) + " in the checkpoint"));
    }
  }
  for (const PlacedTensor& placed : layout.tensors()) {
    const bool known = std::any_of(ours.begin(), ours.end(), [&](const TensorSpec& spec) {
      return spec.name == placed.spec.name;
    });
    if (!known) errors->Add(Refused("tensor " + placed.spec.name + " is not in this program"));
  }
}

// Whether the state can go on from it, and on which numerics: "exact" is true or the error tells.
Result<bool> CheckSameJob(TrainState& state, const Checkpoint& checkpoint,
                          const ResumeConfig& config) {
  const Description& description = checkpoint.manifest().description;
  ErrorList errors;
  KEEL_TRY_ASSIGN(const auto specs, SpecsOf(state.registry().tensors()));
  CompareTensors(checkpoint.layout(), specs, &errors);
  KEEL_TRY_ASSIGN(const FingerprintCheck check,
                  CompareFingerprints(config.fingerprint, FingerprintIn(description.metadata)));
  if (!check.never.empty()) errors.Add(Refused(check.never));
  if (!check.inexact.empty() && !config.allow_inexact) {
    errors.Add(Refused("the same bits cannot follow: " + check.inexact +
                       " (--allow-inexact goes on all the same, and notes it)"));
  }
  if (description.step > state.config().steps) {
    errors.Add(Refused("it is at step " + std::to_string(description.step) +
                       ", beyond the last one of this job (--steps " +
                       std::to_string(state.config().steps) + ")"));
  }
  KEEL_TRY(errors.ToStatus("checkpoint " + checkpoint.dir() + " is not of this job"));
  return check.inexact.empty();
}

// It is of this job; what is not the same all the same?
void TellChanges(const Checkpoint& checkpoint, const RunConfig& now) {
  if (now.empty()) return;
  const ConfigChanges changes =
      CompareConfigs(ConfigIn(checkpoint.manifest().description.metadata), now);
  for (const auto& [option, was, is, source] : changes.changed) {
    LogInfo("config-changed", {{"option", option}, {"was", was}, {"now", is}, {"by", source}});
  }
  if (!changes.unknown.empty()) {
    LogInfo("config-unknown", {{"dir", checkpoint.dir()},
                               {"options", JoinList(changes.unknown)},
                               {"hint", "the checkpoint does not say them: they must be those "
                                        "that it was made with"}});
  }
}

// --- Into the state ---

Result<std::vector<RestoreTarget>> TargetsIn(const NamedTensors& tensors, const HostRoom& room) {
  KEEL_TRY_ASSIGN(std::vector<TensorSpec> specs, SpecsOf(tensors));
  std::vector<RestoreTarget> targets;
  for (size_t i = 0; i < specs.size(); ++i) targets.push_back({std::move(specs[i]), room.At(i)});
  return targets;
}

Metadata NumbersOf(TrainState& state, const Metadata& metadata) {
  Metadata numbers;
  for (const auto& [name, value] : state.registry().Numbers()) {
    const auto found = metadata.find(name);
    if (found != metadata.end()) numbers[name] = found->second;
  }
  return numbers;
}

int ReadingThreads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, kReadingThreadsMax);
}

Status Verify(const Checkpoint& checkpoint, const ResumeTick& tick) {
  Progress progress;
  const ScanOptions options{.threads = ReadingThreads(), .progress = &progress,
                            .depth = Depth::kStored};
  KEEL_TRY_ASSIGN(const auto damages, Ticking(tick, progress, [&] {
    return VerifyFrames(checkpoint, options);
  }));
  return DamageStatus(checkpoint, damages);
}

// A verified checkpoint; from here on the state is what it was no more.
Status PutInto(TrainState& state, const Checkpoint& checkpoint, bool exact,
               const ResumeTick& tick) {
  const Metadata& metadata = checkpoint.manifest().description.metadata;
  KEEL_TRY_ASSIGN(const HostRoom room, HostRoom::For(state.registry().tensors()));
  KEEL_TRY_ASSIGN(const auto targets, TargetsIn(state.registry().tensors(), room));
  state.BeginReceiving();
  Progress progress;
  const RestoreOptions options{.into = Into::kFresh, .threads = ReadingThreads(),
                               .progress = &progress};
  KEEL_TRY(Ticking(tick, progress, [&] { return Restore(checkpoint, targets, options); }));
  KEEL_TRY(room.Finish());
  const auto since = metadata.find("inexact_since");
  const int64_t* const inexact =
      since == metadata.end() ? nullptr : std::get_if<int64_t>(&since->second);
  KEEL_TRY(state.EndRestoring(NumbersOf(state, metadata), inexact == nullptr ? -1 : *inexact));
  if (!exact) state.NoteInexact();
  return Ok();
}

struct Attempt {
  bool resumed = false;
  std::string why_not;
  bool unreadable = false;   // by the disk's fault, which may be over the next time
};

Attempt NotUsable(const Error& error) { return {false, error.message, error.code == Code::kIo}; }

// Another checkpoint may be better, and will fill all of the state.
bool IsOfDisk(const Error& error) {
  return error.code == Code::kCorrupt || error.code == Code::kIo;
}

// An error: it is whole, but not ours.
Result<Attempt> TryOne(TrainState& state, Files& files, const std::string& dir,
                       const ResumeConfig& config, const ResumeTick& tick) {
  const auto checkpoint = Checkpoint::Open(files, dir);
  if (!checkpoint.ok()) return NotUsable(checkpoint.error());
  KEEL_TRY_ASSIGN(const bool exact, CheckSameJob(state, **checkpoint, config));
  const Status sound = Verify(**checkpoint, tick);
  if (!sound.ok()) return NotUsable(sound.error());
  const Status put = PutInto(state, **checkpoint, exact, tick);
  if (!put.ok() && IsOfDisk(put.error())) return NotUsable(put.error());
  KEEL_TRY(put);
  TellChanges(**checkpoint, config.config);
  return Attempt{true, ""};
}

// --- Which one? ---

// In the way of the same step's next save.
void PutAside(Files& files, const std::string& root, const StepEntry& entry) {
  Random random(EntropySeed());
  const std::string aside =
      JoinPath(root, DamagedStepDirName(entry.step, RandomId(random, kAttemptBytes)));
  Status moved = files.Rename(entry.dir, aside);
  if (moved.ok()) moved = files.SyncDir(root);
  if (moved.ok()) {
    LogWarn("checkpoint-put-aside", {{"step", entry.step}, {"dir", aside},
                                     {"hint", "`keel repair` may save what is left"}});
  } else {
    LogWarn("checkpoint-in-the-way", {{"dir", entry.dir}, {"reason", moved.error().message}});
  }
}

Result<ResumeOutcome> NewestUsable(TrainState& state, Files& files,
                                   const std::vector<StepEntry>& entries,
                                   const ResumeConfig& config, const ResumeTick& tick) {
  std::vector<StepEntry> damaged;
  std::string passed;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    Attempt attempt{false, entry->reason, entry->unreadable};
    if (entry->state == StepState::kComplete) {
      KEEL_TRY_ASSIGN(attempt, TryOne(state, files, entry->dir, config, tick));
    }
    if (attempt.resumed) {
      for (const StepEntry& one : damaged) PutAside(files, config.root, one);
      return ResumeOutcome{true, entry->dir};
    }
    LogWarn("checkpoint-passed-over", {{"dir", entry->dir}, {"reason", attempt.why_not}});
    // What a save that died has left says nothing about the ones before it.
    if (entry->state == StepState::kPartial) continue;
    const std::string line = "\n  " + entry->dir + ": " + attempt.why_not;
    if (config.strict) {
      return Refused("--strict: the newest checkpoint cannot be used:" + line);
    }
    passed += line;
    // One that could not be read may be as good as ever: it stays where it is.
    if (entry->state != StepState::kNewer && !attempt.unreadable) damaged.push_back(*entry);
  }
  if (passed.empty()) return ResumeOutcome{};
  return Refused("no checkpoint in " + config.root + " can be used, and beginning anew would "
                 "leave them behind:" + passed +
                 "\nrepair one (`keel repair`), or give another --checkpoint-dir");
}

Result<ResumeOutcome> ResumeFrom(TrainState& state, Files& files, const ResumeConfig& config,
                                 const ResumeTick& tick) {
  KEEL_TRY_ASSIGN(const std::string dir, ResolveCheckpoint(files, config.resume_from));
  KEEL_TRY_ASSIGN(const Attempt attempt, TryOne(state, files, dir, config, tick));
  if (attempt.resumed) return ResumeOutcome{true, dir};
  return Refused("--resume-from " + dir + " cannot be used: " + attempt.why_not);
}

// Whether the newest one that can be read is of the very job that looks for it now.
bool IsOfBegunJob(Files& files, const std::vector<StepEntry>& entries, const std::string& job) {
  if (job.empty()) return false;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->state != StepState::kComplete) continue;
    const auto checkpoint = Checkpoint::Open(files, entry->dir);
    if (!checkpoint.ok()) continue;
    return TextIn((*checkpoint)->manifest().description.metadata, "job") == job;
  }
  return false;
}

// --- Weights only ---

Result<ResumeOutcome> InitFrom(TrainState& state, Files& files, const ResumeConfig& config,
                               const ResumeTick& tick) {
  Progress progress;
  KEEL_TRY_ASSIGN(const std::string from, Ticking(tick, progress, [&] {
    return LoadWeights(*state.program().model, files, config.init_from, &progress);
  }));
  state.EndLoadingWeights();
  KEEL_TRY_ASSIGN(const SavedConfig made_with, ConfigOfWeights(files, from));
  for (const ConfigField& field : config.config) {
    const auto was = made_with.find(field.name);
    if (!field.shapes_result || was == made_with.end() || was->second == field.value) continue;
    LogWarn("weights-of-another-option", {{"option", field.name}, {"was", was->second},
                                          {"now", field.value}, {"by", field.source}});
  }
  return ResumeOutcome{false, from};
}

}  // namespace

Result<FingerprintCheck> CompareFingerprints(const std::string& ours, const std::string& theirs) {
  const auto parse = [](const std::string& text) -> Result<Fingerprint> {
    return text.empty() ? Fingerprint() : Fingerprint::Parse(text);
  };
  KEEL_TRY_ASSIGN(const Fingerprint our, parse(ours));
  KEEL_TRY_ASSIGN(const Fingerprint their, parse(theirs));
  Fingerprint parts[2][2];   // [never, inexact][ours, theirs]
  const Fingerprint* const whole[2] = {&our, &their};
  for (int side = 0; side < 2; ++side) {
    for (const auto& [name, value] : whole[side]->fields()) {
      // A job may be made longer.
      if (name == "steps") continue;
      if (name.starts_with("--") && !whole[1 - side]->Has(name)) continue;
      const bool never = IsOneOf(name, {"lanes", "lane_batch", "seed", "samples", "layout"});
      parts[never ? 0 : 1][side].Add(name, value);
    }
  }
  const FingerprintSides sides{"this job", "the checkpoint"};
  return FingerprintCheck{Differences(parts[0][0], parts[0][1], sides),
                          Differences(parts[1][0], parts[1][1], sides)};
}

Result<ResumeOutcome> Resume(TrainState& state, Files& files, const ResumeConfig& config,
                             const ResumeTick& tick) {
  std::vector<StepEntry> entries;
  if (!config.root.empty()) {
    auto listed = ListSteps(files, config.root);
    if (!listed.ok() && listed.error().code != Code::kNotFound) return listed.error();
    if (listed.ok()) entries = std::move(*listed);
  }
  const auto complete = std::find_if(entries.rbegin(), entries.rend(), [](const auto& entry) {
    return entry.state != StepState::kPartial;
  });
  const bool any = complete != entries.rend();
  if (any && IsOfBegunJob(files, entries, config.begun_job)) {
    return NewestUsable(state, files, entries, config, tick);
  }
  if (any && !config.resume) {
    return Refused("--no-resume, but " + config.root + " holds checkpoints up to step " +
                   std::to_string(complete->step) + ", which are never overwritten; give another "
                   "--checkpoint-dir, remove them, or leave --no-resume out to go on");
  }
  if (!config.resume_from.empty()) {
    if (!any) return ResumeFrom(state, files, config, tick);
    KEEL_TRY_ASSIGN(const std::string dir, ResolveCheckpoint(files, config.resume_from));
    if (ParentDir(dir) == ParentDir(complete->dir) && dir != complete->dir) {
      return Refused("--resume-from " + dir + ", but " + config.root + " holds step " +
                     std::to_string(complete->step) + ", which is never overwritten; give another "
                     "--checkpoint-dir, or remove what is newer");
    }
    // The same command again: the job has come further since.
  }
  KEEL_TRY_ASSIGN(const ResumeOutcome outcome,
                  NewestUsable(state, files, entries, config, tick));
  if (outcome.resumed || config.init_from.empty()) return outcome;
  return InitFrom(state, files, config, tick);
}

}  // namespace keel
