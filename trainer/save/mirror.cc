// One thread, which looks at both places, copies what is missing, and waits for the next.
#include "trainer/save/mirror.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread_priority.h"
#include "ckpt/checkpoint.h"
#include "ckpt/copy.h"
#include "ckpt/manifest.h"
#include "ckpt/names.h"
#include "ckpt/verify.h"
#include "elastic/process/quiet_thread.h"
#include "store/bucket_files.h"
#include "trainer/save/ask_aside.h"
#include "trainer/save/bucket_hold.h"
#include "trainer/save/fence.h"
#include "trainer/save/held_directory.h"
#include "trainer/save/mirror_plan.h"
#include "trainer/save/stated_job.h"
#include "trainer/save/steps_in.h"

namespace keel {
namespace {

// Before what failed is tried again; twice as long each time, unless a new checkpoint comes.
constexpr Duration kFirstPause = std::chrono::seconds(2);
constexpr Duration kPauseMax = std::chrono::minutes(2);
// While somebody waits.
constexpr Duration kPauseAwaited = std::chrono::seconds(1);
// How often a step whose own bytes, here, are damaged is tried.
constexpr int kCorruptMax = 3;
// How long the end of the thread is waited for.
constexpr Duration kEndLimit = std::chrono::seconds(1);

// How often whoever has nothing to copy looks whether its job goes on without it.
constexpr Duration kFencePeriod = std::chrono::seconds(60);
// How long a store is asked for the hold while all wait; longer than a holder is waited for.
constexpr Duration kHoldLimit = kBucketHoldLimit + std::chrono::seconds(5);

}  // namespace

struct Mirror::Work {
  Work(Files& system, Clock& time, MirrorPlaces where, const std::string& job,
       const std::string& lease)
      : files(system), clock(time), places(std::move(where)), fence(lease, job),
        held(system, time, places.to, job, fence, kCheckpointMirrorOption) {}

  Status TakeHold();
  Status LetGoIfFenced();
  void NoteHold();
  Status CopyNext();
  Status Copy(const StepEntry& entry, const std::string& why);
  void NoteDamaged(const StepEntry& entry, const Error& error);
  // `counts`: the newest of the list there that was not passed over. It is forgotten where what is
  // newest there is of another job, which is an error.
  Status NoteThere(const std::vector<StepEntry>& here, const std::vector<StepEntry>& there,
                   std::optional<uint64_t> counts);
  Status CheckSameJob(const std::string& here, const std::string& there);

  Files& files;
  Clock& clock;
  const MirrorPlaces places;
  Fence fence;
  HeldDirectory held;
  Progress progress = {};
  std::mutex mutex;
  std::condition_variable changed;
  bool is_woken = true;                  // guarded by mutex, and so is the rest
  bool is_ending = false;
  bool has_ended = false;
  bool is_all_there = false;             // nothing was left to copy, when that was last looked at
  std::optional<uint64_t> under_way;
  uint64_t bytes_copied = 0;             // of those that were copied
  std::optional<uint64_t> newest;
  std::optional<uint64_t> made;          // what is newer does not count
  std::string id;                        // of the hold; empty: there is none
  bool is_awaited = false;               // somebody has waited for a step
  std::map<uint64_t, int> corrupt = {};  // how often a step was; by the thread alone
  std::string why_not;
  std::string given_up;                  // why a step will not be copied; empty: none was
};

// A mirror that is ahead of its directory may be so rightly, if that was lost.
Status Mirror::Work::NoteThere(const std::vector<StepEntry>& here,
                               const std::vector<StepEntry>& there,
                               std::optional<uint64_t> counts) {
  const StepEntry* const newest_here = NewestIn(here);
  const StepEntry* const newest_there = NewestIn(there);
  Status same;
  if (newest_here != nullptr && newest_there != nullptr &&
      newest_there->step > newest_here->step) {
    same = CheckSameJob(newest_here->dir, newest_there->dir);
  }
  const std::lock_guard lock(mutex);
  newest = same.ok() ? counts : std::nullopt;
  changed.notify_all();
  return same;
}

Status Mirror::Work::CheckSameJob(const std::string& here, const std::string& there) {
  KEEL_TRY_ASSIGN(const Manifest ours, ReadManifest(files, here));
  KEEL_TRY_ASSIGN(const Manifest theirs, ReadManifest(files, there));
  const Result<FingerprintCheck> check =
      CompareFingerprints(FingerprintIn(ours.description.metadata),
                          FingerprintIn(theirs.description.metadata));
  if (check.ok() && check->never.empty() && check->inexact.empty()) return Ok();
  return Error{Code::kInvalid, there + " is newer, and of a job with other options or another "
                                       "model: give another --checkpoint-mirror, or move that "
                                       "one away"};
}

void Mirror::Work::NoteDamaged(const StepEntry& entry, const Error& error) {
  if (++corrupt[entry.step] < kCorruptMax) return;
  const std::lock_guard lock(mutex);
  given_up = entry.dir + " is damaged, and is not copied: " + error.message;
}

// Ok: it is there, or was there, or is gone here, or another one is waited for.
Status Mirror::Work::Copy(const StepEntry& entry, const std::string& why) {
  const auto checkpoint = Checkpoint::Open(files, entry.dir);
  if (!checkpoint.ok()) {
    if (IsRemoved(files, entry.dir)) return Ok();
    if (checkpoint.error().code == Code::kCorrupt) NoteDamaged(entry, checkpoint.error());
    return checkpoint.error();
  }
  LogDebug("mirror-begins", {{"step", entry.step}, {"to", places.to}, {"why", why}});
  const TimePoint begin = clock.Monotonic();
  const Result<CommitReport> copied = CopyCheckpoint(files, **checkpoint, places.to, &progress);
  if (!copied.ok()) {
    const std::string manifest =
        JoinPath(JoinPath(places.to, StepDirName(entry.step)), kManifestName);
    const Result<bool> committed = Exists(files, manifest);
    const bool is_there =
        copied.error().code == Code::kExists && committed.ok() && *committed;
    // It may also be what came back from there.
    if (copied.error().code == Code::kCorrupt) {
      const auto damages = VerifyFrames(**checkpoint, {.depth = Depth::kStored});
      if (damages.ok() && !damages->empty()) {
        NoteDamaged(entry, DamageStatus(**checkpoint, *damages).error());
      }
    }
    const bool is_moot = is_there || copied.error().code == Code::kCancelled ||
                         IsRemoved(files, entry.dir);
    return is_moot ? Ok() : Status(copied.error());
  }
  {
    const std::lock_guard lock(mutex);
    bytes_copied += copied->stored_bytes;
    under_way.reset();
    newest = std::max(newest.value_or(0), entry.step);
    changed.notify_all();
  }
  LogInfo("checkpoint-mirrored", {{"step", entry.step},
                                  {"dir", copied->step_dir},
                                  {"bytes", copied->stored_bytes},
                                  {"took", DurationText(clock.Monotonic() - begin)}});
  RetentionPolicy retention = places.retention;
  {
    const std::lock_guard lock(mutex);
    retention.made = made;
  }
  const auto retained = ApplyRetention(files, places.to, retention);
  if (!retained.ok()) {
    LogWarn("retention-failed", {{"dir", places.to}, {"reason", retained.error().message}});
  }
  return Ok();
}

// Whoever the job has gone on without keeps the mirror from others for nothing.
Status Mirror::Work::TakeHold() {
  KEEL_TRY(LetGoIfFenced());
  // Here a store may take its time to answer.
  KEEL_TRY(held.Hold(JobDirectory::kHoldLimit, IsBucketPath(places.to) ? OlderLocks::kWaitFor
                                                                      : OlderLocks::kPassOver));
  KEEL_TRY(held.HoldAnewWhereLost());
  NoteHold();
  return Ok();
}

Status Mirror::Work::LetGoIfFenced() {
  const Status allowed = fence.Check();
  if (allowed.ok()) return Ok();
  held.LetGo();
  NoteHold();
  return allowed;
}

void Mirror::Work::NoteHold() {
  const std::string name = held.id();
  const std::lock_guard lock(mutex);
  id = name;
}

Status Mirror::Work::CopyNext() {
  std::optional<uint64_t> upto;
  {
    const std::lock_guard lock(mutex);
    upto = made;
  }
  KEEL_TRY_ASSIGN(std::vector<StepEntry> here, StepsIn(files, places.from));
  here = UpTo(std::move(here), upto);
  std::erase_if(here, [this](const StepEntry& entry) {
    const auto found = corrupt.find(entry.step);
    return found != corrupt.end() && found->second >= kCorruptMax;
  });
  KEEL_TRY_ASSIGN(const std::vector<StepEntry> all_there, StepsIn(files, places.to));
  const std::vector<StepEntry> there = UpTo(all_there, upto);
  KEEL_TRY(NoteThere(here, all_there, NewestStep(there)));
  KEEL_TRY(TakeHold());
  const MirrorChoice choice = NextToMirror(here, there, places.retention);
  if (!choice.next && NewestStep(here) > NewestStep(there)) {
    const auto held = std::find_if(there.begin(), there.end(), [&](const StepEntry& entry) {
      return entry.step == *NewestStep(here) && entry.unreadable;
    });
    if (held != there.end()) {
      return Error{Code::kIo, places.to + " holds step " + std::to_string(held->step) +
                                  ", which could not be read there: " + held->reason};
    }
    return Error{Code::kCorrupt, places.to + " holds step " + std::to_string(*NewestStep(here)) +
                                     ", which is damaged there: see `keel ls " + places.to +
                                     "`, and move it away"};
  }
  {
    const std::lock_guard lock(mutex);
    is_all_there = !choice.next;
    if (!choice.next || is_ending) return Ok();
    under_way = choice.next->step;
    progress.bytes_done = 0;
    progress.cancel = false;
    progress.bell.Reset();
  }
  const Status copied = Copy(*choice.next, choice.why);
  const std::lock_guard lock(mutex);
  under_way.reset();
  return copied;
}

void Mirror::Run(Work& work) {
  LetOthersFirst();
  Duration pause = kFirstPause;
  std::unique_lock lock(work.mutex);
  while (!work.is_ending) {
    work.is_woken = false;
    lock.unlock();
    const Status copied = work.CopyNext();
    lock.lock();
    if (work.is_ending) break;
    work.why_not = copied.ok() ? work.given_up : copied.error().message;
    work.changed.notify_all();
    const auto is_called = [&] { return work.is_ending || work.is_woken; };
    if (copied.ok()) {
      pause = kFirstPause;
      while (work.is_all_there && !work.changed.wait_for(lock, kFencePeriod, is_called)) {
        lock.unlock();
        (void)work.LetGoIfFenced();
        lock.lock();
      }
      continue;
    }
    LogWarn("mirror-failed", {{"to", work.places.to},
                              {"reason", copied.error().message},
                              {"again_in", DurationText(work.is_awaited ? kPauseAwaited
                                                                       : pause)},
                              {"note", "training goes on, and checkpoints are saved in " +
                                           work.places.from + " alone meanwhile"}});
    const Duration rest = work.is_awaited ? std::min(pause, kPauseAwaited) : pause;
    const bool called = work.changed.wait_for(lock, rest, is_called);
    pause = called ? kFirstPause : std::min(2 * pause, kPauseMax);
  }
}

Mirror::Mirror(Files& files, Clock& clock, MirrorPlaces places, std::string job,
               std::string lease)
    : files_(files), clock_(clock), places_(std::move(places)), job_(std::move(job)),
      lease_(std::move(lease)) {}

Mirror::~Mirror() { End(); }

std::shared_ptr<Mirror::Work> Mirror::Current() const {
  const std::lock_guard lock(mutex_);
  return work_;
}

std::shared_ptr<Mirror::Work> Mirror::CurrentOrNew() {
  const std::lock_guard lock(mutex_);
  if (work_ == nullptr) {
    work_ = std::make_shared<Work>(files_, clock_, places_, job_, lease_);
    work_->held.Know(known_);
  }
  return work_;
}

Status Mirror::Hold(int64_t epoch, const std::function<void()>& tick) {
  if (!wanted()) return Ok();
  const std::shared_ptr<Work> work = CurrentOrNew();
  work->fence.BeginEpoch(epoch);
  std::optional<Status> held = AskAside<Status>("keel-hold", kHoldLimit, tick, [work] {
    const Status taken = work->held.Hold(JobDirectory::kHoldLimit, OlderLocks::kWaitFor);
    work->NoteHold();
    return taken;
  });
  if (held) return *std::move(held);
  return Error{Code::kTimeout, "the store has not said yet whether this job may copy to " +
                                   places_.to};
}

std::string Mirror::id() const {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return "";
  const std::lock_guard lock(work->mutex);
  return work->id;
}

void Mirror::Know(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (!id.empty()) known_ = id;
}

void Mirror::BeginEpoch(int64_t epoch) {
  const std::shared_ptr<Work> work = Current();
  if (work != nullptr) work->fence.BeginEpoch(epoch);
}

void Mirror::Begin(int64_t epoch, std::optional<uint64_t> made) {
  if (!wanted()) return;
  const std::shared_ptr<Work> work = CurrentOrNew();
  work->fence.BeginEpoch(epoch);
  {
    const std::lock_guard lock(work->mutex);
    work->made = made;
  }
  if (std::exchange(is_running_, true)) return Wake();
  StartQuietThread("keel-mirror", [work] {
    Run(*work);
    work->held.LetGo();
    const std::lock_guard lock(work->mutex);
    work->has_ended = true;
    work->changed.notify_all();
  }).detach();
}

void Mirror::End() {
  const std::shared_ptr<Work> work = Current();
  if (work != nullptr && std::exchange(is_running_, false)) {
    std::unique_lock lock(work->mutex);
    work->is_ending = true;
    work->progress.cancel = true;
    work->progress.bell.Ring();
    work->changed.notify_all();
    work->changed.wait_for(lock, kEndLimit, [&] { return work->has_ended; });
  }
  const std::lock_guard lock(mutex_);
  work_ = nullptr;
}

void Mirror::Wake(std::optional<uint64_t> made) {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return;
  const std::lock_guard lock(work->mutex);
  if (work->made) work->made = std::max(*work->made, made.value_or(0));
  work->is_woken = true;
  work->is_all_there = false;
  work->changed.notify_all();
}

std::optional<uint64_t> Mirror::under_way() const {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return std::nullopt;
  const std::lock_guard lock(work->mutex);
  return work->under_way;
}

std::optional<uint64_t> Mirror::newest() const {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return std::nullopt;
  const std::lock_guard lock(work->mutex);
  return work->newest;
}

uint64_t Mirror::bytes_copied() const {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return 0;
  const std::lock_guard lock(work->mutex);
  return work->bytes_copied + (work->under_way ? work->progress.bytes_done.load() : 0);
}

void Mirror::Prefer(uint64_t step) {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return;
  const std::lock_guard lock(work->mutex);
  if (work->newest && *work->newest >= step) return;
  if (!work->under_way || work->under_way == step) return;
  work->progress.cancel = true;
  work->progress.bell.Ring();
}

bool Mirror::AwaitMirrored(uint64_t step, Duration limit, bool all) const {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return false;
  std::unique_lock lock(work->mutex);
  work->is_awaited = true;
  return work->changed.wait_for(lock, limit, [&] {
    return work->newest && *work->newest >= step && (!all || work->is_all_there);
  });
}

std::string Mirror::why_not() const {
  const std::shared_ptr<Work> work = Current();
  if (work == nullptr) return "this worker copies nothing";
  const std::lock_guard lock(work->mutex);
  return work->why_not;
}

}  // namespace keel
