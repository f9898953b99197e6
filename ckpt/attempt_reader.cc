// Opens what is left of an attempt, and reads frames, with whatever can prove them.
#include "ckpt/attempt_reader.h"

#include <array>

#include "base/file_helpers.h"
#include "base/object_files.h"
#include "base/text.h"
#include "ckpt/away.h"
#include "ckpt/checkpoint.h"
#include "ckpt/names.h"

namespace keel {
namespace {

using ShardResult = Result<std::unique_ptr<ShardReader>>;

Error Broken(std::string why) { return {Code::kCorrupt, std::move(why)}; }

// What a shard says about the checkpoint, if it is a shard of this attempt by name and by header.
Result<Description> DescribedBy(const ShardReader& shard, const ShardName& name) {
  KEEL_TRY_ASSIGN(ParsedDescription parsed, ParseDescriptionText(shard.description_text()));
  KEEL_TRY(CheckShardFits(shard, parsed.description, name));
  return std::move(parsed.description);
}

// Whether the header, which has no digest of its own, agrees with the shard's name.
Status CheckHeader(File& file, const ShardName& name, const Layout& layout, uint64_t step) {
  std::array<std::byte, kShardHeaderBytes> bytes;
  KEEL_TRY_ASSIGN(const size_t got, file.ReadAt(0, bytes));
  if (got < bytes.size()) return Broken("it ends within its header");
  KEEL_TRY_ASSIGN(const ShardHeader header, ParseShardHeader(bytes));
  const bool is_same = header.version == kFormatVersion && header.attempt == name.attempt &&
                       header.part == name.part && header.parts == name.parts &&
                       header.step == step && header.frame_bytes == layout.frame_bytes() &&
                       header.frames == layout.PartOf(name.part, name.parts);
  return is_same ? Ok() : Broken("its header does not fit its name and the other shards");
}

}  // namespace

Result<std::unique_ptr<AttemptReader>> AttemptReader::Open(Files& files,
                                                           const std::string& step_dir,
                                                           const std::string& attempt,
                                                           uint32_t parts,
                                                           const Manifest* manifest) {
  KEEL_CHECK(parts > 0 && parts <= kShardsMax, parts);
  std::unique_ptr<AttemptReader> reader(
      new AttemptReader(attempt, parts, IsInBucket(files, step_dir)));
  KEEL_TRY_ASSIGN(std::vector<ShardResult> shards, reader->OpenAll(files, step_dir));
  KEEL_TRY(reader->Describe(shards, manifest));
  for (uint32_t part = 0; part < parts; ++part) {
    const std::string path = JoinPath(step_dir, ShardFileName({attempt, part, parts}));
    KEEL_TRY(reader->TakeShard(files, path, part, std::move(shards[part]), manifest));
  }
  return reader;
}

bool AttemptReader::SaysNothing(const std::string& path, const Error& error) const {
  return IsAway(in_bucket_, error.code) || IsRefused(path, error);
}

Result<std::vector<ShardResult>> AttemptReader::OpenAll(Files& files,
                                                        const std::string& step_dir) const {
  std::vector<ShardResult> shards;
  for (uint32_t part = 0; part < parts(); ++part) {
    const std::string path = JoinPath(step_dir, ShardFileName({attempt_, part, parts()}));
    shards.push_back(ShardReader::Open(files, path));
    const ShardResult& shard = shards.back();
    if (!shard.ok() && SaysNothing(path, shard.error())) return shard.error();
  }
  return shards;
}

Status AttemptReader::Describe(const std::vector<ShardResult>& shards, const Manifest* manifest) {
  if (manifest != nullptr) {
    description_ = manifest->description;
    return Ok();
  }
  std::string why;
  for (uint32_t part = 0; part < parts(); ++part) {
    const ShardResult& shard = shards[part];
    auto described = shard.ok() ? DescribedBy(**shard, {attempt_, part, parts()})
                                : Result<Description>(shard.error());
    if (described.ok()) {
      description_ = std::move(*described);
      return Ok();
    }
    const bool is_there = shard.ok() || shard.error().code != Code::kNotFound;
    if (is_there) why += "\n  " + described.error().message;
  }
  return Error{Code::kCorrupt, "attempt " + attempt_ + ": no manifest, and no shard of it that is "
                               "whole enough to say which tensors there were" + why};
}

Status AttemptReader::TakeShard(Files& files, const std::string& path, uint32_t part,
                                ShardResult shard, const Manifest* manifest) {
  Part& taken = parts_[part];
  if (!shard.ok()) {
    const Code code = shard.error().code;
    taken.trouble = code == Code::kNotFound ? "shard " + path + " is missing"
                                            : shard.error().message;
    const bool has_bytes = code == Code::kCorrupt || code == Code::kIo;
    return has_bytes ? Hunt(files, path, part, manifest != nullptr) : Ok();
  }
  Status fits = CheckShardFits(**shard, description_, {attempt_, part, parts()});
  if (fits.ok() && manifest != nullptr && (*shard)->digest() != manifest->shards[part].digest) {
    fits = Broken("shard " + path + ": it is another one than the manifest names");
  }
  if (!fits.ok()) {
    taken.trouble = fits.error().message;
    return Ok();
  }
  taken.reader = std::move(*shard);
  size_t piece = 0;
  const FrameRange frames = taken.reader->header().frames;
  for (uint64_t frame = frames.first; frame < frames.end(); ++frame) {
    taken.first_piece.push_back(piece);
    piece += layout().PieceCount(frame);
  }
  return Ok();
}

Status AttemptReader::Hunt(Files& files, const std::string& path, uint32_t part,
                           bool has_manifest) {
  Part& hunted = parts_[part];
  auto file = files.Open(path, {.sequential = true});
  if (!file.ok()) return SaysNothing(path, file.error()) ? Status(file.error()) : Ok();
  // A manifest's digests show whether frames are the right ones; without it the header must.
  if (!has_manifest) {
    const Status header =
        CheckHeader(**file, {attempt_, part, parts()}, layout(), description_.step);
    if (!header.ok()) {
      if (IsAway(in_bucket_, header.error().code)) return header;
      hunted.trouble += "; " + header.error().message;
      return Ok();
    }
  }
  hunted.file = std::move(*file);
  const FrameRange frames = layout().PartOf(part, parts());
  KEEL_TRY_ASSIGN(hunted.spots, HuntFrames(*hunted.file, in_bucket_, layout(), frames));
  if (!has_manifest) hunted.spots = InTheirPlace(hunted.spots, frames);
  return Ok();
}

uint32_t AttemptReader::PartOfFrame(uint64_t frame) const {
  // All parts have the same number of frames, give or take one, so the guess is at most one off.
  const uint64_t frames = layout().frame_count();
  auto part = static_cast<uint32_t>(frame * parts() / frames);
  while (frame >= layout().PartOf(part, parts()).end()) ++part;
  while (frame < layout().PartOf(part, parts()).first) --part;
  return part;
}

std::vector<FrameRange> AttemptReader::FoundFrames(uint32_t part) const {
  const Part& one = parts_.at(part);
  if (one.reader != nullptr) return {layout().PartOf(part, parts())};
  std::vector<FrameRange> found;
  for (const auto& [frame, spots] : one.spots) {
    if (found.empty() || found.back().end() != frame) found.push_back({frame, 0});
    ++found.back().count;
  }
  return found;
}

// All such frames get the same words, so that they are reported as one.
std::string AttemptReader::LostReason(uint32_t part) const {
  const Part& one = parts_.at(part);
  return one.trouble + (one.file == nullptr ? "" : "; what was here is gone");
}

Status AttemptReader::Read(uint64_t frame, Scratch* scratch) const {
  const Part& part = parts_.at(PartOfFrame(frame));
  scratch->content.resize(layout().Frame(frame).bytes);
  return part.reader != nullptr ? ReadWithFooter(part, frame, scratch)
                                : ReadHunted(part, frame, scratch);
}

Status AttemptReader::ReadWithFooter(const Part& part, uint64_t frame, Scratch* scratch) const {
  const size_t index = frame - part.reader->header().frames.first;
  const std::string place = part.reader->Place(index);
  scratch->stored.resize(part.reader->StoredBytes(index, 1));
  KEEL_TRY(part.reader->ReadStored(index, 1, scratch->stored));
  // The digest of the stored bytes decides nothing: those of the content and its pieces prove more,
  // and the damage may be in the padding.
  scratch->is_mended = !part.reader->CheckStored(index, scratch->stored).ok();
  const Status decoded = scratch->coder.Decode(frame, layout().Frame(frame).width, scratch->stored,
                                               scratch->content);
  if (!decoded.ok()) return decoded.error().Doing(place);
  const Digest* expected = part.reader->pieces().data() + part.first_piece[index];
  for (const Piece& piece : layout().PiecesOf(frame)) {
    const auto bytes = std::span<const std::byte>(scratch->content)
                           .subspan(piece.frame_offset, piece.bytes);
    if (DigestOf(bytes) != *expected++) return Broken(place + ": it is not what was written");
  }
  return Ok();
}

Status AttemptReader::ReadHunted(const Part& part, uint64_t frame, Scratch* scratch) const {
  const auto spots = part.spots.find(frame);
  if (spots == part.spots.end()) return Broken(LostReason(PartOfFrame(frame)));
  scratch->is_mended = true;
  Status status = Ok();
  for (const FrameSpot& spot : spots->second) {
    scratch->stored.resize(spot.bytes);
    const auto got = part.file->ReadAt(spot.offset, scratch->stored);
    if (!got.ok() && IsAway(in_bucket_, got.error().code)) return got.error();
    status = !got.ok() ? Status(got.error())
             : *got < spot.bytes
                 ? Status(Broken("the file ends within it"))
                 : scratch->coder.Decode(frame, layout().Frame(frame).width, scratch->stored,
                                         scratch->content);
    if (status.ok()) return status;
    status = status.error().Doing(part.trouble + "; frame " + std::to_string(frame) + " at byte " +
                                  std::to_string(spot.offset));
  }
  return status;
}

std::vector<Digest> AttemptReader::PieceDigests(uint64_t frame,
                                                std::span<const std::byte> content) const {
  const Part& part = parts_.at(PartOfFrame(frame));
  const std::vector<Piece> pieces = layout().PiecesOf(frame);
  std::vector<Digest> digests;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (part.reader != nullptr) {
      const size_t first = part.first_piece[frame - part.reader->header().frames.first];
      digests.push_back(part.reader->pieces()[first + i]);
    } else {
      digests.push_back(DigestOf(content.subspan(pieces[i].frame_offset, pieces[i].bytes)));
    }
  }
  return digests;
}

}  // namespace keel
