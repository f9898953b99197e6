// The doctor's findings for people, and for programs.
// Promises   a line for each finding, with its cure below it; text of others stays on one line and
//            cannot confuse a terminal.
// Threads    pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "elastic/doctor/findings.h"

namespace keel {

// How many findings have that severity.
size_t CountOf(const std::vector<Finding>& findings, Severity severity);

// OK   clocks         less than 1 ms apart
// WARN shared-memory  node1: /dev/shm has only 64 MiB
//                     cure: give the container more
std::string DoctorText(const std::vector<Finding>& findings);

// {"failures": 0, "warnings": 1, "findings": [{"check": ..., "severity": "ok", ...}]}
Json DoctorJson(const std::vector<Finding>& findings);

// Writes the findings to the launcher's log, before a job.
void LogFindings(const std::vector<Finding>& findings);

}  // namespace keel
