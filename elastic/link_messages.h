// The messages of the control link (PROTOCOL.md section 4) as values.
// Does not   hold their JSON text.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "elastic/position.h"
#include "elastic/records.h"

namespace keel {

// From the worker.
struct HelloMessage { int version = kProtocolVersion; std::string fingerprint; };
struct ReadyMessage { int64_t step = -1; };   // -1: it has no state yet
struct ParkedMessage {
  int64_t epoch = 0;
  int64_t step = -1;
  bool at_boundary = false;   // agreed upon with the others; else the epoch broke
};
struct AtMessage { Position position; };
struct SavedMessage { int64_t step = -1; };
struct LeavingMessage { int64_t step = -1; };
struct ByeMessage { int code = 0; std::string message; };
using WorkerMessage = std::variant<HelloMessage, ReadyMessage, ParkedMessage, AtMessage,
                                   SavedMessage, LeavingMessage, ByeMessage>;

// To the worker.
struct EnterMessage { int rank = 0; EpochRecord epoch; };   // "epoch" on the link
struct BreakMessage { int64_t epoch = 0; std::string reason; };
struct JoinMessage { int64_t epoch = 0; };
struct StopMessage { std::string reason; int64_t deadline_ms = 0; };
struct RefusedMessage { std::string reason; };
using SupervisorMessage =
    std::variant<EnterMessage, BreakMessage, JoinMessage, StopMessage, RefusedMessage>;

}  // namespace keel
