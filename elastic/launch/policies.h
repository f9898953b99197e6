// Derives the policy of each part of the launcher from what the launcher was told.
// Threads    pure functions.
#pragma once

#include <cstdint>

#include "elastic/board/client.h"
#include "elastic/board/coordinator.h"
#include "elastic/board/workers_place.h"
#include "elastic/decisions/host_machine.h"
#include "elastic/launch/config.h"
#include "elastic/launch/meeting.h"
#include "elastic/workers/health_check.h"
#include "elastic/workers/plan.h"

namespace keel {

HostConfig HostConfigFrom(const LaunchConfig& config, const Meeting& meeting,
                          const std::string& incarnation);
BoardClientConfig MemberConfigFrom(const LaunchConfig& config);
WorkerPlan WorkerPlanFrom(const LaunchConfig& config);
HealthPlan HealthPlanFrom(const LaunchConfig& config, const Environment& environment);
JobPolicy JobPolicyFrom(const LaunchConfig& config);

// Whether no other host can ever come to the job.
bool IsAlone(const LaunchConfig& config);

// Where workers of fixed hosts expect to meet, as the user wrote it. Nothing: wherever it may be.
std::optional<WorkersPlace> WorkersMeet(const LaunchConfig& config, const Meeting& meeting);

// Whether this host opens the first board where the endpoint is another job's.
bool MayOpenBeside(const LaunchConfig& config);

// How many files, besides those already open, a launcher may have open at once in such a job with
// its least number of hosts. The store counts only if the config says who hosts it, not if that is
// found out.
uint64_t OpenFilesWanted(const LaunchConfig& config);

}  // namespace keel
