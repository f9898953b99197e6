// Result<T>: a value, or an Error that says what happened, to what, and (by its code) how to react.
// Promises   an unread Result is a compiler warning; reading an error's value is a checked bug.
// Does not   throw, allocate for the value, or carry a stack trace.
// Threads    a plain value: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace keel {

// Named after what the caller can do about it, not after the cause.
enum class Code {
  kInvalid,     // the input is wrong: change it
  kNotFound,    // it is not there
  kExists,      // it is there already
  kTimeout,     // its limit passed: ask again, or give up
  kCancelled,   // somebody asked us to stop
  kPeerLost,    // the other side is gone: connect anew
  kStaleEpoch,  // it belongs to a membership that is over
  kCorrupt,     // bytes are not what was written: take another copy
  kNoSpace,     // disk full or quota reached: free some
  kIo,          // the file system refused
  kNoDevice,    // no GPU, or it is lost
  kForeign,     // code that is not ours failed in a way we do not know
};

// "corrupt", "no-space" ...: the code's name in logs and JSON.
std::string_view CodeName(Code code);

struct Error {
  Code code = Code::kForeign;
  std::string message;
  bool may_pass = false;  // a disk or file system failed that may answer the next time

  // "saving step 12: <message>": whoever passes an error up says what it was doing.
  Error Doing(std::string_view what) const {
    return {code, std::string(what) + ": " + message, may_pass};
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Error error) : held_(std::move(error)) {}

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& { return Held(); }
  T& value() & { return const_cast<T&>(Held()); }
  T&& value() && { return std::move(const_cast<T&>(Held())); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const {
    KEEL_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(held_);
  }

 private:
  const T& Held() const {
    KEEL_CHECK(ok(), "value() of an error: " << std::get<1>(held_).message);
    return std::get<0>(held_);
  }

  std::variant<T, Error> held_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Error& error() const {
    KEEL_CHECK(!ok(), "error() of a Result that is fine");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;
inline Status Ok() { return {}; }

}  // namespace keel

// KEEL_TRY(DoThis()): returns the error to the caller, if there is one.
#define KEEL_TRY(expression)                                    \
  do {                                                          \
    if (auto keel_try = (expression); !keel_try.ok()) {         \
      return keel_try.error();                                  \
    }                                                           \
  } while (false)

// KEEL_TRY_ASSIGN(const std::string text, ReadFile(path)): the value, or the error to the caller.
#define KEEL_TRY_ASSIGN(declaration, expression) \
  KEEL_TRY_ASSIGN_(declaration, expression, KEEL_TRY_NAME(__LINE__))
#define KEEL_TRY_NAME(line) KEEL_TRY_NAME_(line)
#define KEEL_TRY_NAME_(line) keel_try_##line
#define KEEL_TRY_ASSIGN_(declaration, expression, name) \
  auto name = (expression);                             \
  if (!name.ok()) return name.error();                  \
  declaration = std::move(name).value()
