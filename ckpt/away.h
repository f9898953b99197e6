// IsAway: tells bytes that were not returned from bytes that are lost.
// Promises   of a bucket, only what its store has shown is lost: bytes that are not what was
//            written, and objects that are not there. A store that cannot be reached, is overloaded
//            or refuses us has shown nothing, and may be back in a moment. Of a disk all that is
//            not returned is lost: an error there is of one place, and the next one may be read.
// Threads    any: it is pure.
#pragma once

#include "base/result.h"

namespace keel {

constexpr bool IsAway(bool in_bucket, Code code) {
  return in_bucket && code != Code::kCorrupt && code != Code::kNotFound;
}

}  // namespace keel
