// The table of a seat's transitions, and the words for its phases and events.
#include "elastic/decisions/seat_state.h"

#include <array>
#include <cstdint>

#include "base/check.h"

namespace keel {
namespace {

using enum SeatPhase;

// A set of phases.
using Phases = uint32_t;
template <class... T>
constexpr Phases In(T... phases) {
  return (... | (Phases{1} << static_cast<int>(phases)));
}

constexpr Phases kNoProcess = In(kEmpty, kFinished, kLeft, kDead);
constexpr Phases kSignalled = In(kStartingSignalled, kReadySignalled, kParkedSignalled, kStopping);
constexpr Phases kUnsignalled = In(kStarting, kPreparing, kReady, kRunning, kParked, kStartingBye,
                                   kRunningBye, kParkedBye);
constexpr Phases kProcess = kUnsignalled | kSignalled;
constexpr std::nullopt_t kSame = std::nullopt;

struct Row {
  SeatEvent event;
  Phases from;
  std::optional<SeatPhase> to;   // kSame: the phase stays
  std::string_view why;
};

constexpr std::array kTable = {
    // What the worker says.
    Row{SeatEvent::kHello, In(kStarting, kRunning), kPreparing,
        "it is in place, so it was never inside: it enters once it is ready"},
    Row{SeatEvent::kHello, In(kRunningBye), kStartingBye,
        "it is in place, so it was never inside, and it will end without having entered"},
    Row{SeatEvent::kHello, In(kParked, kStartingBye, kParkedBye), kSame,
        "a late hello tells its kind, and it is outside already"},
    Row{SeatEvent::kReady, In(kPreparing), kReady, "it has built what it needs"},
    Row{SeatEvent::kParked, In(kRunning), kParked,
        "nothing of its epoch is in flight any more, and it keeps its memory"},
    Row{SeatEvent::kParked, In(kRunningBye), kParkedBye,
        "nothing of its epoch is in flight any more, and it ends"},
    Row{SeatEvent::kAt, kProcess, kSame, "its position is noted"},
    Row{SeatEvent::kSaved, kProcess, kSame, "that it saved is noted"},
    Row{SeatEvent::kFigures, kProcess, kSame, "figures are for those who watch"},
    Row{SeatEvent::kLeaving, kProcess, kSame,
        "that it leaves is noted; were it taken for parked, the next epoch would count on it"},
    Row{SeatEvent::kLeavingAlone, In(kRunning), kParked,
        "its host is in no further epoch, so the others need not wait until it has ended"},
    Row{SeatEvent::kLeavingAlone, In(kRunningBye), kParkedBye,
        "its host is in no further epoch, so the others need not wait until it has ended"},
    Row{SeatEvent::kLeavingAlone, kProcess & ~In(kRunning, kRunningBye), kSame,
        "that it leaves is noted, and it is not inside"},
    Row{SeatEvent::kBye, In(kStarting, kPreparing, kReady, kParked, kStartingBye, kParkedBye),
        kStartingBye, "it enters no epoch; were it still ready or parked, the next one would wait"},
    Row{SeatEvent::kBye, In(kRunning, kRunningBye), kRunningBye,
        "it is inside its epoch until its process has ended"},
    Row{SeatEvent::kBye, In(kStartingSignalled, kReadySignalled, kParkedSignalled),
        kStartingSignalled,
        "it enters no epoch; were it still ready or parked, the next one would wait"},
    Row{SeatEvent::kBye, In(kStopping), kSame,
        "it is inside its epoch until its process has ended"},
    Row{SeatEvent::kByeInStop, In(kStarting, kPreparing, kStartingBye), kStartingBye,
        "it ends, as was asked of it"},
    Row{SeatEvent::kByeInStop, In(kRunning, kRunningBye), kRunningBye,
        "it is inside its epoch until its process has ended"},
    Row{SeatEvent::kByeInStop, In(kParked, kParkedBye), kParkedBye,
        "no further epoch takes anybody of this host, so its record may say `parked` still"},
    Row{SeatEvent::kByeInStop, kSignalled, kSame, "it ends, as was asked of it"},

    // What the supervisor does with the seat.
    Row{SeatEvent::kAwaited, kNoProcess, kEmpty, "a worker is to be started for an epoch"},
    Row{SeatEvent::kStarted, In(kEmpty, kDead), kStarting,
        "whether it is in place is known once it says hello"},
    Row{SeatEvent::kStartedInside, In(kEmpty), kRunning,
        "nobody can tell when a foreign worker meets the others, so it counts as inside at once"},
    Row{SeatEvent::kEntered, In(kReady, kParked), kRunning, "an epoch has a place for it"},
    Row{SeatEvent::kNotEntered, In(kRunning), kStarting,
        "the job is in place, so a worker without a hello has not entered"},
    Row{SeatEvent::kNotEntered, In(kRunningBye), kStartingBye,
        "the job is in place, so a worker without a hello has not entered"},
    Row{SeatEvent::kSignalled, In(kStarting, kPreparing, kStartingBye), kStartingSignalled,
        "it is outside and enters no epoch"},
    Row{SeatEvent::kSignalled, In(kReady), kReadySignalled, "it is outside and enters no epoch"},
    Row{SeatEvent::kSignalled, In(kParked, kParkedBye), kParkedSignalled,
        "it is outside and enters no epoch"},
    Row{SeatEvent::kSignalled, In(kRunning, kRunningBye), kStopping,
        "it is inside its epoch until its process has ended"},
    Row{SeatEvent::kSignalled, kSignalled, kSame, "it is signalled again, or more strongly"},
    Row{SeatEvent::kRegisteredAnew, kNoProcess, kEmpty,
        "nothing of the former registration is left"},

    // How the process ended.
    Row{SeatEvent::kEndedFinished, kUnsignalled, kFinished, "the job's work is done"},
    Row{SeatEvent::kEndedLeft, kProcess, kLeft, "it did what the stop asked of it"},
    Row{SeatEvent::kEndedStopped, kSignalled, kEmpty, "its supervisor ended it, without blame"},
    Row{SeatEvent::kEndedDead, kProcess, kDead, "it failed, or was ended for a fault of its own"},
};

constexpr bool Has(const Row& row, SeatPhase phase, SeatEvent event) {
  return row.event == event && (row.from & In(phase)) != 0;
}

constexpr bool NoPairIsThereTwice() {
  for (const Row& one : kTable) {
    for (const Row& other : kTable) {
      if (&one != &other && one.event == other.event && (one.from & other.from) != 0) return false;
    }
  }
  return true;
}
static_assert(NoPairIsThereTwice());

struct PhaseWords {
  SeatPhase phase;
  std::string_view name;
  SeatState state;
};
constexpr PhaseWords kPhases[] = {
    {kEmpty, "empty", SeatState::kEmpty},
    {kStarting, "starting", SeatState::kStarting},
    {kPreparing, "preparing", SeatState::kStarting},
    {kReady, "ready", SeatState::kReady},
    {kRunning, "running", SeatState::kRunning},
    {kParked, "parked", SeatState::kParked},
    {kStartingBye, "starting, bye", SeatState::kStarting},
    {kRunningBye, "running, bye", SeatState::kRunning},
    {kParkedBye, "parked, bye", SeatState::kParked},
    {kStartingSignalled, "starting, signalled", SeatState::kStarting},
    {kReadySignalled, "ready, signalled", SeatState::kReady},
    {kParkedSignalled, "parked, signalled", SeatState::kParked},
    {kStopping, "stopping", SeatState::kStopping},
    {kFinished, "finished", SeatState::kFinished},
    {kLeft, "left", SeatState::kLeft},
    {kDead, "dead", SeatState::kDead},
};
constexpr std::string_view kEvents[] = {
    "hello", "ready", "parked", "at", "saved", "figures", "leaving", "leaving, alone", "bye",
    "bye, in a stop", "awaited", "started", "started inside", "entered", "not entered",
    "signalled", "registered anew", "ended finished", "ended left", "ended stopped",
    "ended dead",
};
static_assert(std::size(kPhases) == kSeatPhases && std::size(kEvents) == kSeatEvents);

const PhaseWords& WordsOf(SeatPhase phase) {
  const PhaseWords& words = kPhases[static_cast<int>(phase)];
  KEEL_CHECK(words.phase == phase, "the phases' words are out of order at " << words.name);
  return words;
}

}  // namespace

std::string_view SeatPhaseName(SeatPhase phase) { return WordsOf(phase).name; }

std::string_view SeatEventName(SeatEvent event) { return kEvents[static_cast<int>(event)]; }

SeatState StateOf(SeatPhase phase) { return WordsOf(phase).state; }

bool IsSignalled(SeatPhase phase) { return (kSignalled & In(phase)) != 0; }

std::optional<SeatStep> NextStep(SeatPhase from, SeatEvent event) {
  for (const Row& row : kTable) {
    if (Has(row, from, event)) return SeatStep{row.to.value_or(from), row.why};
  }
  return std::nullopt;
}

}  // namespace keel
