// IsAway: tells bytes that were not returned from bytes that are lost.
// Promises   of a bucket, only what its store has shown is lost: bytes that are not what was
//            written, and objects that are not there. A store that cannot be reached, is overloaded
//            or refuses us has shown nothing, and may be back in a moment. Of a disk all that is
//            not returned is lost: an error there is of one place, and the next one may be read.
//            But a file that it does not open for want of a right or of descriptors (IsRefused) has
//            shown nothing either.
// Threads    any: they are pure.
#pragma once

#include <cerrno>
#include <string>

#include "base/file_error.h"
#include "base/result.h"

namespace keel {

constexpr bool IsAway(bool in_bucket, Code code) {
  return in_bucket && code != Code::kCorrupt && code != Code::kNotFound;
}

// `error`: of Files::Open(path). All that a file system refuses has one code, so the words tell.
inline bool IsRefused(const std::string& path, const Error& error) {
  for (const int why : {EACCES, EMFILE, ENFILE}) {
    if (error.message == FileError("open", path, why).message) return true;
  }
  return false;
}

}  // namespace keel
