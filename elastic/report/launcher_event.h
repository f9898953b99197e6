// LauncherEvent: what happens at a launcher that more than one kind of reader wants to know of. It
// is stated once; the log (event_log.h), the summary at the end (job_story.h) and the status page
// (elastic/status/job_status.h) each take of it what their readers need.
// Does not   name what only the log tells, such as the address at which a job began.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "elastic/protocol/board_events.h"
#include "elastic/report/failures.h"
#include "elastic/report/notice_event.h"

namespace keel {

struct StoreLost { std::string reason; };
struct StoreReached {};
struct NoStore { std::string reason; };          // none can be used here, now or later
struct JobWaits { std::string reason; };         // as the coordinator sees it
// This launcher has waited for so long, and gives up after `left`; nothing: another one decides
// that.
struct HostWaits {
  std::string what;
  Duration waited{0};
  std::optional<Duration> left;
  std::string cure;
};

// A worker ended in a way that costs a restart, or that ends the job.
struct WorkerFailed {
  std::string who;                // "rank 3 on node-b (local rank 1)"
  std::string how;                // "was killed by signal 9 (SIGKILL)"
  WorkerFailure failure;
  int64_t epoch = 0;
  int64_t step = 0;
  bool in_place = false;
};
struct WorkerEnded {
  std::string who;
  std::string how;
  int rank = 0;
  int64_t pid = 0;
  // Of one that a signal of ours has ended, as where others of its epoch have failed.
  std::optional<WorkerFailure> stopped = {};
  int64_t epoch = 0;
};

struct CheckpointSaved { int64_t step = 0; };
struct SaveAsked { std::string signal; };
// A wish to stop: "SIGTERM to the launcher on node-b".
struct StopAsked { std::string by; };
struct NoticeObeyed {
  std::string notice;
  Duration left{0};               // to the end of this machine, as far as it is believed
  Duration to_save{0};
  std::string by;                 // as of StopAsked
};
// Before a worker starts.
struct HealthChecked {
  bool is_fit = true;
  std::string reason;             // if it is not
  Duration took{0};
};
struct KilledByUser { std::string why; };
struct RegistersAnew { std::string reason; };
// The job goes on without that host, whose machine is not to be trusted.
struct HostShunned {
  std::string host;
  std::string reason;
  bool is_own = false;            // it is this launcher's
};
struct LauncherEnds {
  int code = 0;
  std::string outcome;
};

using LauncherEvent =
    std::variant<Registered, EpochSeen, BreakSeen, StopSeen, StoreLost, StoreReached, NoStore,
                 JobWaits, HostWaits, WorkerFailed, WorkerEnded, CheckpointSaved, SaveAsked,
                 StopAsked, NoticeEvent, NoticeObeyed, HealthChecked, KilledByUser, RegistersAnew,
                 HostShunned, LauncherEnds>;

}  // namespace keel
