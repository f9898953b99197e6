// Checks coverage, then makes one or two passes over the frames.
#include "ckpt/restore.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/text.h"
#include "ckpt/error_list.h"
#include "ckpt/glob.h"
#include "ckpt/verify.h"

namespace keel {
namespace {

bool IsWanted(const std::vector<std::string>& only, const std::string& name) {
  if (only.empty()) return true;
  return std::any_of(only.begin(), only.end(), [&](const std::string& pattern) {
    return GlobMatches(pattern, name);
  });
}

// The target of each tensor of the checkpoint, by index in the layout.
using Assignment = std::vector<std::optional<size_t>>;

void CheckTarget(const RestoreTarget& target, const PlacedTensor& placed, ErrorList* errors) {
  const std::string name = "tensor " + Shown(target.spec.name);
  if (target.spec != placed.spec) {
    errors->Add(Code::kInvalid, name + ": the checkpoint has " + TypeText(placed.spec) +
                                    ", the program " + TypeText(target.spec));
  } else if (target.into.size() != placed.bytes) {
    errors->Add(Code::kInvalid, name + ": the program gives " +
                                    std::to_string(target.into.size()) + " bytes of memory for " +
                                    std::to_string(placed.bytes));
  }
}

void CheckPatterns(const Layout& layout, const std::vector<std::string>& only, ErrorList* errors) {
  for (const std::string& pattern : only) {
    const auto& tensors = layout.tensors();
    const bool matches = std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
      return GlobMatches(pattern, tensor.spec.name);
    });
    if (!matches) errors->Add(Code::kInvalid, "pattern " + Shown(pattern) + " matches no tensor");
  }
}

Result<Assignment> Assign(const Checkpoint& checkpoint, const std::vector<RestoreTarget>& targets,
                          const std::vector<std::string>& only) {
  const Layout& layout = checkpoint.layout();
  Assignment assignment(layout.tensors().size());
  ErrorList errors;
  CheckPatterns(layout, only, &errors);
  for (size_t i = 0; i < targets.size(); ++i) {
    const TensorSpec& spec = targets[i].spec;
    if (!IsWanted(only, spec.name)) continue;
    const auto tensor = layout.Find(spec.name);
    if (!tensor.has_value()) {
      errors.Add(Code::kInvalid, "tensor " + Shown(spec.name) + " (" + TypeText(spec) +
                                     "): missing in the checkpoint");
    } else if (assignment[*tensor].has_value()) {
      errors.Add(Code::kInvalid, "tensor " + Shown(spec.name) + ": the program has it twice");
    } else {
      assignment[*tensor] = i;
      CheckTarget(targets[i], layout.tensors()[*tensor], &errors);
    }
  }
  for (size_t i = 0; i < assignment.size(); ++i) {
    const TensorSpec& spec = layout.tensors()[i].spec;
    if (assignment[i].has_value() || !IsWanted(only, spec.name)) continue;
    errors.Add(Code::kInvalid, "tensor " + Shown(spec.name) + " (" + TypeText(spec) +
                                   "): in the checkpoint, but not in the program");
  }
  KEEL_TRY(errors.ToStatus("restore of " + checkpoint.dir()));
  return assignment;
}

// The `part`-th share of the frames in `ranges`.
std::vector<FrameRange> ShareOf(const std::vector<FrameRange>& ranges, uint32_t part,
                                uint32_t parts) {
  uint64_t count = 0;
  for (const FrameRange& range : ranges) count += range.count;
  const uint64_t first = count * part / parts;
  const uint64_t end = count * (part + 1) / parts;
  std::vector<FrameRange> share;
  uint64_t at = 0;
  for (const FrameRange& range : ranges) {
    const uint64_t from = std::max(first, at);
    const uint64_t to = std::min(end, at + range.count);
    if (from < to) share.push_back({range.first + (from - at), to - from});
    at += range.count;
  }
  return share;
}

void NoteFilled(const Layout& layout, const Assignment& assignment,
                const std::vector<FrameRange>& ranges, RestoreReport* report) {
  std::map<std::pair<size_t, uint64_t>, uint64_t> filled;  // (target, offset) -> bytes
  for (const FrameRange& range : ranges) {
    report->frames += range.count;
    for (uint64_t frame = range.first; frame < range.end(); ++frame) {
      for (const Piece& piece : layout.PiecesOf(frame)) {
        const auto& target = assignment[piece.tensor];
        if (target.has_value()) filled[{*target, piece.tensor_offset}] = piece.bytes;
      }
    }
  }
  for (const auto& [place, bytes] : filled) {
    report->bytes += bytes;
    auto& all = report->filled;
    if (!all.empty() && all.back().target == place.first &&
        all.back().offset + all.back().bytes == place.second) {
      all.back().bytes += bytes;
    } else {
      all.push_back({place.first, place.second, bytes});
    }
  }
}

}  // namespace

Result<RestoreReport> Restore(const Checkpoint& checkpoint,
                              const std::vector<RestoreTarget>& targets,
                              const RestoreOptions& options) {
  KEEL_CHECK(options.part < options.parts, options.part << " of " << options.parts);
  KEEL_TRY_ASSIGN(const Assignment assignment, Assign(checkpoint, targets, options.only));
  const Layout& layout = checkpoint.layout();
  std::vector<size_t> wanted;
  for (size_t i = 0; i < assignment.size(); ++i) {
    if (assignment[i].has_value()) wanted.push_back(i);
  }
  const auto ranges = ShareOf(FramesOfTensors(layout, wanted), options.part, options.parts);
  const ScanOptions scan{options.threads, options.progress};
  const bool verify_first = options.into == Into::kLive;
  if (options.progress != nullptr) {
    uint64_t bytes = 0;
    for (const FrameRange& range : ranges) bytes += layout.BytesIn(range);
    options.progress->bytes_total = verify_first ? 2 * bytes : bytes;
    options.progress->bytes_done = 0;
  }
  if (verify_first) {
    KEEL_TRY_ASSIGN(const auto damages, ScanFrames(checkpoint, ranges, scan, nullptr));
    KEEL_TRY(DamageStatus(checkpoint, damages));
  }
  const auto copy = [&](uint64_t frame, std::span<const std::byte> content) {
    for (const Piece& piece : layout.PiecesOf(frame)) {
      const auto& target = assignment[piece.tensor];
      if (!target.has_value()) continue;
      std::memcpy(targets[*target].into.data() + piece.tensor_offset,
                  content.data() + piece.frame_offset, piece.bytes);
    }
  };
  const auto copied = ScanFrames(checkpoint, ranges, scan, copy);
  const Status status =
      copied.ok() ? DamageStatus(checkpoint, *copied) : Status(copied.error());
  if (!status.ok() && verify_first) {
    return status.error().Doing("the program's tensors hold parts of a checkpoint now");
  }
  KEEL_TRY(status);
  RestoreReport report;
  NoteFilled(layout, assignment, ranges, &report);
  return report;
}

Status CheckRestored(const Checkpoint& checkpoint, const std::vector<RestoreTarget>& targets) {
  ErrorList errors;
  for (const RestoreTarget& target : targets) {
    const auto tensor = checkpoint.layout().Find(target.spec.name);
    if (!tensor.has_value()) {
      errors.Add(Code::kInvalid, "tensor " + Shown(target.spec.name) + ": not in the checkpoint");
      continue;
    }
    const PlacedTensor& placed = checkpoint.layout().tensors()[*tensor];
    if (target.spec != placed.spec || target.into.size() != placed.bytes) {
      CheckTarget(target, placed, &errors);
    } else if (TensorDigest(checkpoint.layout(), *tensor, target.into) !=
               checkpoint.manifest().tensor_digests[*tensor]) {
      errors.Add(Code::kCorrupt, "tensor " + Shown(target.spec.name) +
                                     ": memory does not hold what the checkpoint holds");
    }
  }
  return errors.ToStatus("restore of " + checkpoint.dir());
}

}  // namespace keel
