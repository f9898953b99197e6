// The status page's drawings, as SVG texts.
// Promises   pure functions; what others wrote is escaped; each is a few hundred KB at most.
#pragma once

#include <cstdint>
#include <string>

#include "elastic/status/job_status.h"

namespace keel {

// Epochs as bars, as high as they had workers, over the time since the job, or the oldest epoch
// that is kept, began; below them what happened.
std::string TimelineSvg(const JobStatus& status, int64_t now_nanos);

// The loss of the steps, and how many samples a second, over all the time.
std::string LossSvg(const JobStatus& status, int64_t now_nanos);
std::string ThroughputSvg(const JobStatus& status, int64_t now_nanos);

// The parts of a worker's newest steps, one beside the other; all of the width is `longest_ms`.
std::string PartsSvg(const StatusTrend& trend, double longest_ms);
// What colour is whose.
std::string PartsKeySvg(const StatusTrend& trend);
// A newest step's time; 0: none was made.
double StepMillis(const StatusTrend& trend);

}  // namespace keel
