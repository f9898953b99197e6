// ProcessMark: names a process so that others of its machine can tell whether it is gone.
// Promises   IsProcessGone() is true only where the mark was made by this boot of this machine, in
//            the same space of process numbers, and no such process is left there.
// Threads    any.
#pragma once

#include <string>

namespace keel {

std::string OwnProcessMark();
bool IsProcessGone(const std::string& mark);

}  // namespace keel
