// The watched job as a page for people: GET /.
// Promises   pure; one HTML text that loads nothing else, with its styles, script and drawings
//            inside; what others wrote is escaped. The script asks for the page again every two
//            seconds and puts the new content in place of the old one; without scripts the page is
//            as it was when it was asked for. No more than a MB or so, whatever happens.
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "elastic/status/job_status.h"

namespace keel {

// `nonce`: new for each page, of letters and digits; what does not have it, the browser neither
// runs nor styles with.
std::string StatusPageText(const JobStatus& status, int64_t now_nanos, const std::string& nonce);
// The header Content-Security-Policy for that page.
std::string StatusPagePolicy(const std::string& nonce);

}  // namespace keel
