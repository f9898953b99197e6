// A pipeline of slots: threads fill them with eight frames each, and write them in order.
#include "ckpt/shard_writer.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file_helpers.h"
#include "ckpt/shard_format.h"
#include "ckpt/slot_buffer.h"
#include "ckpt/wire.h"
#include "ckpt/worker_threads.h"

namespace keel {
namespace {

constexpr uint64_t kSlotsMax = 6;
// How soon a resting thread notices that it is to hurry or to stop.
constexpr Duration kLookPeriod = std::chrono::milliseconds(20);

// Encodes the frames of a slot; each thread has its own.
class SlotFiller {
 public:
  SlotFiller(const Layout& layout, TensorSource& source, CodecChoice choice)
      : layout_(layout), source_(source), choice_(choice) {}

  struct Filled {
    size_t bytes = 0;
    uint64_t content_bytes = 0;
    std::vector<IndexEntry> entries;  // offsets from the slot's start
    std::vector<Digest> pieces;
  };

  // Appends frames to what `into` holds in its first `used` bytes, and pads the slot.
  Result<Filled> Fill(FrameRange frames, size_t used, std::span<std::byte> into);

 private:
  Result<std::span<const std::byte>> Content(const FrameSpan& span,
                                             const std::vector<Piece>& pieces);

  const Layout& layout_;
  TensorSource& source_;
  const CodecChoice choice_;
  FrameCoder coder_;
  std::vector<std::byte> scratch_;
};

Result<SlotFiller::Filled> SlotFiller::Fill(FrameRange frames, size_t used,
                                            std::span<std::byte> into) {
  Filled filled;
  size_t at = used;
  for (uint64_t frame = frames.first; frame < frames.end(); ++frame) {
    const FrameSpan span = layout_.Frame(frame);
    const std::vector<Piece> pieces = layout_.PiecesOf(frame);
    KEEL_TRY_ASSIGN(const auto content, Content(span, pieces));
    const auto encoded = coder_.Encode(frame, span.width, content, choice_, into.subspan(at));
    for (const Piece& piece : pieces) {
      const bool is_all = piece.bytes == span.bytes;
      filled.pieces.push_back(is_all ? encoded.content_digest
                                     : DigestOf(content.subspan(piece.frame_offset, piece.bytes)));
    }
    size_t stored = encoded.bytes;
    if (frame + 1 == frames.end()) {
      const size_t end = RoundUpToSlot(at + stored);
      std::memset(into.data() + at + stored, 0, end - at - stored);
      stored = end - at;
    }
    filled.entries.push_back({at, static_cast<uint32_t>(stored), span.bytes,
                              DigestOf(into.subspan(at, stored))});
    filled.content_bytes += span.bytes;
    at += stored;
  }
  filled.bytes = at;
  return filled;
}

Result<std::span<const std::byte>> SlotFiller::Content(const FrameSpan& span,
                                                       const std::vector<Piece>& pieces) {
  if (pieces.size() == 1 && pieces[0].bytes == span.bytes) {
    const std::byte* at = source_.Borrow(pieces[0].tensor, pieces[0].tensor_offset, span.bytes);
    if (at != nullptr) return std::span(at, span.bytes);
  }
  scratch_.assign(span.bytes, std::byte{0});
  const auto content = std::span(scratch_);
  for (const Piece& piece : pieces) {
    const auto into = content.subspan(piece.frame_offset, piece.bytes);
    const std::byte* at = source_.Borrow(piece.tensor, piece.tensor_offset, piece.bytes);
    if (at != nullptr) {
      std::memcpy(into.data(), at, piece.bytes);
    } else {
      KEEL_TRY(source_.Read(piece.tensor, piece.tensor_offset, into));
    }
  }
  return std::span<const std::byte>(content);
}

class ShardWriter {
 public:
  ShardWriter(File& file, const ShardHeader& header, const Description& description,
              TensorSource& source, const WriteOptions& options);

  Result<ShardSummary> Write();

 private:
  struct Slot {
    enum class State { kFree, kFilling, kFull, kWriting };
    State state = State::kFree;
    SlotBuffer buffer;
    SlotFiller::Filled filled;
  };

  FrameRange BatchFrames(uint64_t batch) const;
  Status Reserve();
  void Work();
  // Both are called with the lock held, release it while they work, and return with it held.
  void FillOne(std::unique_lock<std::mutex>& lock, SlotFiller& filler);
  void WriteOne(std::unique_lock<std::mutex>& lock);
  bool HasRoomToFill() const;
  Duration UntilDue() const;
  void Await(std::unique_lock<std::mutex>& lock);
  bool CanWrite() const;
  void Fail(const Error& error);
  Result<ShardSummary> Finish();

  File& file_;
  const ShardHeader header_;
  const Description& description_;
  TensorSource& source_;
  const WriteOptions options_;
  const uint64_t batches_;
  const size_t slot_bytes_;
  const TimePoint began_ = RealClock().Monotonic();

  std::mutex mutex_;
  std::condition_variable changed_;
  // All below: guarded by mutex_.
  std::vector<Slot> slots_;  // batch b uses slot b % size
  uint64_t next_to_fill_ = 0;
  uint64_t next_to_write_ = 0;
  uint64_t written_ = 0;
  int filling_ = 0;
  int writing_ = 0;
  TimePoint last_end_ = began_;  // of filling or writing a slot
  Duration rested_{0};
  uint64_t at_ = 0;  // where the next slot goes
  std::vector<IndexEntry> entries_;
  std::vector<Digest> pieces_;
  std::optional<Error> error_;
};

ShardWriter::ShardWriter(File& file, const ShardHeader& header, const Description& description,
                         TensorSource& source, const WriteOptions& options)
    : file_(file),
      header_(header),
      description_(description),
      source_(source),
      options_(options),
      batches_((header.frames.count + kSlotFrames - 1) / kSlotFrames),
      slot_bytes_(RoundUpToSlot(kShardHeaderBytes +
                                std::min<uint64_t>(kSlotFrames, header.frames.count) *
                                    StoredBytesMax(header.frame_bytes))),
      slots_(std::min(kSlotsMax, batches_)) {}

FrameRange ShardWriter::BatchFrames(uint64_t batch) const {
  const uint64_t first = header_.frames.first + batch * kSlotFrames;
  return {first, std::min<uint64_t>(kSlotFrames, header_.frames.end() - first)};
}

Result<ShardSummary> ShardWriter::Write() {
  KEEL_TRY(Reserve());
  if (batches_ > 0) {
    RunOnThreads(std::max(1, options_.compress_threads) + std::max(1, options_.write_threads),
                 [this] { Work(); });
  }
  if (error_.has_value()) return *error_;
  return Finish();
}

// Reserves room for all of it, so that a full disk is noticed before the work is done.
Status ShardWriter::Reserve() {
  const uint64_t content = description_.layout.BytesIn(header_.frames);
  if (content == 0) return Ok();
  const uint64_t bytes = RoundUpToSlot(
      kShardHeaderBytes + content + header_.frames.count * kFrameHeaderBytes);
  KEEL_TRY_ASSIGN(const bool reserved, file_.Allocate(bytes));
  // Writes that grow a file run one at a time; once its size is set they can overlap.
  if (reserved && options_.write_threads > 1) KEEL_TRY(file_.Truncate(bytes));
  return Ok();
}

bool ShardWriter::HasRoomToFill() const {
  return next_to_fill_ < batches_ && filling_ < std::max(1, options_.compress_threads) &&
         slots_[next_to_fill_ % slots_.size()].state == Slot::State::kFree;
}

// How long until the next batch may begin.
Duration ShardWriter::UntilDue() const {
  const bool hurries = options_.progress != nullptr && options_.progress->hurry;
  if (options_.spread == Duration(0) || hurries) return Duration(0);
  const auto turn = static_cast<int64_t>(next_to_fill_), turns = static_cast<int64_t>(batches_);
  const TimePoint due = began_ + options_.spread / turns * turn;
  return std::max(due - RealClock().Monotonic(), Duration(0));
}

bool ShardWriter::CanWrite() const {
  return next_to_write_ < batches_ && writing_ < std::max(1, options_.write_threads) &&
         slots_[next_to_write_ % slots_.size()].state == Slot::State::kFull;
}

void ShardWriter::Fail(const Error& error) {
  if (!error_.has_value()) error_ = error;
}

void ShardWriter::Work() {
  SlotFiller filler(description_.layout, source_, {description_.codec, options_.zstd_level});
  std::unique_lock lock(mutex_);
  while (!error_.has_value() && written_ < batches_) {
    if (options_.progress != nullptr && options_.progress->cancel) {
      Fail({Code::kCancelled, "the save was cancelled"});
    } else if (CanWrite()) {
      WriteOne(lock);
    } else if (HasRoomToFill() && UntilDue() == Duration(0)) {
      FillOne(lock, filler);
    } else {
      Await(lock);
      continue;
    }
    changed_.notify_all();
  }
}

// Waits until another thread has done something, or it may be time for the next batch.
void ShardWriter::Await(std::unique_lock<std::mutex>& lock) {
  if (HasRoomToFill()) {
    changed_.wait_for(lock, std::min(UntilDue(), kLookPeriod));
  } else {
    changed_.wait(lock);
  }
}

void ShardWriter::FillOne(std::unique_lock<std::mutex>& lock, SlotFiller& filler) {
  if (writing_ == 0 && options_.spread > Duration(0)) {
    rested_ += RealClock().Monotonic() - last_end_;
  }
  const uint64_t batch = next_to_fill_++;
  Slot& slot = slots_[batch % slots_.size()];
  slot.state = Slot::State::kFilling;
  ++filling_;
  lock.unlock();
  if (slot.buffer.bytes().empty()) slot.buffer = SlotBuffer(slot_bytes_);
  size_t used = 0;
  if (batch == 0) {
    PutShardHeader(header_, slot.buffer.bytes());
    used = kShardHeaderBytes;
  }
  auto filled = filler.Fill(BatchFrames(batch), used, slot.buffer.bytes());
  lock.lock();
  --filling_;
  last_end_ = RealClock().Monotonic();
  if (!filled.ok()) return Fail(filled.error());
  slot.filled = std::move(*filled);
  slot.state = Slot::State::kFull;
}

void ShardWriter::WriteOne(std::unique_lock<std::mutex>& lock) {
  Slot& slot = slots_[next_to_write_++ % slots_.size()];
  slot.state = Slot::State::kWriting;
  ++writing_;
  const uint64_t at = at_;
  at_ += slot.filled.bytes;
  for (IndexEntry entry : slot.filled.entries) {
    entry.offset += at;
    entries_.push_back(entry);
  }
  pieces_.insert(pieces_.end(), slot.filled.pieces.begin(), slot.filled.pieces.end());
  lock.unlock();
  const Status status = file_.WriteAt(at, slot.buffer.bytes().first(slot.filled.bytes));
  if (status.ok() && options_.progress != nullptr) {
    options_.progress->bytes_done += slot.filled.content_bytes;
  }
  lock.lock();
  --writing_;
  last_end_ = RealClock().Monotonic();
  ++written_;
  slot.state = Slot::State::kFree;
  if (!status.ok()) Fail(status.error());
}

Result<ShardSummary> ShardWriter::Finish() {
  // A shard without frames has no slot that carries its header.
  const size_t header_bytes = batches_ == 0 ? kShardHeaderBytes : 0;
  const std::string text = DescriptionText(description_, header_.attempt);
  ShardTail tail;
  tail.index_offset = at_ + header_bytes;
  tail.index_bytes = entries_.size() * kIndexEntryBytes;
  tail.pieces_bytes = pieces_.size() * kDigestBytes;
  tail.description_bytes = text.size();
  const size_t bytes = header_bytes + tail.footer_bytes() + kShardTailBytes;
  const SlotBuffer buffer(RoundUpToSlot(bytes));
  const auto all = buffer.bytes();
  std::memset(all.data(), 0, all.size());

  std::array<std::byte, kShardHeaderBytes> header;
  PutShardHeader(header_, header);
  std::copy_n(header.begin(), header_bytes, all.begin());
  const auto footer = all.subspan(header_bytes, tail.footer_bytes());
  PutIndex(entries_, footer.first(tail.index_bytes));
  WireWriter behind_index(footer.subspan(tail.index_bytes));
  behind_index.PutBytes(std::as_bytes(std::span(pieces_)));
  behind_index.PutBytes(BytesOf(text));
  const auto tail_bytes = all.subspan(header_bytes + footer.size(), kShardTailBytes);
  PutShardTail(tail, tail_bytes);
  tail.shard_digest = ShardDigest(header, footer, tail_bytes);
  PutShardTail(tail, tail_bytes);

  KEEL_TRY(file_.WriteAt(at_, file_.direct() ? all : all.first(bytes)));
  KEEL_TRY(file_.Truncate(at_ + bytes));  // cuts off padding and excess reservation
  KEEL_TRY(file_.Sync());
  return ShardSummary{at_ + bytes, description_.layout.BytesIn(header_.frames), rested_,
                      tail.shard_digest};
}

}  // namespace

namespace {

ShardHeader HeaderOf(const ShardName& name, const Description& description) {
  return {.frame_bytes = description.layout.frame_bytes(),
          .part = name.part,
          .parts = name.parts,
          .frames = description.layout.PartOf(name.part, name.parts),
          .step = description.step,
          .attempt = name.attempt};
}

}  // namespace

uint64_t ShardBytesMax(const ShardName& name, const Description& description) {
  const ShardHeader header = HeaderOf(name, description);
  const uint64_t frames = header.frames.count;
  // A tensor that ends within a frame makes one more piece there.
  const uint64_t pieces = frames + description.layout.tensors().size();
  const uint64_t slots = (frames + kSlotFrames - 1) / kSlotFrames;
  return kShardHeaderBytes + frames * StoredBytesMax(header.frame_bytes) +
         slots * RoundUpToSlot(1) + frames * kIndexEntryBytes + pieces * kDigestBytes +
         DescriptionText(description, name.attempt).size() + kShardTailBytes;
}

Result<ShardSummary> WriteShard(File& file, const ShardName& name, const Description& description,
                                TensorSource& source, const WriteOptions& options) {
  const ShardHeader header = HeaderOf(name, description);
  if (options.progress != nullptr) {
    options.progress->bytes_done = 0;
    options.progress->bytes_total = description.layout.BytesIn(header.frames);
  }
  return ShardWriter(file, header, description, source, options).Write();
}

}  // namespace keel
