// What a call gives to Python: an exception with the error's words, and nothing else.
// Threads    any.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace keel {

[[noreturn]] inline void Throw(const Error& error) { throw std::runtime_error(error.message); }

inline void Check(const Status& status) {
  if (!status.ok()) Throw(status.error());
}

template <class T>
T Checked(Result<T> result) {
  if (!result.ok()) Throw(result.error());
  return *std::move(result);
}

}  // namespace keel
