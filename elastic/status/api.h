// The watched job as JSON, for programs: GET /api.
// Promises   pure; one object, whose members are only ever added to. Times are text (UTC) and, as
//            `..._s`, seconds since 1970; what is unknown is null.
#pragma once

#include <cstdint>
#include <string>

#include "elastic/status/job_status.h"

namespace keel {

std::string StatusApiText(const JobStatus& status, int64_t now_nanos);

}  // namespace keel
