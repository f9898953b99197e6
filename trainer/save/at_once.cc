// Straight from the state's own memory: this worker does nothing else meanwhile.
#include "trainer/save/at_once.h"

#include <unistd.h>

#include <future>
#include <string>
#include <utility>

#include "base/file_helpers.h"
#include "base/object_files.h"
#include "ckpt/catalog.h"
#include "ckpt/checkpoint.h"
#include "ckpt/names.h"
#include "trainer/save/ask_aside.h"
#include "trainer/save/job_locks.h"
#include "trainer/save/move_aside.h"
#include "trainer/save/one_checkpoint.h"

namespace keel {
namespace {

// For another parked worker to save for all.
constexpr Duration kSingleSaveLimit = std::chrono::seconds(60);

// The trail tells which run it was. Whoever renamed the manifest may have died, or failed, before
// it was durable.
bool IsCommittedBy(Files& files, const std::string& dir, const std::string& trail) {
  const auto manifest = ReadManifest(files, dir);
  if (!manifest.ok()) return false;
  const Metadata& metadata = manifest->description.metadata;
  const auto found = metadata.find("trail");
  return found != metadata.end() && found->second == MetadataValue(trail) &&
         files.SyncDir(dir).ok();
}

// The disk may return it by now, or another worker have saved the step meanwhile.
bool IsWhole(Files& files, const std::string& dir) {
  const auto checkpoint = Checkpoint::Open(files, dir);
  return checkpoint.ok() && VerifyStored(**checkpoint, nullptr).ok();
}

// Of a step that has been made again: whether what could not be read is out of its way.
bool PutUnreadAside(Files& files, const std::string& root, uint64_t step) {
  StepEntry entry;
  entry.step = step;
  entry.dir = JoinPath(root, StepDirName(step));
  const auto there = Exists(files, entry.dir);
  if ((there.ok() && !*there) || IsWhole(files, entry.dir)) return true;
  return MoveAside(files, entry, "it could not be read when the job resumed");
}

}  // namespace

Result<bool> SaveAtOnce::IsCommitted(const DiskWaiting& waiting) {
  const uint64_t step = tools_.state.step();
  enum class Found { kNot, kCommitted, kInTheWay };
  const auto look = [&files = tools_.files, trail = tools_.state.trail().Hex(), step,
                     unread = unread_.contains(step), root = tools_.config.root] {
    if (unread && !PutUnreadAside(files, root, step)) return Found::kInTheWay;
    const bool is_there = IsCommittedBy(files, JoinPath(root, StepDirName(step)), trail);
    return is_there ? Found::kCommitted : Found::kNot;
  };
  // Nothing is under way that could be late but this.
  tools_.watch.OnBegin(tools_.clock.Monotonic(), Duration(0), std::nullopt);
  std::future<Found> answer = StartAsking<Found>("keel-committed", look);
  KEEL_TRY(tools_.AwaitDisk(waiting, step, [&](Duration limit) {
    return answer.wait_for(limit) == std::future_status::ready;
  }));
  const Found found = answer.get();
  if (found != Found::kInTheWay) unread_.erase(step);   // from now on it is of this run
  return found == Found::kCommitted;
}

Status SaveAtOnce::WriteShare(const DiskWaiting& waiting) {
  if (tools_.place.rank == 0) KEEL_TRY(tools_.directory.Hold());
  KEEL_TRY_ASSIGN(SavePlan plan, tools_.PlanShare("now"));
  KEEL_TRY(Write(std::move(plan), waiting));
  // The caller tells the others now.
  share_.On(ShareEvent::kTell);
  return Ok();
}

Status SaveAtOnce::CommitShares(const DiskWaiting& waiting) {
  return tools_.CommitNow(waiting, share_.step(), share_.TakeToCommit());
}

Status SaveAtOnce::Write(SavePlan plan, const DiskWaiting& waiting) {
  share_.On(ShareEvent::kLose);   // the one before; rank 0 may have committed it
  share_.Begin(tools_.state.step());
  auto outcome = WriteNow(std::move(plan), waiting);
  if (!outcome.ok()) {
    share_.On(ShareEvent::kFail);
    return outcome.error();
  }
  share_.Wrote(std::move(outcome->save));
  return Ok();
}

Result<BackgroundSave::Outcome> SaveAtOnce::WriteNow(SavePlan plan, const DiskWaiting& waiting) {
  ShareWriter& writer = tools_.writer;
  const uint64_t step = share_.step();
  while (!writer.TakeLeft()) KEEL_TRY(tools_.AwaitWriter(waiting, step));
  tools_.watch.OnBegin(tools_.clock.Monotonic(), Duration(0),
                       tools_.ExpectedSave(static_cast<int>(plan.parts)));
  KEEL_TRY_ASSIGN(CpuBytes share, tools_.ShareOf(plan, /*alias_buffers=*/true));
  KEEL_TRY(writer.StartNow(std::move(plan), std::move(share)));
  const Status awaited = tools_.AwaitWriter(waiting, step);
  if (!awaited.ok()) {
    writer.Leave();
    return awaited.error();
  }
  KEEL_TRY_ASSIGN(BackgroundSave::Outcome outcome, writer.Take());
  KEEL_TRY(outcome.status);
  tools_.speed.OnWritten(outcome.shard.content_bytes, outcome.took, /*awaited=*/true);
  return outcome;
}

Status SaveAtOnce::SaveAlone(const DiskWaiting& waiting) {
  const std::string& root = tools_.config.root;
  KEEL_TRY(MakeDirs(tools_.files, root));
  // The others are parked at this very step, or one beside it: one of them has to write.
  // In a bucket, which has no locks, all may write; one of the manifests appears.
  const auto turn = TakeLock(tools_.files, tools_.clock, JoinPath(root, kSingleSaveLockName),
                             "process " + std::to_string(getpid()), kSingleSaveLimit);
  const bool has_locks = !IsInBucket(tools_.files, root);
  if (has_locks && !turn.ok() && turn.error().code != Code::kExists) return turn.error();
  KEEL_TRY_ASSIGN(const bool is_there, IsCommitted(waiting));
  if (is_there) return Ok();
  KEEL_TRY_ASSIGN(SavePlan plan, tools_.Plan(NewAttempt(random_), 0, 1));
  KEEL_TRY(Write(std::move(plan), waiting));
  const Status committed = CommitShares(waiting);
  // A parked worker without a turn of its own may have been faster.
  if (committed.ok()) return Ok();
  KEEL_TRY_ASSIGN(const bool is_others, IsCommitted(waiting));
  return is_others ? Ok() : committed;
}

}  // namespace keel
