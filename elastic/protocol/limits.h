// Limits: what may take how long unless the user says otherwise (PROTOCOL.md section 11).
// Promises   each default is written here and nowhere else: options, their help, configs, policies
//            and what has no option take it from here. A test compares PROTOCOL.md's table.
// Does not   hold limits of one file alone that the protocol does not name.
// Threads    constants.
#pragma once

#include <chrono>

#include "base/clock.h"

namespace keel {

// --- Hosts ---

// For the store at the endpoint, and for MIN hosts, at first and whenever there are fewer.
inline constexpr Duration kJoinLimit = std::chrono::seconds(600);
// For the store of a foreign epoch to be opened.
inline constexpr Duration kEpochStoreLimit = std::chrono::seconds(30);
// For more hosts than MIN; and the same where hosts were members before.
inline constexpr Duration kLastCallLimit = std::chrono::seconds(30);
inline constexpr Duration kRejoinLimit = std::chrono::seconds(1);
// A host whose beat does not rise for so long is lost. The coordinator's own has some limits more.
inline constexpr Duration kBeatInterval = std::chrono::seconds(1);
inline constexpr int kBeatsMissedMax = 3;
inline constexpr Duration kBeatLimit = kBeatInterval * kBeatsMissedMax;
inline constexpr int kOwnBeatLimits = 10;
// How often a wait is told again while it lasts.
inline constexpr Duration kWaitTold = std::chrono::seconds(30);
// For a presence connection that was closed to come again.
inline constexpr Duration kPresenceGrace = std::chrono::milliseconds(30);
// A host of which so many workers died of their own within the window of restarts is left out;
// where that is for ever, within this one.
inline constexpr int kShunAfter = 3;
inline constexpr Duration kShunWindow = std::chrono::hours(1);

// --- Who coordinates ---

// So many hosts are named that may take the coordinator's role.
inline constexpr size_t kHeirsMax = 8;
// For an heir that is asked to open the next board; then the next heir is asked.
inline constexpr Duration kHeirLimit = std::chrono::seconds(1);
// Meanwhile no epoch is formed for so long at most.
inline constexpr Duration kHandOverPatience = std::chrono::seconds(2);
// And so long does a launcher that ends wait for its role to be taken.
inline constexpr Duration kHandOverLimit = std::chrono::seconds(10);
// By how much later each heir opens a board than the one before it.
inline constexpr Duration kTurnAfterRefusal = std::chrono::milliseconds(200);
inline constexpr Duration kTurnAfterSilence = std::chrono::seconds(1);
// Who heard of its coordinator no longer ago than this still has it.
inline constexpr Duration kHeardLately = std::chrono::milliseconds(2500);
// Who may go on without a quorum, since the job has a lease, lets those go first who have one.
inline constexpr Duration kLeaseCourtesy = std::chrono::seconds(3);

// --- Workers ---

// From exec to `ready`, in place; and from `epoch` to the first position.
inline constexpr Duration kStartLimit = std::chrono::seconds(600);
inline constexpr Duration kEnterLimit = std::chrono::seconds(600);
// For a health check to end.
inline constexpr Duration kHealthLimit = std::chrono::seconds(60);
// A check holds for so long, unless a worker ends.
inline constexpr Duration kHealthHolds = std::chrono::seconds(60);
// How long a replacement takes only what processors those leave who train beside it.
inline constexpr Duration kPoliteLimit = std::chrono::seconds(5);
// To leave a broken epoch.
inline constexpr Duration kParkLimit = std::chrono::seconds(5);
// From SIGTERM, or a goodbye, to SIGKILL; and from a stop without a deadline to SIGTERM.
inline constexpr Duration kShutdownLimit = std::chrono::seconds(30);
inline constexpr Duration kSaveLimit = kShutdownLimit;
// A worker that ends closes its link a moment before its end is seen.
inline constexpr Duration kLinkGrace = std::chrono::seconds(1);
// For a worker to write its own stacks before it is killed.
inline constexpr Duration kStacksLimit = std::chrono::seconds(1);
// Deaths within it count as restarts; 0: all do.
inline constexpr Duration kRestartWindow{0};

// --- A store that is away ---

inline constexpr Duration kStoreLimit = std::chrono::seconds(60);
// For its supervisor to say anything to a worker. On a busy machine it may be slow for the least.
inline constexpr Duration kQuietLimit = kStoreLimit;
inline constexpr Duration kQuietLimitMin = std::chrono::seconds(5);
// By then a lost host that runs on alone has given up, and has stopped its workers.
inline constexpr Duration kFenceLimit = kStoreLimit + kShutdownLimit + kParkLimit;

// --- A stop, and the end ---

// Beyond the deadline of a stop wish: the others' time to stop, and a beat that nobody heard.
inline constexpr Duration kStopGrace = kShutdownLimit + kBeatLimit;
// Which part of that deadline, and at least how long, a worker may stand still without the store.
inline constexpr int kAlonePart = 3;
inline constexpr Duration kAloneLimitMin = std::chrono::seconds(5);
// For all members to read the end.
inline constexpr Duration kCloseLimit = std::chrono::seconds(30);
// How long before an announced end of its machine a host leaves.
inline constexpr Duration kNoticeLead = std::chrono::seconds(120);

// --- Hangs ---

// Unless the user names another limit: so many median steps, and at least so long.
inline constexpr int kHangSteps = 20;
inline constexpr Duration kHangLimitMin = std::chrono::seconds(60);
// What workers say takes a moment to reach the judge, who therefore never decides sooner.
inline constexpr Duration kHangLook = std::chrono::seconds(3);
// How many limits pass before one of several workers is named that all are in their own code: such
// workers may just be slow, and a break costs the work of all of them.
inline constexpr int kOwnCodeLimits = 4;
// Which part of the time that a stop leaves may pass without a move. The rest is needed for saving
// what the others hold.
inline constexpr int kStopPart = 3;

// --- The doctor ---

// For the other hosts to come; and then for what each has seen.
inline constexpr Duration kDoctorLimit = std::chrono::seconds(30);
inline constexpr Duration kDoctorTellLimit = std::chrono::seconds(15);

}  // namespace keel
