// Salvage: finds what of a step is still whole, whatever happened to its manifest and its shards,
// and makes a new checkpoint of that.
// Promises   a tensor counts as whole only when every byte of it is proved to be what one attempt
//            wrote; attempts are never mixed, since two of one step may hold different data. An
//            attempt that was never committed counts like any other: it is whole when all its
//            shards are. The new checkpoint says in `user` that it is a repair, and what is lost
//            (keys in ckpt/description.h).
// Does not   write where it reads; look at attempts that a live process is still writing; judge by
//            a store that is away, or a disk that refuses to open a file (ckpt/away.h): these are
//            errors.
// Threads    starts threads of its own. DecideAttempt() and JudgeTensors() are pure.
// Errors     kNotFound: no attempt there; kInvalid: of a newer version; those of Files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ckpt/attempt_reader.h"
#include "ckpt/frame_scan.h"
#include "ckpt/save.h"

namespace keel {

// Elements of a tensor that are lost, from first to last.
struct LostRange {
  uint64_t first = 0;
  uint64_t last = 0;
  std::string reason;
};

struct TensorFate {
  std::vector<LostRange> lost;  // empty: it is whole
  bool is_whole() const { return lost.empty(); }
};

struct AttemptFate {
  std::string attempt;
  bool is_committed = false;    // the manifest names it
  bool is_live = false;         // being written: not looked at
  std::string trouble = {};     // why nothing of it can be used; empty: some of it may be usable
  std::vector<std::string> shard_troubles = {};
  uint64_t mended_frames = 0;   // frames that are whole, though some stored bytes were changed
  Layout layout = {};
  std::vector<TensorFate> tensors = {};  // by index in the layout

  uint64_t whole_count() const;
  uint64_t whole_bytes() const;
  bool is_whole() const { return trouble.empty() && whole_count() == tensors.size(); }
};

struct AttemptDecision {
  std::optional<size_t> chosen;  // empty: nothing can be salvaged
  std::string reason;
};
// Prefers a whole attempt, then most bytes, then most tensors; among equals the committed one, then
// the first.
AttemptDecision DecideAttempt(const std::vector<AttemptFate>& fates);

// Frames that are lost for one reason.
struct LostFrames {
  uint64_t count = 1;
  std::string reason = {};
};
// `lost_frames`: by the first one of each.
std::vector<TensorFate> JudgeTensors(const Layout& layout,
                                     const std::map<uint64_t, LostFrames>& lost_frames);

class Salvage {
 public:
  // Reads everything there. `only_attempt`: look at no other one; empty: at all of them.
  static Result<std::unique_ptr<Salvage>> Survey(Files& files, const std::string& step_dir,
                                                 const std::string& only_attempt,
                                                 const ScanOptions& options);

  // One for each attempt, sorted by its name.
  const std::vector<AttemptFate>& fates() const { return fates_; }
  const AttemptDecision& decision() const { return decision_; }
  // Why the manifest cannot be used, or that its directory has the name of another step, which
  // Write() does not give to the new one; empty: neither.
  const std::string& manifest_trouble() const { return manifest_trouble_; }
  // Whether the chosen attempt is committed, under its step's name, and nothing is wrong with any
  // of its bytes.
  bool needs_no_repair() const;

  // Writes the whole tensors of the chosen attempt into a new attempt of the same step in `root`,
  // which must not have that step. kInvalid: nothing is whole; `root` is a step itself. kExists.
  Result<CommitReport> Write(Files& files, const std::string& root, const std::string& new_attempt,
                             int64_t saved_at_ns, const WriteOptions& options) const;

 private:
  explicit Salvage(std::string step_dir) : step_dir_(std::move(step_dir)) {}
  Status Look(Files& files, const std::string& only_attempt, const ScanOptions& options);
  Result<SavePlan> PlanFor(const std::string& root, const std::string& new_attempt,
                           const std::vector<size_t>& tensors) const;

  const std::string step_dir_;
  std::string manifest_trouble_;
  std::vector<AttemptFate> fates_;
  std::vector<std::unique_ptr<AttemptReader>> readers_;  // as fates_; null: unusable
  AttemptDecision decision_;
};

}  // namespace keel
