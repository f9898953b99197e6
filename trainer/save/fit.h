// SaveFit: whether a save that a stop asks for fits in the time that is left.
// Promises   pure. All members decide the same from the same votes. Where nobody knows how fast
//            saving is, or nobody has a limit, it is tried.
// Does not   measure (trainer/save/checkpointer.h does), or save.
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
  // `awaited`: it did nothing else meanwhile, and did not let others go first.
  void OnWritten(uint64_t bytes, Duration took, bool awaited);
  void OnCommitted(Duration took);
  // For so many bytes while nothing else is done, at the best that was seen: what is slower by
  // accident is no reason to lose steps. Nothing: none was written yet.
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
  kSave,     // the state as it is
  kFinish,   // the save under way, of some steps ago: it has begun already
  kLeave,    // nothing could be committed in time
};
struct StopDecision {
  StopSave what = StopSave::kSave;
  Duration left{0};     // the smallest, where there is one
  Duration needs{0};    // the largest
};

// `votes`: by rank.
StopDecision DecideStopSave(const std::vector<StopVote>& votes);

}  // namespace keel
