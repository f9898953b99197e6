// FileError: how an errno of the disk becomes an Error, by one table for real and made-up disks.
// Promises   the message holds operation, path, the system's text and, where we know one, a cure;
//            may_pass says whether the file system may answer another time.
// Threads    any.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace keel {

// ENOENT: kNotFound. EEXIST, ENOTEMPTY: kExists. ENOSPC, EDQUOT: kNoSpace. All else: kIo.
Code CodeOfErrno(int error_number);

// FileError("write", "/ckpts/a", ENOSPC): "write /ckpts/a: No space left on device; free some..."
Error FileError(std::string_view operation, const std::string& path, int error_number);

// A lock that another one holds: kExists.
Error LockHeldError(const std::string& path, const std::string& owner);

}  // namespace keel
