// The loop that every load and every verification goes through.
#include "ckpt/frame_scan.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "ckpt/away.h"
#include "ckpt/worker_threads.h"

namespace keel {
namespace {

// Hands out runs of frames, so that reads are large.
class RunList {
 public:
  explicit RunList(const std::vector<FrameRange>& ranges) : ranges_(ranges) {}

  // Returns a run of no frames if none are left.
  FrameRange Take() {
    const std::lock_guard lock(mutex_);
    while (at_ < ranges_.size() && done_ == ranges_[at_].count) {
      ++at_;
      done_ = 0;
    }
    if (at_ == ranges_.size()) return {};
    const FrameRange& range = ranges_[at_];
    const FrameRange run{range.first + done_,
                         std::min<uint64_t>(kSlotFrames, range.count - done_)};
    done_ += run.count;
    return run;
  }

 private:
  const std::vector<FrameRange>& ranges_;
  std::mutex mutex_;
  size_t at_ = 0;
  uint64_t done_ = 0;
};

Status CheckPieces(const Checkpoint& checkpoint, const Checkpoint::FramePlace& place,
                   uint64_t frame, std::span<const std::byte> content,
                   const Digest& content_digest) {
  const std::vector<Piece> pieces = checkpoint.layout().PiecesOf(frame);
  if (pieces.size() == 1 && pieces[0].bytes == content.size() && content_digest == *place.pieces) {
    return Ok();  // decoding has compared it already
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (DigestOf(content.subspan(piece.frame_offset, piece.bytes)) == place.pieces[i]) continue;
    return Error{Code::kCorrupt, "tensor " + checkpoint.layout().tensors()[piece.tensor].spec.name +
                                     " does not match its digest"};
  }
  return Ok();
}

}  // namespace

Status FrameReader::Fetch(const Checkpoint::FramePlace& place, uint64_t frame, uint64_t ahead) {
  fetched_ = {};
  const uint64_t left = place.shard->index().size() - place.index;
  const uint64_t count = std::min(std::max<uint64_t>(1, ahead), left);
  stored_.resize(place.shard->StoredBytes(place.index, count));
  KEEL_TRY(place.shard->ReadStored(place.index, count, stored_));
  fetched_ = {frame, count};
  return Ok();
}

Result<std::span<const std::byte>> FrameReader::Stored(const Checkpoint::FramePlace& place,
                                                       uint64_t frame, uint64_t ahead) {
  if (frame < fetched_.first || frame >= fetched_.end()) {
    const Status fetched = Fetch(place, frame, ahead);
    if (!fetched.ok()) {
      if (IsAway(checkpoint_.in_bucket(), fetched.error().code)) return fetched.error();
      // If a run is cut short, its first frames may still be whole.
      KEEL_TRY(Fetch(place, frame, 1));
    }
  }
  const size_t first = place.index - (frame - fetched_.first);
  const size_t skip = place.shard->StoredBytes(first, place.index - first);
  const auto stored = std::span<const std::byte>(stored_).subspan(
      skip, place.shard->index()[place.index].stored_bytes);
  KEEL_TRY(place.shard->CheckStored(place.index, stored));
  return stored;
}

Status FrameReader::Check(uint64_t frame, uint64_t ahead) {
  KEEL_TRY(Stored(checkpoint_.Locate(frame), frame, ahead));
  return Ok();
}

Result<std::span<const std::byte>> FrameReader::Read(uint64_t frame, uint64_t ahead) {
  const Checkpoint::FramePlace place = checkpoint_.Locate(frame);
  KEEL_TRY_ASSIGN(const std::span<const std::byte> stored, Stored(place, frame, ahead));
  const FrameSpan span = checkpoint_.layout().Frame(frame);
  content_.resize(span.bytes);
  KEEL_TRY(coder_.Decode(frame, span.width, stored, content_));
  KEEL_TRY_ASSIGN(const FrameHeader header, ParseFrameHeader(stored));
  KEEL_TRY(CheckPieces(checkpoint_, place, frame, content_, header.content_digest));
  return std::span<const std::byte>(content_);
}

namespace {

Status Look(FrameReader& reader, uint64_t frame, uint64_t ahead, Depth depth,
            const UseFrame& use) {
  if (depth == Depth::kStored) return reader.Check(frame, ahead);
  KEEL_TRY_ASSIGN(const std::span<const std::byte> content, reader.Read(frame, ahead));
  if (use != nullptr) use(frame, content);
  return Ok();
}

// What the threads of a scan have found.
class Findings {
 public:
  explicit Findings(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  void Add(uint64_t frame, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (IsAway(checkpoint_.in_bucket(), error.code)) {
      if (!failure_) failure_ = error;
      has_failed_ = true;
      return;
    }
    const auto place = checkpoint_.Locate(frame);
    damages_.push_back({frame, place.shard->Place(place.index), error});
  }
  // The store is away: then no thread asks for more.
  bool has_failed() const { return has_failed_; }

  Result<std::vector<Damage>> Take() {
    if (failure_) return *failure_;
    std::sort(damages_.begin(), damages_.end(),
              [](const Damage& a, const Damage& b) { return a.frame < b.frame; });
    return std::move(damages_);
  }

 private:
  const Checkpoint& checkpoint_;
  std::mutex mutex_;
  std::vector<Damage> damages_;      // guarded by mutex_
  std::optional<Error> failure_;     // guarded by mutex_
  std::atomic<bool> has_failed_{false};
};

}  // namespace

Result<std::vector<Damage>> ScanFrames(const Checkpoint& checkpoint,
                                       const std::vector<FrameRange>& ranges,
                                       const ScanOptions& options, const UseFrame& use) {
  KEEL_CHECK(options.depth == Depth::kContent || use == nullptr, "frames that are not unpacked");
  RunList runs(ranges);
  Findings findings(checkpoint);
  const auto is_cancelled = [&] {
    return options.progress != nullptr && options.progress->cancel.load();
  };
  RunOnThreads(options.threads, [&] {
    FrameReader reader(checkpoint);
    for (FrameRange run = runs.Take(); run.count > 0 && !is_cancelled(); run = runs.Take()) {
      for (uint64_t frame = run.first; frame < run.end(); ++frame) {
        if (findings.has_failed()) return;
        const Status looked = Look(reader, frame, run.end() - frame, options.depth, use);
        if (!looked.ok()) findings.Add(frame, looked.error());
      }
      if (options.progress != nullptr && !findings.has_failed()) {
        options.progress->bytes_done += checkpoint.layout().BytesIn(run);
      }
    }
  });
  if (is_cancelled()) return Error{Code::kCancelled, "reading " + checkpoint.dir() + ": cancelled"};
  return findings.Take();
}

std::vector<FrameRange> FramesOfTensors(const Layout& layout, const std::vector<size_t>& tensors) {
  std::vector<FrameRange> ranges;
  for (const size_t tensor : tensors) {
    const FrameRange range = layout.FramesOf(tensor);
    if (range.count > 0) ranges.push_back(range);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const FrameRange& a, const FrameRange& b) { return a.first < b.first; });
  std::vector<FrameRange> merged;
  for (const FrameRange& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().end()) {
      FrameRange& last = merged.back();
      last.count = std::max(last.end(), range.end()) - last.first;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace keel
