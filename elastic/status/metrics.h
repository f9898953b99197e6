// The watched job in Prometheus' text format, version 0.0.4: GET /metrics.
// Promises   pure; label values are escaped and valid UTF-8; the number of series grows only with
//            workers, hosts and kinds of events.
#pragma once

#include <cstdint>
#include <string>

#include "elastic/status/job_status.h"

namespace keel {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string StatusMetricsText(const JobStatus& status, int64_t now_nanos);

}  // namespace keel
