// TellStranger: tells the log that somebody who has not the job's token has spoken to us, or
// answered, and from which address.
// Promises   once a minute for each address, and no more than a hundred addresses in that time.
// Threads    any.
#pragma once

#include <string>

namespace keel {

void TellStranger(const std::string& address, const std::string& what);

}  // namespace keel
