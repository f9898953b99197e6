// SeatPhase: the state machine of a seat, as one table (PROTOCOL.md section 5).
// Promises   every pair of a phase and an event is either in the table, with what follows and why,
//            or illegal. Each phase stands for one word in the seat's record (SeatState); phases
//            are finer than these words where the seat's next step depends on more.
// Does not   know times, limits or messages' contents (host.h), and does nothing by itself.
// Threads    pure functions. tests/elastic/decisions/seat_state_test.cc compares the table with the
//            three of PROTOCOL.md section 5: change both in one commit.
#pragma once

#include <optional>
#include <string_view>

#include "elastic/protocol/records.h"

namespace keel {

enum class SeatPhase {
  kEmpty,               // there is no worker
  kStarting,            // its process was started and has not said `hello`
  kPreparing,           // it said `hello` and builds what it needs
  kReady,               // it can enter an epoch and was in none yet
  kRunning,             // it is inside its epoch
  kParked,              // it left its epoch and kept its memory
  kStartingBye,         // it said `bye` while it was outside: it will enter no epoch
  kRunningBye,          // it said `bye` inside its epoch
  kParkedBye,           // it said `bye` and is outside while its host stops
  kStartingSignalled,   // the supervisor has sent a signal to end it, and so in the next three
  kReadySignalled,
  kParkedSignalled,
  kStopping,            // it was inside its epoch, and still is until its process has ended
  kFinished,            // it ended with the job's work done
  kLeft,                // it ended because a stop was asked for
  kDead,                // it ended without success
};
inline constexpr int kSeatPhases = static_cast<int>(SeatPhase::kDead) + 1;

enum class SeatEvent {
  // What the worker says.
  kHello,
  kReady,
  kParked,
  kAt,
  kSaved,
  kFigures,
  kLeaving,          // its host goes on, or the whole job stops
  kLeavingAlone,     // its host leaves, and the job goes on without it
  kBye,              // its host takes part
  kByeInStop,        // its host stops
  // What the supervisor does with the seat.
  kAwaited,          // an epoch has a place here for a worker that is yet to be started
  kStarted,          // a process was started that enters an epoch only after `hello` and `ready`
  kStartedInside,    // a process was started that is taken to be foreign: inside from its start
  kEntered,          // it was sent `epoch`
  kNotEntered,       // its epoch broke before it said `hello`, and the job is in place
  kSignalled,        // it was sent SIGTERM, SIGKILL or the stop's signal
  kRegisteredAnew,   // the host was taken for dead, and begins again in another slot
  // How the process ended.
  kEndedFinished,    // with success, and by itself
  kEndedLeft,        // with success, as the stop asked
  kEndedStopped,     // by a signal of the supervisor, for no fault of its own
  kEndedDead,        // in any other way, or it could not be started
};
inline constexpr int kSeatEvents = static_cast<int>(SeatEvent::kEndedDead) + 1;

// The words of PROTOCOL.md section 5.
std::string_view SeatPhaseName(SeatPhase phase);
std::string_view SeatEventName(SeatEvent event);

// What the seat's record says.
SeatState StateOf(SeatPhase phase);
// The supervisor has sent its process a signal to end.
bool IsSignalled(SeatPhase phase);

struct SeatStep {
  SeatPhase to;
  std::string_view why;
};
// Nothing: the event is illegal in that phase. If a worker or an epoch on the board asks for it, it
// is refused; if the supervisor did it by itself, that is a bug.
std::optional<SeatStep> NextStep(SeatPhase from, SeatEvent event);

}  // namespace keel
