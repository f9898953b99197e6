// How a broken invariant ends the process: one line on stderr, then abort().
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace keel {

void CheckFailed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: check failed: %s; %s\n", file, line, condition, values.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace keel
