// Reform: what the members of a new epoch report of themselves, and what follows for each of them.
// Promises   all members that hold the same reports come to the same plan. A step that somebody
//            applied is applied by everybody, or its state is taken from who did; one that nobody
//            applied is made anew by all: no two survivors ever disagree.
// Why        a worker enters the vote on step s with the complete gradients of s only. If one vote
//            on s succeeded, all members had entered, so each survivor holds these gradients and is
//            at s or, having applied them, at s+1: nobody is further apart.
// Does not   move or compute anything (trainer/loop/meet.h).
// Threads    pure functions.
// Errors     kInvalid: members that run different programs; kCorrupt: reports that contradict each
//            other, or are none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace keel {

struct MemberReport {
  // Steps applied. A newcomer has made none (kFresh): what its program began with is the state
  // before the first step, if nobody has more. kSpoiled: half of a transfer is in its memory.
  static constexpr int64_t kFresh = -1;
  static constexpr int64_t kSpoiled = -2;
  static constexpr int64_t kUsual = -1;

  int64_t step = kFresh;
  bool pending = false;              // holds the complete gradients of step `step`
  std::string layout;                // digest of names, types and shapes, in hex
  std::string trail;                 // after `step` steps, in hex
  // Its state was compared with all others', bit for bit, and has only made steps since.
  bool compared = false;
  // It is large, and whoever lacks it can receive it in parts while the others make steps.
  bool by_parts = false;
  // So many times the step after `step` was made and not applied, since results differed, and
  // nobody could tell whose are right.
  int64_t doubts = 0;
  // It has the state from others, or results of lanes differed, and no recheck has passed since.
  bool unproven = false;
  int64_t recheck_every = kUsual;    // TrainConfig's; 0: never
  std::string numbers;               // the state's numbers, as text
  // The first step that was made on other numerics than those before it; -1: there is none.
  int64_t inexact_since = -1;
  std::string fingerprint;           // of this worker's numerics and options
  // What all must do alike although no bit depends on it, as a fingerprint; and the same of how the
  // job begins, which counts as long as nobody has a state.
  std::string together;
  std::string beginning;
  // Of the first rank: by what the others find its checkpoint directory, and how it saves.
  std::string directory;
  int64_t save_every = 0;
  std::string codec;
  // Of the first rank, for all to save the same: its options and their values.
  std::map<std::string, std::string> config;
  // What a lane took here, and what the busiest link took for the gradients of one whole model,
  // when that was measured last; 0: it was not (trainer/numerics/placement.h).
  int64_t lane_ns = 0;
  int64_t link_ns = 0;
  std::vector<float> last_losses;    // all lanes', of step `step`-1: for who is one behind
  // Losses by their bits.
  bool operator==(const MemberReport& other) const;
};

std::string ReportText(const MemberReport& report);
Result<MemberReport> ParseReport(std::string_view text);

enum class Part {
  kReady,     // is where the job goes on
  kApplies,   // holds the gradients of the one step it lacks
  kReceives,  // takes the state from those who are ready
  kCatchesUp, // the same, in the next steps, while the others make them
};

// Why the member of that rank must not make a step beside the one whose state counts (of those
// furthest, the first): its fingerprint is another one. Empty: it may.
std::string WhyUnfit(const std::vector<MemberReport>& reports, size_t rank);

// The same for what the members do together; no user may let that pass.
std::string WhyApart(const std::vector<MemberReport>& reports, size_t rank);

// All have just begun, or were receiving a state from somebody who is gone.
bool NobodyHolds(const std::vector<MemberReport>& reports);

struct ReformPlan {
  int64_t step = 0;             // where the job goes on
  int source = 0;               // the first member that is ready: its numbers and losses count
  std::vector<Part> parts;      // by rank
  bool catches_up() const;      // somebody does
  // The first step on other numerics, as all shall note it; -1: there is none. Some may have noted
  // it for a member that was lost on its way in, and others not.
  int64_t inexact_since = -1;
  int64_t doubts = 0;           // of the next step (MemberReport)
  bool unproven = false;        // somebody is, or will be
  bool alike = false;           // all have the same fingerprint, so that they come to the same bits
  int64_t recheck_every = 0;    // as the first one says, but never if any says so
  // All who have it have come from one compared state by the same steps, so that their states are
  // the same unless bits have changed in the memory of one of them.
  bool proved = false;
  std::string reason;           // "step 12: 2 ready, 1 applies its own gradients, 1 receives"
};
Result<ReformPlan> PlanReform(const std::vector<MemberReport>& reports);

}  // namespace keel
