// What Result, its macros and KEEL_CHECK promise.
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace keel {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Error{Code::kInvalid, "3 is odd"};
  return number / 2;
}

Result<int> Quarter(int number) {
  KEEL_TRY_ASSIGN(const int half, Half(number));
  KEEL_TRY_ASSIGN(const int quarter, Half(half));
  return quarter;
}

Status Halvable(int number) {
  KEEL_TRY(Half(number));
  return Ok();
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*Half(4), 2);
  const Result<int> bad = Half(3);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Code::kInvalid);
}

TEST(Result, ErrorsPassThroughTheMacros) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(Halvable(2).ok());
  EXPECT_FALSE(Halvable(3).ok());
}

TEST(Result, CarriesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(7));
  std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 7);
}

TEST(Error, DoingPutsTheActivityInFront) {
  EXPECT_EQ(Half(3).error().Doing("dividing").message, "dividing: 3 is odd");
}

TEST(ResultDeathTest, ReadingTheValueOfAnErrorIsABug) {
  const Result<int> bad = Half(3);
  EXPECT_DEATH((void)bad.value(), "3 is odd");
}

TEST(CheckDeathTest, PrintsConditionAndValues) {
  const int a = 2;
  EXPECT_DEATH(KEEL_CHECK(a == 3, "a=" << a), "a == 3; a=2");
}

}  // namespace
}  // namespace keel
