// The watched job as a page for people: GET /.
// Promises   pure; one HTML text that loads nothing else, with its styles, script and drawings
//            inside; text of others is escaped. The script asks for the page again every two
//            seconds and replaces the content; without scripts the page stays as it was when it
//            was requested. It has about 1 MB at most, whatever happens.
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "elastic/status/job_status.h"

namespace keel {

// `nonce`: letters and digits, new for each page; the browser neither runs nor styles with anything
// that lacks it.
std::string StatusPageText(const JobStatus& status, int64_t now_nanos, const std::string& nonce);
// The header Content-Security-Policy for that page.
std::string StatusPagePolicy(const std::string& nonce);

}  // namespace keel
