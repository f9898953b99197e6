// The status page's drawings, as SVG texts.
// Promises   pure functions; what others wrote is escaped; each is a few hundred KB at most.
#pragma once

#include <cstdint>
#include <string>

#include "elastic/job_status.h"

namespace keel {

// Epochs as bars, as high as they had workers, over the time since the job, or the oldest epoch
// that is kept, began; below them what happened.
std::string TimelineSvg(const JobStatus& status, int64_t now_nanos);

}  // namespace keel
