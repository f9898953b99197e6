// The status page's drawings, as SVG texts.
// Promises   pure functions; text of others is escaped; each drawing is a few hundred KB at most.
#pragma once

#include <cstdint>
#include <string>

#include "elastic/status/job_status.h"

namespace keel {

// Epochs as bars, as high as their number of workers, over the time since the job, or the oldest
// epoch that is kept, began; below them the events.
std::string TimelineSvg(const JobStatus& status, int64_t now_nanos);

// The loss of the steps, and the samples per second, over the whole time.
std::string LossSvg(const JobStatus& status, int64_t now_nanos);
std::string ThroughputSvg(const JobStatus& status, int64_t now_nanos);

// The parts of a worker's newest steps, side by side; the full width is `longest_ms`.
std::string PartsSvg(const StatusTrend& trend, double longest_ms);
// The key: which colour stands for which part.
std::string PartsKeySvg(const StatusTrend& trend);
// The time of one of the newest steps; 0: none was made.
double StepMillis(const StatusTrend& trend);

}  // namespace keel
