// `keel verify CKPT|DIR`: every digest of one checkpoint, or of all that a directory holds.
#include "ckpt/verify.h"

#include "base/file_helpers.h"
#include "base/object_files.h"
#include "base/text.h"
#include "ckpt/catalog.h"
#include "tools/keel/commands.h"
#include "tools/keel/progress_bar.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

// What became of one checkpoint.
struct Verdict {
  std::string dir;
  bool is_whole = false;
  uint64_t bytes = 0;
  Json damages = Json::array();
  std::string text = {};
  bool vanished = false;  // somebody removed it while it was read: nothing is known about it
};

Json DamageJson(const Layout& layout, const Damage& damage) {
  Json hits = Json::array();
  for (const TensorHit& hit : HitBy(layout, damage.frame)) {
    hits.push_back({{"tensor", layout.tensors()[hit.tensor].spec.name},
                    {"first", hit.first},
                    {"last", hit.last}});
  }
  return {{"frame", damage.frame},
          {"place", damage.place},
          {"message", damage.error.message},
          {"hits", std::move(hits)}};
}

Verdict Unreadable(const std::string& dir, const Error& error, const Paint& paint) {
  Verdict verdict{.dir = dir};
  verdict.damages.push_back({{"message", error.message}});
  verdict.text = paint.Bad("damaged") + " " + dir + "\n  " + error.message + "\n";
  return verdict;
}

// An error: it could not be looked at, so nothing is known about it.
Result<Verdict> VerifyFiles(const World& world, const std::string& dir, int threads) {
  const auto checkpoint = Checkpoint::Open(world.files, dir);
  if (!checkpoint.ok()) {
    const Code code = checkpoint.error().code;
    if (code == Code::kCorrupt || code == Code::kNotFound) {
      return Unreadable(dir, checkpoint.error(), world.paint);
    }
    return checkpoint.error();
  }
  ProgressBar bar(world);
  KEEL_TRY_ASSIGN(const auto damages,
                  VerifyFrames(**checkpoint, {.threads = threads, .progress = bar.progress()}));
  const Status named = CheckDirName(dir, (*checkpoint)->manifest().description.step);
  Verdict verdict{.dir = dir,
                  .is_whole = damages.empty() && named.ok(),
                  .bytes = (*checkpoint)->stored_bytes()};
  verdict.text = (verdict.is_whole ? world.paint.Good("whole") : world.paint.Bad("damaged")) +
                 " " + dir + " (" + CountText((*checkpoint)->layout().frame_count(), "frame") +
                 ", " + BytesText(verdict.bytes) + ")\n";
  if (!named.ok()) {
    verdict.damages.push_back({{"message", named.error().message}});
    verdict.text += "  " + named.error().message + "\n";
  }
  for (const Damage& damage : damages) {
    verdict.damages.push_back(DamageJson((*checkpoint)->layout(), damage));
    verdict.text += "  " + DamageError((*checkpoint)->layout(), damage).message + "\n";
  }
  return verdict;
}

// `was_committed`: it had a manifest a moment ago. Retention takes that first, so that what is
// missing from a step without one was removed, and is not damaged.
Result<Verdict> VerifyOne(const World& world, const std::string& dir, bool was_committed,
                          int threads) {
  auto verdict = VerifyFiles(world, dir, threads);
  if (!was_committed || (verdict.ok() && verdict->is_whole)) return verdict;
  if (IsRemoved(world.files, dir)) return Verdict{.dir = dir, .vanished = true};
  return verdict;
}

struct Skipped {
  std::string dir;
  std::string state;
  std::string reason;
};

struct Work {
  std::vector<std::string> dirs;
  std::vector<Skipped> skipped;  // never committed, of a newer version, or removed meanwhile
  bool names_one = false;        // the text means one checkpoint, not all of a directory
  std::vector<Skipped> unread;   // nothing is known about them
};

// A checkpoint where the text names one; else all that a directory holds.
Result<Work> FindWork(Files& files, const std::string& text) {
  Work work;
  const auto steps = ListSteps(files, text);
  work.names_one = !steps.ok() || steps->empty();
  if (work.names_one) {
    KEEL_TRY_ASSIGN(const std::string dir, ResolveCheckpoint(files, text));
    KEEL_TRY(files.Stat(dir));  // what is not there at all is not damaged
    work.dirs.push_back(dir);
    return work;
  }
  for (const StepEntry& entry : *steps) {
    const bool can_check =
        entry.state == StepState::kComplete || entry.state == StepState::kDamaged;
    if (can_check) {
      work.dirs.push_back(entry.dir);
    } else {
      work.skipped.push_back({entry.dir, std::string(StepStateName(entry.state)), entry.reason});
    }
  }
  // Whoever asks whether a copy is whole must not be told so where there is none.
  if (work.dirs.empty()) return NoneComplete(text, *steps);
  return work;
}

// All of them; those that vanish become skipped ones, and those that cannot be read unread ones.
Result<std::vector<Verdict>> VerifyAll(const World& world, int threads, Work* work) {
  std::vector<Verdict> verdicts;
  std::string away;
  for (const std::string& dir : work->dirs) {
    if (!away.empty()) {
      work->unread.push_back({dir, "unread", away});
      continue;
    }
    const bool was_committed = !work->names_one || !IsRemoved(world.files, dir);
    Result<Verdict> verdict = VerifyOne(world, dir, was_committed, threads);
    if (!verdict.ok()) {
      if (work->names_one) return verdict.error();
      work->unread.push_back({dir, "unread", verdict.error().message});
      // A store would let each of the others wait as long. A disk may well return the next one.
      if (IsInBucket(world.files, dir)) away = "not asked for, since " + dir + " did not come";
      continue;
    }
    if (verdict->vanished && work->names_one) {
      return Error{Code::kNotFound, dir + " was removed while it was read"};
    }
    if (verdict->vanished) {
      work->skipped.push_back({dir, "removed", "another process removed it meanwhile"});
    } else {
      verdicts.push_back(*std::move(verdict));
    }
  }
  return verdicts;
}

}  // namespace

OptionTable VerifyTable() {
  OptionTable table = CommandTable(
      "verify",
      "Reads every byte of a checkpoint, or of all committed checkpoints in a directory, and "
      "checks it against its digests. Names each damaged frame, and the tensors and elements in "
      "it.",
      "CKPT|DIR", "a checkpoint is damaged");
  table.Add(Option::Integer("threads", 2, "How many threads read and check").Range(1, 1024));
  table.AddExample("keel verify runs/bert", "All committed checkpoints of a run");
  table.AddExample("keel verify runs/bert@latest", "The newest complete one");
  return table;
}

Result<Outcome> RunVerify(const World& world, const Options& options) {
  KEEL_TRY_ASSIGN(Work work, FindWork(world.files, options.positionals()[0]));
  KEEL_TRY_ASSIGN(auto verdicts,
                  VerifyAll(world, static_cast<int>(options.Integer("threads")), &work));
  Outcome outcome;
  outcome.json = {{"whole", true},
                  {"checkpoints", Json::array()},
                  {"skipped", Json::array()},
                  {"unread", Json::array()}};
  for (Verdict& verdict : verdicts) {
    if (!verdict.is_whole) outcome.exit_code = kExitNo;
    outcome.text += verdict.text;
    outcome.json["checkpoints"].push_back({{"dir", verdict.dir},
                                           {"whole", verdict.is_whole},
                                           {"stored_bytes", verdict.bytes},
                                           {"damages", std::move(verdict.damages)}});
  }
  for (const Skipped& skipped : work.skipped) {
    outcome.text += world.paint.Warn("skipped") + " " + skipped.dir + " (" + skipped.state + ": " +
                    skipped.reason + ")\n";
    outcome.json["skipped"].push_back({{"dir", skipped.dir}, {"reason", skipped.reason}});
  }
  for (const Skipped& unread : work.unread) {
    outcome.exit_code = kExitFailed;
    outcome.text += world.paint.Bad("unread") + " " + unread.dir + "\n  " + unread.reason + "\n";
    outcome.json["unread"].push_back({{"dir", unread.dir}, {"reason", unread.reason}});
  }
  outcome.json["whole"] = outcome.exit_code == 0;
  return outcome;
}

}  // namespace keel
