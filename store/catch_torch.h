// CatchTorch(): the only border where LibTorch's exceptions become Errors.
// Promises   no exception from inside passes it; the message carries no stack trace.
// Does not   undo anything: what the guarded code did by halves stays so.
// Threads    any; each thread's body ends in a CatchTorch() of its own.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace keel {

// The error for the exception being handled: its class decides first, then its words.
Error ErrorOfCurrentException(const std::string& doing);

template <class F>
auto CatchTorch(const std::string& doing, F&& body) -> Result<std::invoke_result_t<F>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::forward<F>(body)();
      return Ok();
    } else {
      return std::forward<F>(body)();
    }
  } catch (...) {
    return ErrorOfCurrentException(doing);
  }
}

}  // namespace keel
