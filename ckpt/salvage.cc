// Looks at every attempt in a step's directory, chooses one, and writes it anew.
#include "ckpt/salvage.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/object_files.h"
#include "base/text.h"
#include "ckpt/away.h"
#include "ckpt/catalog.h"
#include "ckpt/names.h"
#include "ckpt/verify.h"
#include "ckpt/worker_threads.h"

namespace keel {
namespace {

using AttemptKey = std::pair<std::string, uint32_t>;  // name, number of parts

struct Found {
  std::optional<Manifest> manifest;
  std::string manifest_trouble;  // why there is none, or it is in the wrong place
  std::set<AttemptKey> attempts;
  std::set<std::string> live;
};

// An error only if the store is away or the disk refuses to open it, or if the digest fits, but the
// manifest cannot be read: it is of a newer version.
Status LookAtManifest(Files& files, const std::string& step_dir, Found* found) {
  auto manifest = ReadManifest(files, step_dir);
  if (!manifest.ok()) {
    const Error& error = manifest.error();
    const bool says_nothing = IsAway(IsInBucket(files, step_dir), error.code) ||
                              IsRefused(JoinPath(step_dir, kManifestName), error);
    if (says_nothing || error.code == Code::kInvalid) return error;
    found->manifest_trouble =
        error.code == Code::kNotFound ? "there is no manifest" : error.message;
    return Ok();
  }
  const Status named = CheckDirName(step_dir, manifest->description.step);
  if (!named.ok()) found->manifest_trouble = named.error().message;
  found->attempts.emplace(manifest->attempt, static_cast<uint32_t>(manifest->shards.size()));
  found->manifest = std::move(*manifest);
  return Ok();
}

Result<Found> LookInto(Files& files, const std::string& step_dir) {
  Found found;
  KEEL_TRY_ASSIGN(const auto entries, files.List(step_dir));
  KEEL_TRY(LookAtManifest(files, step_dir, &found));
  for (const DirEntry& entry : entries) {
    const StepFile file = ParseStepFile(entry.name);
    if (file.kind == StepFile::Kind::kShard) {
      found.attempts.emplace(file.shard.attempt, file.shard.parts);
    } else if (file.kind == StepFile::Kind::kShardLock) {
      // If the lock cannot be checked, as on a disk mounted read-only, nobody writes.
      const Result<bool> held = files.IsLocked(JoinPath(step_dir, entry.name));
      if (held.ok() && *held) found.live.insert(file.shard.attempt);
    }
  }
  return found;
}

// What became of the frames of one attempt.
struct FrameFates {
  std::mutex mutex;
  std::map<uint64_t, LostFrames> lost;
  std::map<uint64_t, std::vector<Digest>> hunted;  // piece digests of frames without a footer
  uint64_t mended = 0;
  std::optional<Error> away;                       // then the others say nothing
};

// Frames that lie in several places, counted through.
class FrameList {
 public:
  void Add(FrameRange range) {
    if (range.count == 0) return;
    ranges_.push_back(range);
    ends_.push_back(count() + range.count);
  }
  uint64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  uint64_t At(uint64_t index) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    return ranges_[static_cast<size_t>(end - ends_.begin())].end() - (*end - index);
  }

 private:
  std::vector<FrameRange> ranges_;
  std::vector<uint64_t> ends_;   // how many there are up to the end of each
};

// Notes the frames that nobody can read, which a manifest may claim by the billion, and returns the
// others.
FrameList FindFrames(const AttemptReader& reader, const ScanOptions& options, FrameFates* fates) {
  FrameList found;
  for (uint32_t part = 0; part < reader.parts(); ++part) {
    const FrameRange all = reader.layout().PartOf(part, reader.parts());
    uint64_t at = all.first;
    const auto lose_up_to = [&](uint64_t end) {
      if (at == end) return;
      fates->lost[at] = {end - at, reader.LostReason(part)};
      if (options.progress != nullptr) {
        options.progress->bytes_done += reader.layout().BytesIn({at, end - at});
      }
    };
    for (const FrameRange& range : reader.FoundFrames(part)) {
      lose_up_to(range.first);
      found.Add(range);
      at = range.end();
    }
    lose_up_to(all.end());
  }
  return found;
}

Status ReadAllFrames(const AttemptReader& reader, const ScanOptions& options, FrameFates* fates) {
  const FrameList found = FindFrames(reader, options, fates);
  std::atomic<uint64_t> next{0};
  std::atomic<bool> is_away{false};
  RunOnThreads(options.threads, [&] {
    AttemptReader::Scratch scratch;
    for (uint64_t index = next++; index < found.count(); index = next++) {
      const uint64_t frame = found.At(index);
      if (options.progress != nullptr && options.progress->cancel.load()) return;
      if (is_away) return;
      const Status status = reader.Read(frame, &scratch);
      const bool has_footer = reader.HasFooter(reader.PartOfFrame(frame));
      std::vector<Digest> pieces;
      if (status.ok() && !has_footer) pieces = reader.PieceDigests(frame, scratch.content);
      const std::lock_guard lock(fates->mutex);
      if (!status.ok() && IsAway(reader.in_bucket(), status.error().code)) {
        fates->away = status.error();
        is_away = true;
        return;
      }
      if (!status.ok()) {
        fates->lost[frame] = {1, status.error().message};
      } else {
        if (!has_footer) fates->hunted[frame] = std::move(pieces);
        if (scratch.is_mended) ++fates->mended;
      }
      if (options.progress != nullptr) {
        options.progress->bytes_done += reader.layout().Frame(frame).bytes;
      }
    }
  });
  return fates->away ? Status(*fates->away) : Ok();
}

// The digest of a tensor whose frames have all been read.
Digest DigestOfRead(const AttemptReader& reader, const FrameFates& fates, size_t tensor) {
  std::vector<Digest> digests;
  const FrameRange frames = reader.layout().FramesOf(tensor);
  for (uint64_t frame = frames.first; frame < frames.end(); ++frame) {
    const auto hunted = fates.hunted.find(frame);
    const std::vector<Digest> of_frame =
        hunted != fates.hunted.end() ? hunted->second : reader.PieceDigests(frame, {});
    const std::vector<Piece> pieces = reader.layout().PiecesOf(frame);
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].tensor == tensor) digests.push_back(of_frame[i]);
    }
  }
  return TensorDigest(digests);
}

// Frames that are proved only by themselves could belong to another tensor.
void AskManifest(const AttemptReader& reader, const FrameFates& frames, const Manifest& manifest,
                 std::vector<TensorFate>* tensors) {
  for (size_t i = 0; i < tensors->size(); ++i) {
    const uint64_t bytes = reader.layout().tensors()[i].bytes;
    if (bytes == 0 || !(*tensors)[i].is_whole()) continue;
    if (DigestOfRead(reader, frames, i) == manifest.tensor_digests[i]) continue;
    const uint64_t elements = bytes / DtypeBytes(reader.layout().tensors()[i].spec.dtype);
    (*tensors)[i].lost.push_back({0, elements - 1, "it is not what the manifest's digest says"});
  }
}

Status Assess(const AttemptReader& reader, const Manifest* manifest, const ScanOptions& options,
              AttemptFate* fate) {
  for (uint32_t part = 0; part < reader.parts(); ++part) {
    if (!reader.Trouble(part).empty()) fate->shard_troubles.push_back(reader.Trouble(part));
  }
  FrameFates frames;
  KEEL_TRY(ReadAllFrames(reader, options, &frames));
  fate->layout = reader.layout();
  fate->mended_frames = frames.mended;
  fate->tensors = JudgeTensors(fate->layout, frames.lost);
  if (manifest != nullptr) AskManifest(reader, frames, *manifest, &fate->tensors);
  return Ok();
}

// Tensors of an attempt, as the new checkpoint's writer asks for them: in the order of its frames.
class SalvageSource : public TensorSource {
 public:
  // `tensors`: for each new tensor, its index in the attempt.
  SalvageSource(const AttemptReader& reader, std::vector<size_t> tensors)
      : reader_(reader), tensors_(std::move(tensors)) {}

  const std::byte* Borrow(size_t, uint64_t, size_t) override { return nullptr; }

  Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into) override {
    const std::lock_guard lock(mutex_);
    const uint64_t frame_bytes = reader_.layout().frame_bytes();
    uint64_t at = reader_.layout().tensors()[tensors_.at(tensor)].offset + offset;
    while (!into.empty()) {
      KEEL_TRY(Load(at / frame_bytes));
      const size_t skip = at % frame_bytes;
      const size_t count = std::min(into.size(), scratch_.content.size() - skip);
      std::memcpy(into.data(), scratch_.content.data() + skip, count);
      into = into.subspan(count);
      at += count;
    }
    return Ok();
  }

 private:
  Status Load(uint64_t frame) {
    if (loaded_ == frame) return Ok();
    loaded_.reset();
    KEEL_TRY(reader_.Read(frame, &scratch_));
    loaded_ = frame;
    return Ok();
  }

  const AttemptReader& reader_;
  const std::vector<size_t> tensors_;
  std::mutex mutex_;
  AttemptReader::Scratch scratch_;  // guarded by mutex_
  std::optional<uint64_t> loaded_;  // the frame in scratch_
};

// Checks that the place is free: then it is not the damaged one's, by whatever path.
Status CheckPlace(Files& files, const std::string& root, uint64_t step) {
  const std::string step_dir = JoinPath(root, StepDirName(step));
  KEEL_TRY_ASSIGN(const bool is_there, Exists(files, step_dir));
  if (is_there) {
    return Error{Code::kExists, step_dir + " is there already: a repair goes to a new place, never "
                                           "over what it reads"};
  }
  const auto entries = files.List(root);
  if (!entries.ok()) {
    if (entries.error().code == Code::kNotFound) return Ok();
    return entries.error();
  }
  for (const DirEntry& entry : *entries) {
    if (ParseStepFile(entry.name).kind == StepFile::Kind::kForeign) continue;
    return Error{Code::kInvalid, root + " is a checkpoint itself (it holds " + entry.name +
                                     "): name a directory for checkpoints"};
  }
  return Ok();
}

// The names that an earlier repair has noted, and those lost now.
Json LostNames(const Description& description, const AttemptFate& fate) {
  Json names = Json::array();
  const auto earlier = description.user.find(std::string(kRepairLostKey));
  if (earlier != description.user.end()) {
    const auto parsed = ParseJson(earlier->second);
    if (parsed.ok() && parsed->is_array()) names = *parsed;
  }
  for (size_t i = 0; i < fate.tensors.size(); ++i) {
    if (!fate.tensors[i].is_whole()) names.push_back(fate.layout.tensors()[i].spec.name);
  }
  return names;
}

}  // namespace

uint64_t AttemptFate::whole_count() const {
  return static_cast<uint64_t>(std::count_if(
      tensors.begin(), tensors.end(), [](const TensorFate& tensor) { return tensor.is_whole(); }));
}

uint64_t AttemptFate::whole_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_whole()) bytes += layout.tensors()[i].bytes;
  }
  return bytes;
}

AttemptDecision DecideAttempt(const std::vector<AttemptFate>& fates) {
  const auto rank = [](const AttemptFate& fate) {
    return std::make_tuple(fate.is_whole(), fate.whole_bytes(), fate.whole_count(),
                           fate.is_committed);
  };
  AttemptDecision decision;
  for (size_t i = 0; i < fates.size(); ++i) {
    // Empty tensors are always whole; an attempt with nothing else is useless.
    const bool is_usable = fates[i].trouble.empty() && !fates[i].is_live &&
                           (fates[i].whole_bytes() > 0 || fates[i].is_whole());
    if (!is_usable) continue;
    if (!decision.chosen || rank(fates[i]) > rank(fates[*decision.chosen])) decision.chosen = i;
  }
  if (!decision.chosen) {
    decision.reason = "nothing is whole";
    return decision;
  }
  const AttemptFate& best = fates[*decision.chosen];
  if (fates.size() == 1) {
    decision.reason = "the only attempt";
  } else if (best.is_whole()) {
    decision.reason = best.is_committed ? "the committed attempt, whole"
                                        : "whole, though it was never committed";
  } else {
    decision.reason = best.is_committed ? "the committed attempt; none has more whole bytes"
                                        : "the most whole bytes";
  }
  return decision;
}

std::vector<TensorFate> JudgeTensors(const Layout& layout,
                                     const std::map<uint64_t, LostFrames>& lost_frames) {
  std::vector<TensorFate> fates(layout.tensors().size());
  for (const auto& [first, frames] : lost_frames) {
    const std::string& reason = frames.reason;
    for (const TensorHit& hit : HitBy(layout, FrameRange{first, frames.count})) {
      std::vector<LostRange>& lost = fates[hit.tensor].lost;
      const bool goes_on =
          !lost.empty() && lost.back().last + 1 == hit.first && lost.back().reason == reason;
      if (goes_on) {
        lost.back().last = hit.last;
      } else {
        lost.push_back({hit.first, hit.last, reason});
      }
    }
  }
  return fates;
}

Result<std::unique_ptr<Salvage>> Salvage::Survey(Files& files, const std::string& step_dir,
                                                 const std::string& only_attempt,
                                                 const ScanOptions& options) {
  std::unique_ptr<Salvage> salvage(new Salvage(step_dir));
  KEEL_TRY(salvage->Look(files, only_attempt, options));
  return salvage;
}

Status Salvage::Look(Files& files, const std::string& only_attempt, const ScanOptions& options) {
  KEEL_TRY_ASSIGN(Found found, LookInto(files, step_dir_));
  manifest_trouble_ = found.manifest_trouble;
  std::string names;
  for (const auto& [attempt, parts] : found.attempts) {
    names += (names.empty() ? "" : ", ") + attempt;
    if (!only_attempt.empty() && attempt != only_attempt) continue;
    const bool is_committed = found.manifest.has_value() && found.manifest->attempt == attempt &&
                              found.manifest->shards.size() == parts;
    AttemptFate fate{.attempt = attempt, .is_committed = is_committed};
    fate.is_live = found.live.count(attempt) > 0;
    if (fate.is_live) fate.trouble = "attempt " + attempt + " is being written: left alone";
    readers_.push_back(nullptr);
    if (!fate.is_live) {
      auto reader = AttemptReader::Open(files, step_dir_, attempt, parts,
                                        is_committed ? &*found.manifest : nullptr);
      if (reader.ok()) {
        readers_.back() = std::move(*reader);
      } else if (IsAway(IsInBucket(files, step_dir_), reader.error().code) ||
                 reader.error().code == Code::kIo) {
        return reader.error();
      } else {
        fate.trouble = reader.error().message;
      }
    }
    fates_.push_back(std::move(fate));
  }
  if (fates_.empty()) {
    return Error{Code::kNotFound, "nothing to repair in " + step_dir_ + ": " +
                                      (names.empty() ? "it holds no shard"
                                                     : "no attempt " + Shown(only_attempt) +
                                                           " there, only " + names)};
  }
  if (options.progress != nullptr) {
    for (const auto& reader : readers_) {
      if (reader == nullptr) continue;
      const Layout& layout = reader->layout();
      options.progress->bytes_total += layout.BytesIn({0, layout.frame_count()});
    }
  }
  for (size_t i = 0; i < fates_.size(); ++i) {
    if (readers_[i] == nullptr) continue;
    KEEL_TRY(Assess(*readers_[i], fates_[i].is_committed ? &*found.manifest : nullptr, options,
                    &fates_[i]));
  }
  if (options.progress != nullptr && options.progress->cancel.load()) {
    return Error{Code::kCancelled, "reading " + step_dir_ + ": cancelled"};
  }
  decision_ = DecideAttempt(fates_);
  return Ok();
}

bool Salvage::needs_no_repair() const {
  if (!decision_.chosen) return false;
  const AttemptFate& fate = fates_[*decision_.chosen];
  return manifest_trouble_.empty() && fate.is_committed && fate.is_whole() &&
         fate.shard_troubles.empty() && fate.mended_frames == 0;
}

Result<SavePlan> Salvage::PlanFor(const std::string& root, const std::string& new_attempt,
                                  const std::vector<size_t>& tensors) const {
  const AttemptFate& fate = fates_[*decision_.chosen];
  const Description& old = readers_[*decision_.chosen]->description();
  std::vector<TensorSpec> specs;
  for (const size_t tensor : tensors) specs.push_back(fate.layout.tensors()[tensor].spec);
  SavePlan plan{.root = root, .attempt = new_attempt};
  plan.description.step = old.step;
  plan.description.codec = old.codec;
  plan.description.metadata = old.metadata;
  plan.description.user = old.user;
  KEEL_TRY_ASSIGN(plan.description.layout,
                  Layout::Make(std::move(specs), old.layout.frame_bytes()));
  auto& user = plan.description.user;
  const Json lost = LostNames(old, fate);
  const std::string of_all =
      std::to_string(fate.whole_count() + lost.size()) + " tensors of " +
      (fate.is_committed ? "a committed" : "an uncommitted") + " attempt";
  user[std::string(kRepairKey)] = lost.empty() ? "all of " + of_all
                                               : std::to_string(fate.whole_count()) + " of " +
                                                     of_all + "; the others are lost";
  // A path may hold bytes that JSON cannot.
  user[std::string(kRepairedFromKey)] = QuoteForLog(step_dir_) + ", attempt " + fate.attempt;
  if (!lost.empty()) user[std::string(kRepairLostKey)] = DumpJson(lost);
  return plan;
}

Result<CommitReport> Salvage::Write(Files& files, const std::string& root,
                                    const std::string& new_attempt, int64_t saved_at_ns,
                                    const WriteOptions& options) const {
  if (!decision_.chosen) {
    return Error{Code::kInvalid, "nothing in " + step_dir_ + " is whole: nothing to write"};
  }
  const AttemptReader& reader = *readers_[*decision_.chosen];
  KEEL_TRY(CheckPlace(files, root, reader.description().step));
  const AttemptFate& fate = fates_[*decision_.chosen];
  std::vector<size_t> tensors;
  for (size_t i = 0; i < fate.tensors.size(); ++i) {
    if (fate.tensors[i].is_whole()) tensors.push_back(i);
  }
  KEEL_TRY_ASSIGN(SavePlan plan, PlanFor(root, new_attempt, tensors));
  SalvageSource source(reader, std::move(tensors));
  return SaveCheckpoint(files, std::move(plan), source, options, saved_at_ns);
}

}  // namespace keel
