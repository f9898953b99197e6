// KEEL_CHECK: for what can only be false through a bug of ours, in release builds too.
// Promises   prints file, line, condition and the values given, then aborts.
// Does not   serve for what a user, a peer or a disk can cause: that is an Error (base/result.h).
#pragma once

#include <sstream>
#include <string>

namespace keel {

// Prints to stderr and aborts; the one way out for broken invariants.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& values);

}  // namespace keel

// KEEL_CHECK(a < b, "a=" << a << " b=" << b)
#define KEEL_CHECK(condition, values)                                             \
  do {                                                                            \
    if (!(condition)) [[unlikely]] {                                              \
      std::ostringstream keel_check_values;                                       \
      keel_check_values << values;                                                \
      ::keel::CheckFailed(__FILE__, __LINE__, #condition, keel_check_values.str()); \
    }                                                                             \
  } while (false)
