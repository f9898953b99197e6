// Short forms for tests over Result: a failing one prints its error's message.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "base/result.h"
#include "elastic/process/exit_status.h"

#define ASSERT_OK(expression) ASSERT_PRED_FORMAT1(::keel::IsOk, (expression))
#define EXPECT_OK(expression) EXPECT_PRED_FORMAT1(::keel::IsOk, (expression))

// ASSERT_OK_AND_ASSIGN(const auto ranks, Ranks::Start(spec, folder));
#define ASSERT_OK_AND_ASSIGN(declaration, expression) \
  KEEL_ASSERT_ASSIGN_(declaration, expression, KEEL_TRY_NAME(__LINE__))
#define KEEL_ASSERT_ASSIGN_(declaration, expression, name) \
  auto name = (expression);                                \
  ASSERT_PRED_FORMAT1(::keel::IsOk, name);                 \
  declaration = std::move(name).value()

namespace keel {

template <class T>
::testing::AssertionResult IsOk(const char* text, const Result<T>& result) {
  if (result.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << text << " failed (" << CodeName(result.error().code) << "):\n"
         << result.error().message;
}

// How GoogleTest shows it.
inline void PrintTo(const ExitStatus& status, std::ostream* out) { *out << status.Text(); }

}  // namespace keel
