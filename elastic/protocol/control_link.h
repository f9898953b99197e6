// The control link's messages (elastic/PROTOCOL.md section 4), as values and as lines.
// Promises   what is encoded parses back as the same message and fits a line; texts longer than
//            kControlTextMax are cut for that, also where another writer sent them, and the names
//            of an epoch's members are left out where they would not fit. Parsing is strict in what
//            it knows (a member missing, of another type, out of range or a fingerprint that is too
//            long is an error) and tolerant in what it does not: further members are ignored, an
//            unknown type is an UnknownMessage, for the log.
// Does not   know sockets (elastic/worker_link.h) or cut lines apart (base/line_framer.h).
// Threads    plain values.
// Errors     kCorrupt: the line is no message; the link it came from is to be closed. kInvalid: the
//            message cannot be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "elastic/protocol/blame.h"
#include "elastic/protocol/position.h"

namespace keel {

inline constexpr int64_t kControlVersion = 1;
inline constexpr size_t kControlLineMax = 64 * 1024;  // bytes, without the line feed
inline constexpr size_t kControlTextMax = 4096;       // bytes of a reason or message
inline constexpr size_t kFingerprintBytesMax = 4096;  // what is compared cannot be cut
inline constexpr size_t kFigurePartsMax = 16;
inline constexpr size_t kFigureNameMax = 32;          // bytes of a part's name
// Where a worker finds its end of the link: the number of a descriptor.
inline constexpr const char* kControlFdVariable = "KEEL_CONTROL_FD";
// Where a worker finds its job's lease: the folder with the claims, as an absolute path
// (store/lease/dir_lease.h). Not set: the job has none.
inline constexpr const char* kLeaseVariable = "KEEL_LEASE";
// The step of a worker that has no state yet.
inline constexpr int64_t kNoStep = -1;

// A type that this version does not know.
struct UnknownMessage {
  std::string type;
  bool operator==(const UnknownMessage&) const = default;
};

// From the worker.
struct HelloMessage {
  int64_t version = kControlVersion;
  std::string fingerprint;  // empty where the version is another one than ours
  bool operator==(const HelloMessage&) const = default;
};
struct ReadyMessage {
  int64_t step = kNoStep;
  bool operator==(const ReadyMessage&) const = default;
};
struct ParkedMessage {
  int64_t epoch = 0;
  int64_t step = kNoStep;
  bool at_boundary = false;  // agreed upon with the others; else the epoch broke
  bool operator==(const ParkedMessage&) const = default;
};
struct AtMessage {
  Position position;
  Activity activity = {};
  bool lacks = false;   // it does not have the whole state yet
  bool operator==(const AtMessage&) const = default;
};
struct SavedMessage {
  int64_t step = 0;
  bool operator==(const SavedMessage&) const = default;
};
struct LeavingMessage {
  int64_t step = kNoStep;
  bool operator==(const LeavingMessage&) const = default;
};
// How training goes, for whoever watches. But for the step and its loss these are sums since the
// worker began, so that one that is lost takes nothing with it.
struct FiguresMessage {
  int64_t step = 0;                  // steps that the job has made
  std::optional<double> loss;        // of the last one; nothing: it is no finite number
  int64_t steps = 0;                 // that this worker made, and that counted
  int64_t samples = 0;               // of these steps, of all workers together
  // What their time went into, in nanoseconds; no part overlaps another.
  std::vector<std::pair<std::string, int64_t>> parts;
  int64_t evaluating_ns = 0;         // beside steps
  WorkerChecks checks = {};
  bool operator==(const FiguresMessage&) const = default;
};
struct ByeMessage {
  int code = 0;
  std::string message;
  bool operator==(const ByeMessage&) const = default;
};
using WorkerMessage = std::variant<HelloMessage, ReadyMessage, ParkedMessage, AtMessage,
                                   SavedMessage, LeavingMessage, FiguresMessage, ByeMessage,
                                   UnknownMessage>;

// To the worker.
struct EpochMessage {
  int64_t epoch = 0;
  int rank = 0;
  int world = 1;
  std::string address;  // where the epoch's store is; numeric
  uint16_t port = 0;
  std::string prefix;   // of its keys
  std::string reason;   // why it was formed, in words
  // By rank, for messages only ("waiting for node7/2"); `world` names or none.
  std::vector<std::string> members;
  // Whether workers of different fingerprints may make steps together.
  bool inexact_allowed = false;
  std::string own_address = "127.0.0.1";  // numeric: by which workers of other hosts reach this one
  // In hexadecimal digits: the secret of the workers of this epoch. Empty: they have none.
  std::string seal = {};
  int64_t first = 1;   // the number of this run's first epoch
  std::string own_host = {};   // its name, for messages
  bool operator==(const EpochMessage&) const = default;
};
struct BreakMessage {
  int64_t epoch = 0;
  std::string reason;
  bool operator==(const BreakMessage&) const = default;
};
struct JoinMessage {
  int64_t epoch = 0;
  bool operator==(const JoinMessage&) const = default;
};
struct StopMessage {
  std::string reason;
  // How long the worker has from now on; nothing: as long as it takes.
  std::optional<int64_t> deadline_ms;
  bool operator==(const StopMessage&) const = default;
};
// A checkpoint is wanted, at the next step that all agree on.
struct SaveMessage {
  std::string reason;
  bool operator==(const SaveMessage&) const = default;
};
struct RefusedMessage {
  std::string reason;
  bool operator==(const RefusedMessage&) const = default;
};
// The supervisor is there, and will say so again well within the limit.
struct AliveMessage {
  int64_t limit_ms = 1;
  bool operator==(const AliveMessage&) const = default;
};
using SupervisorMessage =
    std::variant<EpochMessage, BreakMessage, JoinMessage, StopMessage, SaveMessage, RefusedMessage,
                 AliveMessage, UnknownMessage>;

// One line with its line feed. An UnknownMessage cannot be sent.
Result<std::string> EncodeMessage(const WorkerMessage& message);
Result<std::string> EncodeMessage(const SupervisorMessage& message);

// `line` lacks its line feed.
Result<WorkerMessage> ParseWorkerMessage(std::string_view line);
Result<SupervisorMessage> ParseSupervisorMessage(std::string_view line);

// "hello", "epoch" ...
std::string MessageType(const WorkerMessage& message);
std::string MessageType(const SupervisorMessage& message);

}  // namespace keel
