// Looks, compares, verifies, and only then restores.
#include "trainer/save/resume.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <optional>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/object_files.h"
#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/manifest.h"
#include "ckpt/names.h"
#include "trainer/save/ask_aside.h"
#include "trainer/save/mirror_plan.h"
#include "trainer/save/move_aside.h"
#include "trainer/save/one_checkpoint.h"
#include "trainer/save/steps_in.h"
#include "trainer/save/use_named.h"
#include "trainer/save/watch.h"
#include "trainer/saved_config.h"
#include "trainer/weights.h"

namespace keel {
namespace {

constexpr Duration kTickPeriod = std::chrono::seconds(1);
// How long a mirror is asked for its steps while all wait: where the job can go on without it, and
// where it cannot.
constexpr Duration kMirrorLimit = std::chrono::seconds(20);
constexpr Duration kOnlyMirrorLimit = std::chrono::minutes(10);

Error Refused(std::string why) { return {Code::kInvalid, std::move(why)}; }

// Runs `work`, and calls the caller's tick while that makes progress, or has been without any for
// no longer than a disk may be silent.
template <class Work>
auto Ticking(const ResumeTick& tick, const Progress& progress, Work work) {
  auto done = std::async(std::launch::async, std::move(work));
  TimePoint now;
  DiskPatience patience(now);
  while (done.wait_for(kTickPeriod) != std::future_status::ready) {
    now = now + kTickPeriod;
    if (patience.IsLeft(now, progress.bytes_done)) tick();
  }
  return done.get();
}

// For work that counts no bytes.
template <class Work>
auto Ticking(const ResumeTick& tick, Work work) {
  return Ticking(tick, Progress(), std::move(work));
}

// Logs the options that differ from those of the checkpoint, although it is of this job.
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
                               {"hint", "the checkpoint does not record these options: give "
                                        "them the values that it was made with"}});
  }
}

struct Attempt {
  bool resumed = false;
  std::string why_not;
  bool unreadable = false;   // the disk or the store failed; it may work next time
  bool unreached = false;    // the store or file system could not be reached
  bool silent = false;       // see IsSilent()
};

bool IsUnreached(Files& files, const std::string& dir, const Error& error) {
  return MayAnswerLater(error, IsInBucket(files, dir));
}

Error Unusable(bool unreached, const std::string& why) {
  return {unreached ? Code::kIo : Code::kInvalid, why, unreached};
}

// The store did not answer: whatever else it holds may be waited for as long.
bool IsSilent(Files& files, const std::string& dir, const Error& error) {
  const bool no_answer = error.code == Code::kPeerLost || error.code == Code::kTimeout;
  return no_answer && IsInBucket(files, dir);
}

// Of a bucket only what its bytes show counts as damage: the store may refuse to return them.
Attempt NotUsable(Files& files, const std::string& dir, const Error& error) {
  const bool is_damage = error.code == Code::kCorrupt;
  const bool unreadable = IsInBucket(files, dir) ? !is_damage : MayBeSound(error.code);
  return {.why_not = error.message, .unreadable = unreadable,
          .unreached = IsUnreached(files, dir, error), .silent = IsSilent(files, dir, error)};
}

// After such an error another checkpoint may still be usable, and will fill all of the state.
bool IsOfItsPlace(Files& files, const std::string& dir, const Error& error) {
  if (error.code == Code::kCorrupt || MayBeSound(error.code)) return true;
  // It was removed meanwhile, or the store refuses to return it.
  const bool is_refused = error.code == Code::kNotFound || error.code == Code::kInvalid;
  return is_refused && IsInBucket(files, dir);
}

// What one call of Resume() works with.
struct Task {
  TrainState& state;
  Files& files;
  const ResumeConfig& config;
  const ResumeTick& tick;
  const ResumeAhead* ahead = nullptr;
};

// Whether the store still answers, where it did not return all of a later checkpoint: some stores
// lose a part of what they hold for a while.
bool Answers(const Task& task, const StepEntry& entry) {
  const auto manifest =
      Ticking(task.tick, [&] { return ReadManifest(task.files, entry.dir); });
  return manifest.ok() || !IsSilent(task.files, entry.dir, manifest.error());
}

// Restores a verified checkpoint, whose tensors may have been filled ahead. The former state is
// lost from here on.
Status PutInto(const Task& task, const Checkpoint& checkpoint, bool filled, bool exact) {
  if (!filled) {
    task.state.BeginReceiving();
    Progress progress;
    KEEL_TRY(Ticking(task.tick, progress, [&] {
      return FillTensors(task.state, checkpoint, &progress);
    }));
  }
  return TakeNumbers(task.state, checkpoint, exact);
}

// `text` names it: the directory itself, or where to find it. An error means that the checkpoint is
// whole, but not ours.
Result<Attempt> TryOne(const Task& task, const std::string& dir, const std::string& text) {
  const auto checkpoint =
      Ticking(task.tick, [&] { return OpenNamed(task.files, dir, text); });
  if (!checkpoint.ok()) return NotUsable(task.files, dir, checkpoint.error());
  KEEL_TRY_ASSIGN(const bool exact,
                  CheckSameJob(task.state, **checkpoint, task.config.fingerprint,
                               task.config.allow_inexact));
  const bool filled = task.ahead != nullptr && task.ahead->Filled(**checkpoint);
  if (!filled && !IsReadOnce(task.files, **checkpoint)) {
    Progress progress;
    const Status sound = Ticking(task.tick, progress, [&] {
      return VerifyStored(**checkpoint, &progress);
    });
    if (!sound.ok()) return NotUsable(task.files, dir, sound.error());
  }
  const Status put = PutInto(task, **checkpoint, filled, exact);
  if (!put.ok() && IsOfItsPlace(task.files, dir, put.error())) {
    return NotUsable(task.files, dir, put.error());
  }
  KEEL_TRY(put);
  TellChanges(**checkpoint, task.config.config);
  return Attempt{true, ""};
}

// --- Which one? ---

std::string Places(const ResumeConfig& config) {
  return config.mirror.empty() ? config.root : config.root + " or " + config.mirror;
}

Result<ResumeOutcome> NewestUsable(const Task& task, const std::vector<StepEntry>& entries) {
  std::vector<StepEntry> damaged;
  std::vector<uint64_t> unread;
  std::string passed;
  std::string silent;   // the bucket's directory that does not answer
  bool asked = false;   // whether it is silent as a whole
  bool unreached = false;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (ParentDir(entry->dir) == silent) {
      if (std::exchange(asked, true) || !Answers(task, *entry)) continue;
      silent.clear();
    }
    Attempt attempt{false, entry->reason, entry->unreadable, entry->unreached};
    if (entry->state == StepState::kComplete) {
      KEEL_TRY_ASSIGN(attempt, TryOne(task, entry->dir, entry->dir));
    }
    if (attempt.resumed) {
      for (const StepEntry& one : damaged) {
        (void)MoveAside(task.files, one, "`keel repair` may save what is left");
      }
      return ResumeOutcome{true, entry->dir, std::move(unread)};
    }
    LogWarn("checkpoint-passed-over", {{"dir", entry->dir}, {"reason", attempt.why_not}});
    // The rest of a save that died says nothing about the checkpoints before it.
    if (entry->state == StepState::kPartial) continue;
    const std::string line = "\n  " + entry->dir + ": " + attempt.why_not;
    if (task.config.strict) {
      return Unusable(attempt.unreached,
                      "--strict: the newest checkpoint cannot be used:" + line);
    }
    passed += line;
    unreached |= attempt.unreached;
    if (attempt.silent) silent = ParentDir(entry->dir);
    // A checkpoint that could not be read may be as good as ever, so it stays where it is.
    if (entry->state != StepState::kNewer && !attempt.unreadable) damaged.push_back(*entry);
    const bool is_own = ParentDir(entry->dir) == ParentDir(JoinPath(task.config.root, "step"));
    if (attempt.unreadable && is_own && !IsInBucket(task.files, entry->dir)) {
      unread.push_back(entry->step);
    }
  }
  if (passed.empty()) return ResumeOutcome{};
  if (!silent.empty()) passed += "\n  " + silent + " does not answer: the others were not tried";
  return Unusable(unreached,
                  "no checkpoint in " + Places(task.config) +
                      " can be used, and beginning anew would leave them behind:" + passed +
                      "\nrepair one (`keel repair`), or give another --checkpoint-dir");
}

// Of the directory and its mirror together, by step; of one step, what the directory has is last,
// and so comes first. A job whose directory holds nothing would begin anew beside a mirror that
// does not answer, so that is refused.
Result<std::vector<StepEntry>> AllSteps(Files& files, const ResumeConfig& config,
                                        const ResumeTick& tick) {
  KEEL_TRY_ASSIGN(std::vector<StepEntry> here,
                  Ticking(tick, [&] { return StepsIn(files, config.root); }));
  if (config.mirror.empty()) return here;
  const Duration limit = NewestStep(here) ? kMirrorLimit : kOnlyMirrorLimit;
  auto there = StepsWithin(files, config.mirror, limit, tick);
  if (!there.ok()) {
    const std::string why = there.error().message;
    if (!NewestStep(here)) {
      return Error{there.error().code,
                   "what --checkpoint-mirror " + config.mirror + " holds is not known, and " +
                       config.root + " holds nothing to go on from: " + why};
    }
    LogWarn("mirror-unread", {{"mirror", config.mirror},
                              {"reason", why},
                              {"note", "the job goes on from " + config.root + " alone"}});
    return here;
  }
  std::vector<StepEntry> all = std::move(*there);
  std::move(here.begin(), here.end(), std::back_inserter(all));
  std::stable_sort(all.begin(), all.end(), [](const StepEntry& one, const StepEntry& other) {
    return one.step < other.step;
  });
  return all;
}

// --- What the command names, while the directory holds checkpoints ---

struct Named {
  Result<std::string> dir;   // of the checkpoint that a text names
  bool there = false;        // whether there is what it names, be that a directory or a file
};

// The job goes on without it, so it is not waited for long.
Named LookBriefly(const Task& task, const std::string& text) {
  std::optional<Named> named = AskAside<Named>(
      "keel-look", kMirrorLimit, task.tick, [&files = task.files, text] {
        const auto itself = Exists(files, text);
        Result<std::string> dir = ResolveCheckpoint(files, text);
        const bool there =
            dir.ok() ? !IsRemoved(files, *dir) : itself.ok() && *itself;
        return Named{std::move(dir), there};
      });
  if (named) return *std::move(named);
  return {.dir = Error{Code::kTimeout, text + " does not answer"}};
}

// The command that began a job also goes on with it, and then no longer begins with what it names.
// That is logged, since the job found here may also be one that the user has forgotten.
void TellNotUsed(const Task& task, const std::string& option, const std::string& named,
                 const std::string& used) {
  if (named.empty()) return;
  const Named found = LookBriefly(task, named);
  if (found.dir.ok() && *found.dir == used) return;
  LogWarn("not-begun-from", {{"option", option},
                             {"path", named},
                             {"there", found.there},
                             {"used", used},
                             {"note", "the job goes on from its own newest checkpoint; give "
                                      "another --checkpoint-dir to begin anew"}});
}

// Of the directory, or of its mirror, which may be behind it.
bool IsOwnPlace(const ResumeConfig& config, const std::string& dir) {
  const auto is = [&](const std::string& own) {
    return !own.empty() && ParentDir(JoinPath(own, "step")) == ParentDir(JoinPath(dir, "step"));
  };
  return is(config.root) || is(config.mirror);
}

// Where the directory holds checkpoints: of its own, only the newest may be named. What is named
// elsewhere began the job, and may be gone since.
Status CheckNamesNoOlder(const Task& task, const std::vector<StepEntry>& entries) {
  const std::string& text = task.config.resume_from;
  const bool names_root =
      IsOwnPlace(task.config, text) || IsOwnPlace(task.config, text.substr(0, text.rfind('@')));
  if (!names_root && !IsOwnPlace(task.config, ParentDir(text))) return Ok();
  const auto dir = Ticking(task.tick, [&] { return ResolveCheckpoint(task.files, text); });
  if (!dir.ok()) return names_root ? Status(dir.error()) : Ok();
  const auto last = std::find_if(entries.rbegin(), entries.rend(), [&](const auto& entry) {
    return entry.state != StepState::kPartial && ParentDir(entry.dir) == ParentDir(*dir);
  });
  if (last == entries.rend() || last->dir == *dir) return Ok();
  return Refused("--resume-from " + *dir + ", but " + ParentDir(*dir) + " holds step " +
                 std::to_string(last->step) + ", which is never overwritten; give another "
                 "--checkpoint-dir, or remove what is newer");
}

Result<ResumeOutcome> ResumeFrom(const Task& task) {
  const auto ask = [&](const auto& question) { return Ticking(task.tick, question); };
  const auto use = [&](const std::string& dir) -> Status {
    KEEL_TRY_ASSIGN(const Attempt attempt, TryOne(task, dir, task.config.resume_from));
    if (attempt.resumed) return Ok();
    return Unusable(attempt.unreached,
                    "--resume-from " + dir + " cannot be used: " + attempt.why_not);
  };
  KEEL_TRY_ASSIGN(const std::string dir,
                  UseNamed(task.files, task.config.resume_from, ask, use));
  return ResumeOutcome{true, dir};
}

// Whether the newest readable checkpoint is of the very job that looks for it now. An error: a
// store did not answer, and nothing else tells.
Result<bool> IsOfBegunJob(const Task& task, const std::vector<StepEntry>& entries) {
  const std::string& job = task.config.begun_job;
  if (job.empty()) return false;
  std::string silent;
  Status unknown = Ok();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->state != StepState::kComplete || ParentDir(entry->dir) == silent) continue;
    const auto checkpoint =
        Ticking(task.tick, [&] { return Checkpoint::Open(task.files, entry->dir); });
    if (checkpoint.ok()) {
      return TextIn((*checkpoint)->manifest().description.metadata, "job") == job;
    }
    if (IsSilent(task.files, entry->dir, checkpoint.error())) {
      silent = ParentDir(entry->dir);
      unknown = checkpoint.error();
    }
  }
  KEEL_TRY(unknown);
  return false;
}

// --- Weights only ---

Result<ResumeOutcome> InitFrom(const Task& task) {
  const std::string& init_from = task.config.init_from;
  Progress progress;
  KEEL_TRY_ASSIGN(const std::string from, Ticking(task.tick, progress, [&] {
    return LoadWeights(task.state.model().tensors, task.files, init_from, &progress);
  }));
  task.state.EndLoadingWeights();
  const Result<SavedConfig> said =
      Ticking(task.tick, [&] { return ConfigOfWeights(task.files, from); });
  if (!said.ok() && !IsRemoved(task.files, from)) return said.error();
  const SavedConfig made_with = said.ok() ? *said : SavedConfig();   // nobody can tell any more
  for (const ConfigField& field : task.config.config) {
    const auto was = made_with.find(field.name);
    if (!field.shapes_result || was == made_with.end() || was->second == field.value) continue;
    LogWarn("weights-of-another-option", {{"option", field.name}, {"was", was->second},
                                          {"now", field.value}, {"by", field.source}});
  }
  return ResumeOutcome{false, from};
}

}  // namespace

Result<ResumeOutcome> Resume(TrainState& state, Files& files, const ResumeConfig& config,
                             const ResumeTick& tick, ResumeAhead* ahead) {
  if (ahead != nullptr) Ticking(tick, ahead->progress(), [&] { ahead->Finish(); });
  const Task task{state, files, config, tick, ahead};
  KEEL_TRY_ASSIGN(const std::vector<StepEntry> entries, AllSteps(files, config, tick));
  const auto complete = std::find_if(entries.rbegin(), entries.rend(), [](const auto& entry) {
    return entry.state != StepState::kPartial;
  });
  const bool any = complete != entries.rend();
  KEEL_TRY_ASSIGN(const bool is_begun, IsOfBegunJob(task, entries));
  if (any && is_begun) return NewestUsable(task, entries);
  if (any && !config.resume) {
    return Refused("--no-resume, but " + ParentDir(complete->dir) +
                   " holds checkpoints up to step " +
                   std::to_string(complete->step) + ", which are never overwritten; give another "
                   "--checkpoint-dir, remove them, or leave --no-resume out to go on");
  }
  if (!config.resume_from.empty()) {
    if (!any) return ResumeFrom(task);
    KEEL_TRY(CheckNamesNoOlder(task, entries));
    // It is the same command again, and the job has come further since.
  }
  KEEL_TRY_ASSIGN(const ResumeOutcome outcome, NewestUsable(task, entries));
  if (outcome.resumed) {
    TellNotUsed(task, "--init-from", config.init_from, outcome.from);
    TellNotUsed(task, "--resume-from", config.resume_from, outcome.from);
    return outcome;
  }
  KEEL_TRY(state.CheckOwn());
  if (config.init_from.empty()) return outcome;
  return InitFrom(task);
}

}  // namespace keel
