// Opens a checkpoint: everything but the frames is checked here.
#include "ckpt/checkpoint.h"

#include <algorithm>

#include "base/file_helpers.h"
#include "base/object_files.h"
#include "base/text.h"
#include "ckpt/away.h"
#include "ckpt/error_list.h"
#include "ckpt/names.h"

namespace keel {
namespace {

Error Broken(std::string why) { return {Code::kCorrupt, std::move(why)}; }

Status CheckAgainst(const ShardReader& shard, const ManifestShard& expected) {
  if (shard.bytes() != expected.bytes) {
    return Broken("shard " + shard.path() + ": it has " + std::to_string(shard.bytes()) +
                  " bytes, the manifest says " + std::to_string(expected.bytes));
  }
  if (shard.digest() == expected.digest) return Ok();
  return Broken("shard " + shard.path() + ": its digest is " + shard.digest().Hex() +
                ", the manifest says " + expected.digest.Hex());
}

}  // namespace

Status CheckShardFits(const ShardReader& shard, const Description& description,
                      const ShardName& name) {
  const auto wrong = [&](const std::string& why) {
    return Broken("shard " + shard.path() + ": " + why);
  };
  const Layout& layout = description.layout;
  const ShardHeader& header = shard.header();
  if (header.attempt != name.attempt || header.part != name.part || header.parts != name.parts ||
      header.step != description.step) {
    return wrong("its header says part " + std::to_string(header.part) + " of " +
                 std::to_string(header.parts) + " of attempt " + header.attempt + " at step " +
                 std::to_string(header.step));
  }
  if (header.frame_bytes != layout.frame_bytes() ||
      header.frames != layout.PartOf(name.part, name.parts)) {
    return wrong("it does not hold the frames of its part");
  }
  const auto described = ParseDescriptionText(shard.description_text());
  if (!described.ok()) return wrong("its description: " + described.error().message);
  // Compares values, not text: another program may write the same number differently.
  if (described->description != description || described->attempt != name.attempt) {
    return wrong("it describes another checkpoint than its manifest or part 0 does (other tensors, "
                 "metadata or options)");
  }
  size_t pieces = 0;
  for (size_t i = 0; i < shard.index().size(); ++i) {
    const uint64_t frame = header.frames.first + i;
    pieces += layout.PieceCount(frame);
    if (shard.index()[i].content_bytes != layout.Frame(frame).bytes) {
      return wrong("frame " + std::to_string(frame) + " has another size than the layout gives it");
    }
  }
  if (pieces == shard.pieces().size()) return Ok();
  return wrong(std::to_string(shard.pieces().size()) + " pieces, the layout has " +
               std::to_string(pieces));
}

std::vector<Digest> CombineTensorDigests(const Layout& layout,
                                         const std::vector<std::unique_ptr<ShardReader>>& shards) {
  std::vector<std::vector<Digest>> pieces(layout.tensors().size());
  for (const auto& shard : shards) {
    size_t next = 0;
    const FrameRange frames = shard->header().frames;
    for (uint64_t frame = frames.first; frame < frames.end(); ++frame) {
      for (const Piece& piece : layout.PiecesOf(frame)) {
        pieces[piece.tensor].push_back(shard->pieces().at(next++));
      }
    }
  }
  std::vector<Digest> digests;
  digests.reserve(pieces.size());
  for (const auto& of_tensor : pieces) digests.push_back(TensorDigest(of_tensor));
  return digests;
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(Files& files, const std::string& step_dir) {
  KEEL_TRY_ASSIGN(Manifest manifest, ReadManifest(files, step_dir));
  std::unique_ptr<Checkpoint> checkpoint(
      new Checkpoint(step_dir, IsInBucket(files, step_dir), std::move(manifest)));
  KEEL_TRY(checkpoint->OpenShards(files));
  return checkpoint;
}

Status Checkpoint::OpenShards(Files& files) {
  ErrorList errors;
  const auto parts = static_cast<uint32_t>(manifest_.shards.size());
  for (uint32_t part = 0; part < parts; ++part) {
    const ManifestShard& expected = manifest_.shards[part];
    auto shard = ShardReader::Open(files, JoinPath(dir_, expected.file));
    Status status = shard.ok() ? CheckAgainst(**shard, expected) : Status(shard.error());
    if (status.ok()) {
      status = CheckShardFits(**shard, manifest_.description, {manifest_.attempt, part, parts});
    }
    if (status.ok()) {
      shards_.push_back(std::move(*shard));
    } else if (IsAway(in_bucket_, status.error().code)) {
      return status.error().Doing("checkpoint " + dir_);   // each of the others would wait as long
    } else {
      errors.Add(status.error());
    }
  }
  KEEL_TRY(errors.ToStatus("checkpoint " + dir_));

  const std::vector<Digest> found = CombineTensorDigests(layout(), shards_);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == manifest_.tensor_digests[i]) continue;
    errors.Add(Code::kCorrupt, "tensor " + Shown(layout().tensors()[i].spec.name) +
                                   ": its digest does not follow from its pieces");
  }
  for (const auto& shard : shards_) {
    std::vector<size_t> first{0};
    for (size_t i = 0; i < shard->index().size(); ++i) {
      first.push_back(first.back() + layout().PieceCount(shard->header().frames.first + i));
    }
    first_piece_.push_back(std::move(first));
  }
  return errors.ToStatus("checkpoint " + dir_);
}

uint64_t Checkpoint::stored_bytes() const {
  uint64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->bytes();
  return bytes;
}

Checkpoint::FramePlace Checkpoint::Locate(uint64_t frame) const {
  const auto after = std::upper_bound(
      shards_.begin(), shards_.end(), frame,
      [](uint64_t number, const auto& shard) { return number < shard->header().frames.end(); });
  KEEL_CHECK(after != shards_.end(), "frame " << frame);
  const ShardReader& shard = **after;
  const size_t index = frame - shard.header().frames.first;
  const size_t first = first_piece_[after - shards_.begin()][index];
  return {&shard, index, shard.pieces().data() + first};
}

}  // namespace keel
