// WorkerLaunch: what a worker is started with: its command line, environment and streams.
// Promises   pure functions. A worker that is started for an epoch gets torchrun's whole contract.
//            One that waits for its epoch (in place) gets all of it except what only the epoch
//            will say: its rank, the world's size, the store.
// Threads    plain values. Errors: those of ForeignEnvironment().
#pragma once

#include <optional>

#include "base/environment.h"
#include "base/result.h"
#include "elastic/process/spawn.h"
#include "elastic/protocol/records.h"
#include "elastic/workers/logs.h"
#include "elastic/workers/plan.h"

namespace keel {

struct WorkerStart {
  int index = 0;                       // local rank
  std::optional<EpochRecord> epoch;    // empty: it waits for one
  int64_t slot = -1;                   // of its host in that epoch
  int rank = -1;
  bool polite = false;                 // until an epoch is sent to it, or for kPoliteLimit
  SeatLogs logs;
};

Result<ChildSpec> MakeChildSpec(const WorkerPlan& plan, const WorkerStart& start,
                                const Environment& own);

}  // namespace keel
