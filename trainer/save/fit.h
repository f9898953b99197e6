// SaveFit: whether a save at a stop fits in the time that is left.
// Promises   pure. All members decide the same from the same votes. If nobody knows how fast
//            saving is, or nobody has a limit, the save is tried.
// Does not   measure (trainer/save/tools.h does), or save.
// Threads    a plain value, and a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "trainer/save/save_schedule.h"

namespace keel {

// How fast one worker has saved so far.
class SaveSpeed {
 public:
  // `awaited`: the worker did nothing else meanwhile, and the writer gave way to nobody.
  void OnWritten(uint64_t bytes, Duration took, bool awaited);
  void OnCommitted(Duration took);
  // The time expected for so many bytes while nothing else is done, at the best speed seen so far:
  // an accidental slowness is no reason to lose steps. Empty: nothing was written yet.
  std::optional<Duration> Expect(uint64_t bytes) const;

 private:
  std::optional<double> awaited_;   // seconds a byte
  std::optional<double> beside_;    // ... beside training
  std::optional<Duration> commit_;
};

struct StopVote {
  SaveState state = SaveState::kIdle;
  std::optional<Duration> left = {};    // until this member must be gone
  std::optional<Duration> needs = {};   // for its share
};

enum class StopSave {
  kSave,     // save the state as it is
  kFinish,   // finish the save under way, which began some steps ago
  kLeave,    // leave at once: nothing could be committed in time
};
struct StopDecision {
  StopSave what = StopSave::kSave;
  std::optional<Duration> left = {};   // the smallest of all votes, or nothing
  Duration needs{0};                   // the largest of all votes
};

// `votes`: by rank.
StopDecision DecideStopSave(const std::vector<StopVote>& votes);

}  // namespace keel
