// Frames by what their index says of them, all else as it lies there.
#include "ckpt/copy.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/file_helpers.h"
#include "ckpt/catalog.h"
#include "ckpt/format.h"
#include "ckpt/step_place.h"

namespace keel {
namespace {

// What is read at once, where one frame is not longer.
constexpr size_t kPieceBytes = size_t{4} << 20;

// One shard on its way.
class ShardCopy {
 public:
  ShardCopy(const ShardReader& shard, File& source, File& to, Progress* progress)
      : shard_(shard), source_(source), to_(to), progress_(progress) {}

  Status Copy() {
    KEEL_TRY(CopyRaw(kShardHeaderBytes));
    const size_t frames = shard_.index().size();
    for (size_t first = 0; first < frames;) {
      size_t count = 1;
      while (first + count < frames && shard_.StoredBytes(first, count + 1) <= kPieceBytes) {
        ++count;
      }
      KEEL_TRY(CopyFrames(first, count));
      first += count;
    }
    KEEL_TRY(CopyRaw(shard_.bytes()));
    KEEL_TRY(to_.Truncate(at_));
    return to_.Sync();
  }

 private:
  Status CopyFrames(size_t first, size_t count) {
    buffer_.resize(shard_.StoredBytes(first, count));
    KEEL_TRY(shard_.ReadStored(first, count, buffer_));
    std::span<const std::byte> rest(buffer_);
    for (size_t frame = first; frame < first + count; ++frame) {
      const size_t bytes = shard_.StoredBytes(frame, 1);
      const Status sound = shard_.CheckStored(frame, rest.first(bytes));
      if (!sound.ok()) return sound.error().Doing(shard_.Place(frame));
      rest = rest.subspan(bytes);
    }
    return Write();
  }

  // Up to that place in the file.
  Status CopyRaw(uint64_t end) {
    while (at_ < end) {
      buffer_.resize(std::min<uint64_t>(kPieceBytes, end - at_));
      KEEL_TRY_ASSIGN(const size_t got, source_.ReadAt(at_, buffer_));
      if (got < buffer_.size()) return Error{Code::kCorrupt, shard_.path() + " ends too early"};
      KEEL_TRY(Write());
    }
    return Ok();
  }

  Status Write() {
    if (progress_ != nullptr && progress_->cancel) {
      return Error{Code::kCancelled, "the copy was cancelled"};
    }
    KEEL_TRY(to_.WriteAt(at_, buffer_));
    at_ += buffer_.size();
    if (progress_ != nullptr) progress_->bytes_done += buffer_.size();
    return Ok();
  }

  const ShardReader& shard_;
  File& source_;
  File& to_;
  Progress* const progress_;
  std::vector<std::byte> buffer_;
  uint64_t at_ = 0;
};

// All of a copy's shards, and its manifest.
class StepCopy {
 public:
  StepCopy(Files& files, const Checkpoint& from, std::string root, Progress* progress)
      : files_(files),
        from_(from),
        root_(std::move(root)),
        step_dir_(JoinPath(root_, StepDirName(from.manifest().description.step))),
        progress_(progress) {}

  const std::string& step_dir() const { return step_dir_; }

  Status Copy() {
    const Manifest& manifest = from_.manifest();
    const auto parts = static_cast<uint32_t>(manifest.shards.size());
    for (uint32_t part = 0; part < parts; ++part) {
      KEEL_TRY_ASSIGN(std::unique_ptr<StepPlace> place,
                      StepPlace::At(files_, {root_, step_dir_, {manifest.attempt, part, parts}}));
      places_.push_back(std::move(place));
      const Status copied = CopyShard(*places_.back(), part);
      if (!copied.ok()) return GiveUp(copied);
    }
    const Status published =
        places_.front()->Publish(ManifestText(manifest), [&] { return CheckIsNew(); });
    if (!published.ok()) return GiveUp(published);
    return places_.front()->has_locks() ? Ok()
                                        : CheckIsThere(files_, step_dir_, manifest.attempt);
  }

 private:
  // Removes what this copy has made. Others may make one of the same checkpoint, under the same
  // names.
  Status GiveUp(const Status& why) {
    const Result<bool> committed = Exists(files_, JoinPath(step_dir_, kManifestName));
    const bool is_free = committed.ok() && !*committed;
    for (size_t part = 0; part < places_.size(); ++part) {
      if (is_free && part < made_) places_[part]->DropShard();
      if (is_free) places_[part]->Leave();
    }
    return why;
  }

  // A damaged one is no copy, but its shards have the names of this one's, and `keel repair` may
  // still need them: so nothing takes its place either.
  Status CheckIsNew() const {
    KEEL_TRY_ASSIGN(const bool there, Exists(files_, JoinPath(step_dir_, kManifestName)));
    if (!there) return Ok();
    const Result<StepEntry> step = LookAtStep(files_, step_dir_);
    if (step.ok() && step->state == StepState::kDamaged && step->unreadable) {
      return Error{Code::kIo, root_ + " holds step " + std::to_string(step->step) +
                                  ", which could not be read there: " + step->reason};
    }
    if (step.ok() && step->state == StepState::kDamaged) {
      return Error{Code::kExists, root_ + " holds step " + std::to_string(step->step) +
                                      ", which is damaged there: " + step->reason +
                                      "; see `keel ls " + root_ + "`, and move it away"};
    }
    return Error{Code::kExists, step_dir_ + " is committed already; nothing takes its place"};
  }

  // Somebody else is at work under this shard's name, or was until a moment ago.
  Status WhyItExists() const {
    KEEL_TRY(CheckIsNew());
    return Error{Code::kExists, "another process is copying it into " + step_dir_ +
                                    " now, or removing what is left there: wait for that one, or "
                                    "try again"};
  }

  Status CopyShard(StepPlace& place, uint32_t part) {
    KEEL_TRY(CheckIsNew());
    KEEL_TRY(place.Prepare());
    const Status alone = place.KeepOthersOut();
    if (!alone.ok()) return alone.error().code == Code::kExists ? WhyItExists() : alone;
    KEEL_TRY(CheckIsNew());   // another copy may have been made since, and its shard is no leftover
    place.RemoveLeftover();
    const ManifestShard& shard = from_.manifest().shards[part];
    {
      KEEL_TRY_ASSIGN(const auto source,
                      files_.Open(JoinPath(from_.dir(), shard.file), {.sequential = true}));
      const auto to = place.MakeShard(shard.bytes, /*direct=*/false, progress_);
      if (!to.ok()) return to.error().code == Code::kExists ? WhyItExists() : Status(to.error());
      ++made_;
      KEEL_TRY(ShardCopy(*from_.shards()[part], *source, **to, progress_).Copy());
    }
    KEEL_TRY(place.KeepShard());
    KEEL_TRY_ASSIGN(const auto copy,
                    ShardReader::Open(files_, JoinPath(step_dir_, shard.file)));
    if (copy->digest() == shard.digest && copy->bytes() == shard.bytes) return Ok();
    return Error{Code::kCorrupt, copy->path() + " was written, but what is read back there is "
                                                "another shard"};
  }

  Files& files_;
  const Checkpoint& from_;
  const std::string root_;
  const std::string step_dir_;
  Progress* const progress_;
  // All stay until the manifest is there: on a disk they keep others from the shards.
  std::vector<std::unique_ptr<StepPlace>> places_;
  size_t made_ = 0;   // so many of their shards, from the first on
};

}  // namespace

Result<CommitReport> CopyCheckpoint(Files& files, const Checkpoint& from, const std::string& root,
                                    Progress* progress) {
  KEEL_TRY(CheckTakesSteps(files, root));
  if (progress != nullptr) progress->bytes_total = from.stored_bytes();
  StepCopy copy(files, from, root, progress);
  const Status copied = copy.Copy();
  if (!copied.ok()) return copied.error().Doing("copying " + from.dir() + " into " + root);
  return CommitReport{copy.step_dir(), from.stored_bytes(), from.layout().tensor_bytes()};
}

}  // namespace keel
