// The records on the board (PROTOCOL.md section 2) as values, and as the JSON text of each.
// Promises   Parse...(...Text(x)) gives x back, but for words that are too long (`ended`,
//            `reason`), which are cut: what is written always fits what is read. Parsing takes a
//            whole record of this version or says which key it was and what is wrong with it;
//            nothing is guessed, unknown members are refused. Of a record of another version, what
//            all versions have in common can be read (section 9): who wrote it, and that it is a
//            tombstone.
// Does not   judge whether a record makes sense beside others (membership.h).
// Threads    plain values. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/protocol/blame.h"
#include "elastic/protocol/position.h"

namespace keel {

inline constexpr int kProtocolVersion = 3;
inline constexpr size_t kRecordBytesMax = 64 << 10;   // and, in addition,
inline constexpr size_t kSeatBytesMax = 1 << 10;      // for each seat, worker or rank in it
// As JSON has them, where a byte may need six. Beside the reason, the role and the fingerprint of
// 4096 bytes each still find room.
inline constexpr size_t kReasonBytesMax = 8 << 10;
inline constexpr size_t kEndedBytesMax = 640;
inline constexpr size_t kUnfitBytesMax = 1 << 10;
inline constexpr size_t kShunnedMax = 32;             // hosts that are remembered

// A foreign worker is started anew for each epoch; one in place survives them.
enum class JobKind { kForeign, kInPlace };

enum class SeatState {
  kEmpty,     // no worker
  kStarting,  // a worker that said hello, or will, and is not ready
  kReady,     // can take part; was in no epoch yet
  kRunning,   // inside its epoch
  kParked,    // out of its epoch, with its memory
  kStopping,  // told to end; inside its epoch until it has
  kFinished,  // ended: the job's work is done
  kLeft,      // ended because a stop was asked for
  kDead,      // ended without success, or was ended by us
};

// Whether a process sits in such a seat.
bool HasProcess(SeatState state);
std::string_view SeatStateName(SeatState state);

struct SeatRecord {
  std::string worker;      // incarnation of the present or last worker; empty: there was none
  SeatState state = SeatState::kEmpty;
  int64_t epoch = 0;       // the newest one that this worker is or was a member of
  int rank = -1;           // in that epoch
  Position position;       // the last it told
  bool saved = false;      // it said so after a stop was asked for
  std::string ended;       // how the last worker of this seat ended
  Activity activity = {};  // what it told with its position
  bool silent = false;     // it is inside an epoch and its supervisor hears nothing of it
  bool lacks = false;      // it does not have the whole state, as far as it told
  bool operator==(const SeatRecord&) const = default;
};

// What changes all the time and is no news: it travels with the next read.
SeatRecord WithoutStanding(SeatRecord seat);
// Whether the worker has got on between two records of its seat.
bool HasMoved(const SeatRecord& before, const SeatRecord& after);

enum class MemberState { kMember, kLeaving, kLeft };
std::string_view MemberStateName(MemberState state);

// Who is in an epoch. It is told apart from the epoch's record, so that a board that knows nothing
// of an epoch can still count its hosts (quorum.h). Hosts are named by their incarnations.
struct CountedEpoch {
  int64_t number = 0;
  std::string id = {};
  std::string coordinator = {};          // the host that formed it
  std::vector<std::string> hosts = {};   // by group rank
  // It has no quorum of the one before, and runs only while its coordinator holds the job's lease.
  bool by_lease = false;
  bool operator==(const CountedEpoch&) const = default;
};

// What a host saw when it lost the coordinator that it followed.
struct LostCoordinator {
  std::string who = {};      // its incarnation
  std::string inside = {};   // the newest epoch that it had read, if it was inside that one
  int64_t outside = 0;       // up to which epoch it had promised to be outside
  Duration beat_age{0};      // how long before, at most, the coordinator had taken its last beat
  bool refused = false;      // the connection was closed, and then a new one was refused
  bool operator==(const LostCoordinator&) const = default;
};

// Which epochs a host has been put into, by their ids.
struct EpochsSeen {
  std::string met = {};                  // the newest of which it knows that all its hosts took it
  std::vector<std::string> tried = {};   // those that it was put into since (host_past.cc)
  std::string linked = {};               // the newest that it has found in the job's lease
  std::string shared = {};               // the newest that all of its hosts have found there
  std::optional<LostCoordinator> lost = {};
  bool operator==(const EpochsSeen&) const = default;
};

// The newest epoch that a host is or was a member of, for a coordinator that knows nothing of it.
struct ToldEpoch {
  int64_t number = 0;      // 0: none, or none since it was taken for dead
  std::string id;
  int hosts = 0;           // how many it has in all
  std::string keeper = {};   // incarnation of the host that kept the store, if it is one of them
  int restarts = 0;        // as the epoch's record says
  int restarts_recent = 0;
  int64_t deaths = 0;      // those of this host's deaths that are in `restarts`
  int64_t first = 0;       // of this run, as any epoch's record says that it has read; 0: none
  bool operator==(const ToldEpoch&) const = default;
};

// What a record says of a health check that has passed.
inline constexpr const char* kHealthGood = "good";

struct MemberRecord {
  std::string incarnation;
  std::string host;
  std::string address;     // numeric
  std::string machine;     // the id of its kernel's boot, which its containers have, too
  std::string peer;        // where its supervisor answers others: address and port; empty: nowhere
  int64_t order = 0;       // the number that its user gave the host; ranks follow it, then slots
  std::string role;        // of its workers, as its user named it
  MemberState state = MemberState::kMember;
  std::string reason;      // why it leaves
  int64_t deadline_ms = 0; // for leaving: how long it has
  bool refused = false;    // ... because it does not fit: nobody else need leave for that
  bool forgiven = false;   // its user wants it in although its host was left out before
  std::string unfit;       // what shows that its machine is not to be trusted; empty: nothing does
  std::string health;      // what its last health check said; empty: there was none
  JobKind kind = JobKind::kForeign;
  std::string fingerprint;  // empty until a worker told it
  ToldEpoch epoch;
  EpochsSeen seen;
  int64_t outside = 0;     // the promise of section 6: none of its workers is, or ever will be,
                           // inside an epoch up to this one
  int64_t deaths = 0;      // workers that ended by themselves without success
  int64_t incidents = 0;   // the same, but those that one worker did not outlive count once
  HostBlame blame;
  int64_t finished = 0;    // the newest epoch when it read that the work is done; 0: it has not
  std::string finished_id;
  std::vector<SeatRecord> seats;
  bool operator==(const MemberRecord&) const = default;
};

// Of all its seats.
MemberRecord WithoutStandings(MemberRecord record);

// What the coordinator puts in place of a member's record.
struct Tombstone {
  enum class Why { kExpired, kRefused, kShunned };
  Why why = Why::kExpired;
  std::string incarnation;   // whose record it was
  std::string reason;
  bool operator==(const Tombstone&) const = default;
};

// A host whose machine is not to be trusted: it is left out, and so is another launcher of that
// machine which comes, unless its user has forgiven it.
struct ShunnedHost {
  std::string incarnation;   // of the launcher that was there
  std::string host;
  std::string machine;       // as in its record
  std::string reason;
  int64_t epoch = 0;         // the newest then
  int64_t deaths = 0;        // of its workers, as that epoch's `restarts` has them
  bool operator==(const ShunnedHost&) const = default;
};

struct ShunnedRecord {
  std::vector<ShunnedHost> hosts;   // the oldest first, at most kShunnedMax
  bool operator==(const ShunnedRecord&) const = default;

  // The launcher of that incarnation was there, and is to leave. Null: it is not.
  const ShunnedHost* FindLauncher(std::string_view incarnation) const;
  // Some launcher of that machine was there. Null: none was, or it is not known which it is.
  const ShunnedHost* FindMachine(std::string_view machine) const;
  // Forgets the oldest one where there are too many.
  void Add(ShunnedHost host);
};

struct EpochHost {
  int64_t slot = 0;
  std::string incarnation;
  int group_rank = 0;
  int role = 0;            // group rank of the first host whose workers have the same role
  int64_t deaths = 0;      // of this host's workers, as far as the epoch's `restarts` counts them
  bool operator==(const EpochHost&) const = default;
};

struct EpochWorker {
  int rank = 0;
  int64_t slot = 0;
  int index = 0;
  std::string worker;      // incarnation; empty: it is yet to be started
  bool operator==(const EpochWorker&) const = default;
};

// Where the epoch's own keys are: a store and a prefix in it.
struct EpochStore {
  std::string address;
  int port = 0;
  std::string prefix;
  bool operator==(const EpochStore&) const = default;
};

struct EpochRecord {
  int64_t number = 0;
  std::string id;          // drawn at random: two stores may both have had an epoch 3
  JobKind kind = JobKind::kForeign;
  std::string reason;
  std::string coordinator;        // incarnation of the host that keeps the store
  int restarts = 0;        // spent so far, also beyond the window: TORCHELASTIC_RESTART_COUNT
  int restarts_recent = 0;        // those within the window
  bool inexact_allowed = false;   // workers of different fingerprints may make steps together
  bool by_lease = false;          // as CountedEpoch has it
  EpochStore store;
  std::vector<EpochHost> hosts;      // by group rank
  std::vector<EpochWorker> workers;  // by rank
  int64_t first = 1;       // this run's first one: a lease knows the numbers of earlier runs
  bool operator==(const EpochRecord&) const = default;

  // Nothing where that host is not in it.
  const EpochHost* FindHost(int64_t slot, std::string_view incarnation) const;
};

// What that host's record tells of the epoch.
ToldEpoch ToldBy(std::string_view incarnation, const EpochRecord& epoch);
CountedEpoch CountedOf(const EpochRecord& epoch);

enum class BreakCause {
  kDied,       // a worker ended by itself without success
  kHostLost,   // a host is silent, or its supervisor gone
  kLeft,       // a host leaves as it was asked to
  kHung,       // nothing moved; `ranks` are to be killed
  kReported,   // a worker saw the group break
  kNotParked,  // some parked at a boundary, others did not
  kJoined,     // foreign: a host waits to take part
  kNotEntered, // a worker could not enter
  kLeaseLost,  // the epoch has no quorum, and its coordinator cannot hold the job's lease
};
std::string_view BreakCauseName(BreakCause cause);

struct BreakRecord {
  int64_t epoch = 0;
  std::string id;          // of the epoch
  BreakCause cause = BreakCause::kDied;
  std::string by;          // incarnation of the supervisor that wrote it
  std::string reason;      // in words
  std::vector<int64_t> ranks;
  bool operator==(const BreakRecord&) const = default;
};

struct StopRecord {
  std::string by;          // incarnation of the supervisor that wrote it
  std::string reason;
  int64_t deadline_ms = 0;
  bool operator==(const StopRecord&) const = default;
};

struct EndRecord {
  int code = 0;
  std::string reason;
  bool operator==(const EndRecord&) const = default;
};

// A board of the job: where its store is, and how far it has got. Of two boards the one with the
// higher epoch is ahead, then the one with the higher term.
struct BoardPlace {
  int64_t term = 0;        // 0: none
  int64_t epoch = 0;       // the newest that it names, or that one of its hosts was in
  std::string address = {};   // of the store: address and port
  std::string by = {};     // incarnation of the coordinator
  bool operator==(const BoardPlace&) const = default;
};
bool IsSameBoard(const BoardPlace& a, const BoardPlace& b);
// Whether a host that knows both follows `a`.
bool IsAhead(const BoardPlace& a, const BoardPlace& b);
// "term 3 at 10.0.0.7:29400"
std::string PlaceText(const BoardPlace& place);

// A host that may take the coordinator's role.
struct Heir {
  std::string incarnation = {};
  std::string peer = {};   // as in its record
  bool operator==(const Heir&) const = default;
};

// Who coordinates, who will, and where: written by the coordinator.
struct SuccessionRecord {
  int64_t term = 1;
  std::string coordinator = {};    // incarnation of its host
  std::string address = {};        // of the board's store
  std::vector<Heir> heirs = {};    // the first of them that can takes the role
  std::string chosen = {};         // the heir that is asked to open the next board; empty: none is
  std::string met = {};            // the newest epoch that all of its hosts have taken, by its id
  std::string shared = {};         // ... that all of its hosts have found in the job's lease
  std::optional<BoardPlace> moved = {};   // this board is left; it goes on there
  bool operator==(const SuccessionRecord&) const = default;
};

// What a claim of the job's lease says (store/lease/lease.h). Each claim is a link of a chain: who
// coordinates from then on, and which epoch that host has formed or goes on with.
struct LinkRecord {
  BoardPlace place;
  std::string peer = {};    // where its launcher answers others
  std::string epoch = {};   // an id; empty: there is none yet
  bool operator==(const LinkRecord&) const = default;
};

// What lies under member/<slot>.
struct MemberSlot {
  std::optional<MemberRecord> record;   // or
  std::optional<Tombstone> tombstone;
};

// Of a record of another version than ours: what every version has, whatever else it has.
struct OtherRecord {
  int64_t version = 0;
  std::string incarnation;   // of a member's record; empty: it has none
  std::string host;
};
// Nothing where the text is of our version, or no record of any.
std::optional<OtherRecord> ReadOtherRecord(std::string_view text);
// "protocol version 2, where this keelrun speaks version 1: run the same release of Evenkeel ..."
std::string OtherVersionText(int64_t version);

std::string MemberText(const MemberRecord& record);
std::string TombstoneText(const Tombstone& tombstone);
std::string EpochText(const EpochRecord& record);
std::string BreakText(const BreakRecord& record);
std::string StopText(const StopRecord& record);
std::string EndText(const EndRecord& record);
std::string ShunnedText(const ShunnedRecord& record);
std::string SuccessionText(const SuccessionRecord& record);
std::string BoardPlaceText(const BoardPlace& place);
std::string CountedEpochText(const CountedEpoch& epoch);
std::string LinkText(const LinkRecord& link);

// `key` is for the message only. A tombstone of another version is a refusal.
Result<MemberSlot> ParseMemberSlot(std::string_view key, std::string_view text);
Result<EpochRecord> ParseEpoch(std::string_view key, std::string_view text);
Result<BreakRecord> ParseBreak(std::string_view key, std::string_view text);
Result<StopRecord> ParseStop(std::string_view key, std::string_view text);
Result<EndRecord> ParseEnd(std::string_view key, std::string_view text);
Result<ShunnedRecord> ParseShunned(std::string_view key, std::string_view text);
Result<SuccessionRecord> ParseSuccession(std::string_view key, std::string_view text);
Result<BoardPlace> ParseBoardPlace(std::string_view key, std::string_view text);
Result<CountedEpoch> ParseCountedEpoch(std::string_view key, std::string_view text);
Result<LinkRecord> ParseLink(std::string_view name, std::string_view text);

// "in-place", "foreign"
std::string_view JobKindName(JobKind kind);
Result<JobKind> ParseJobKind(std::string_view key, std::string_view text);
// What a counter holds: `slots`, `beat/<slot>`, `epoch` ...
Result<int64_t> ParseCount(std::string_view key, std::string_view text);

}  // namespace keel
