// What the strict JSON reader takes and refuses, and how records are read from it.
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/garbage.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

std::string ProblemOf(std::string_view text) {
  const Result<Json> json = ParseJson(text);
  return json.ok() ? "none" : json.error().message;
}

TEST(ParseJson, KeepsTheOrderOfMembers) {
  const std::string text = R"({"zebra":1,"ant":[true,null,"x",{"a":{}}],"mole":-2.5})";
  EXPECT_EQ(DumpJson(*ParseJson(text)), text);
}

TEST(ParseJson, SaysLineAndColumnAndWhatItFound) {
  EXPECT_THAT(ProblemOf("{\n  \"a\": 1,\n  }"), HasSubstr("line 3, column 3: unexpected '}'"));
  EXPECT_THAT(ProblemOf("[1, 2"), HasSubstr("line 1, column 6: unexpected end of input"));
  EXPECT_THAT(ProblemOf("[tru]"), HasSubstr("line 1, column 5: invalid literal"));
  EXPECT_THAT(ProblemOf(""), HasSubstr("line 1, column 1: unexpected end of input"));
  EXPECT_THAT(ProblemOf("1 2"), HasSubstr("line 1, column 3"));
}

TEST(ParseJson, ItsProblemsArePrintableWhateverBytesItRead) {
  for (const char* text :
       {"[\"\xff\"]", "[\x1b[31m]", "[\"\x7f\xc2\x9b\xff\"]", "[\xe2\x80\xae]"}) {
    const std::string problem = ProblemOf(text);
    EXPECT_THAT(problem, HasSubstr("line 1, column "));
    EXPECT_EQ(problem, Printable(problem)) << text;
  }
}

TEST(ParseJson, RefusesARepeatedKeyAtAnyDepth) {
  EXPECT_EQ(ProblemOf("{\"a\": {\"b\": 1,\n \"b\": 2}}"),
            "line 2, column 4: found the key 'b' a second time in one object");
  EXPECT_TRUE(ParseJson(R"({"a": {"a": 1}, "b": {"a": 2}})").ok());
}

TEST(ParseJson, Keeps64BitsAndRefusesMore) {
  EXPECT_EQ(DumpJson(*ParseJson("[18446744073709551615,-9223372036854775808]")),
            "[18446744073709551615,-9223372036854775808]");
  EXPECT_THAT(ProblemOf("[18446744073709551616]"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(ProblemOf("[-9223372036854775809]"), HasSubstr("does not fit 64 bits"));
  EXPECT_FALSE(ParseJson("1e999").ok());
}

TEST(ParseJson, RefusesBrokenUtf8) {
  EXPECT_FALSE(ParseJson("\"\xff\"").ok());
  EXPECT_FALSE(ParseJson(R"("\ud800")").ok());
}

TEST(ParseJson, RefusesAZeroByteAndWhatItWouldHide) {
  using std::string_literals::operator""s;
  for (const std::string& text : {"{}\0"s, "{}\0 {\"more\":1}"s, "[1,\0 2]"s, "\0{}"s}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
  }
  EXPECT_EQ(ParseJson("{}\n\0x"s).error().message, "line 2, column 1: found a zero byte");
}

TEST(ParseJson, BoundsTheDepth) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseJson(nested(kJsonDepthMax)).ok());
  EXPECT_EQ(ProblemOf(nested(kJsonDepthMax + 1)),
            "line 1, column 201: nested deeper than 200 levels");
  EXPECT_FALSE(ParseJson(std::string(100'000, '[')).ok());
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(ParseJson(objects).ok());
}

TEST(ParseJson, TakesManyMembersInLinearTime) {
  // 200,000 members compared with one another would take minutes, and the test's limit.
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"key-" + std::to_string(i) + "\":1,";
  text.back() = '}';
  EXPECT_EQ(ParseJson(text)->size(), 200'000u);
}

TEST(ParseJson, MessagesStayShort) {
  EXPECT_LT(ProblemOf("[\"" + std::string(100'000, 'x')).size(), 300u);
}

TEST(ParseJson, GarbageGivesAResult) {
  Garbage garbage(20261121);
  const std::vector<std::string> pieces = {"{",  "}",    "[",     "]",  ",",      ":",  "\"a\"",
                                           "\"", "null", "-1e5",  "-",  "1.5",    " ",  "\\u12",
                                           "\n", "true", "\xef\xbb\xbf", "/*",  "\xff", "9e99999"};
  int good = 0;
  for (int i = 0; i < Rounds(20'000, 4'000); ++i) {
    std::string text;
    for (uint64_t n = garbage.Below(8); n > 0; --n) text += garbage.OneOf(pieces);
    if (garbage.Below(4) == 0) text += garbage.Bytes(6);
    const Result<Json> json = ParseJson(text);
    if (!json.ok()) {
      ASSERT_THAT(json.error().message, HasSubstr("line ")) << garbage.Where(i);
      continue;
    }
    ++good;
    ASSERT_EQ(DumpJson(*ParseJson(DumpJson(*json))), DumpJson(*json)) << garbage.Where(i);
  }
  EXPECT_GT(good, Rounds(100, 20));
}

TEST(ParseJson, EveryCutOfADocumentIsRefused) {
  const std::string whole = R"({"step":12,"who":["a","b\n"],"x":{"y":-1.5e3,"z":null}})";
  ASSERT_TRUE(ParseJson(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseJson(whole.substr(0, size)).ok()) << size;
  }
}

TEST(DumpJson, ReplacesBrokenUtf8AndWhatJsonLacks) {
  EXPECT_EQ(DumpJson(Json("a\xff" "b")), "\"a\xef\xbf\xbd" "b\"");
  EXPECT_EQ(DumpJson(Json(std::numeric_limits<double>::quiet_NaN())), "null");
  EXPECT_EQ(DumpJson(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

TEST(Field, ReadsEachType) {
  const Json record = *ParseJson(
      R"({"n":-3,"u":18446744073709551615,"x":2,"b":true,"s":"hi","l":["a"],"i":[1,-2],"o":{}})");
  EXPECT_EQ(*Field<int>(record, "n"), -3);
  EXPECT_EQ(*Field<int64_t>(record, "n"), -3);
  EXPECT_EQ(*Field<uint64_t>(record, "u"), UINT64_MAX);
  EXPECT_EQ(*Field<double>(record, "x"), 2.0);
  EXPECT_TRUE(*Field<bool>(record, "b"));
  EXPECT_EQ(*Field<std::string>(record, "s"), "hi");
  EXPECT_EQ(*Field<std::vector<std::string>>(record, "l"), std::vector<std::string>{"a"});
  EXPECT_EQ(*Field<std::vector<int64_t>>(record, "i"), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ((*ArrayField(record, "i"))->size(), 2u);
  EXPECT_TRUE((*ObjectField(record, "o"))->empty());
}

TEST(Field, SaysWhatWasExpectedAndFound) {
  const Json record = *ParseJson(
      R"({"step":"12","f":1.0,"zero":-0,"n":-1,"u":9223372036854775808,"big":4294967296,)"
      R"("l":[1,"x"]})");
  EXPECT_EQ(Field<int64_t>(record, "step").error().message,
            "field 'step': expected a whole number, found a string");
  EXPECT_EQ(Field<int64_t>(record, "f").error().message,
            "field 'f': expected a whole number, found the number 1.0");
  EXPECT_EQ(Field<int64_t>(record, "zero").error().message,
            "field 'zero': expected a whole number, found the number -0.0");
  EXPECT_EQ(Field<uint64_t>(record, "n").error().message,
            "field 'n': expected a whole number that is not negative, found the number -1");
  EXPECT_EQ(Field<int64_t>(record, "u").error().message,
            "field 'u': the number 9223372036854775808 is larger than 9223372036854775807");
  EXPECT_EQ(Field<int>(record, "big").error().message,
            "field 'big': expected a whole number of 32 bits, found the number 4294967296");
  EXPECT_EQ(Field<std::vector<int64_t>>(record, "l").error().message,
            "field 'l': item 1: expected a whole number, found a string");
  EXPECT_EQ(ArrayField(record, "n").error().message,
            "field 'n': expected an array, found the number -1");
}

TEST(Field, MissingIsNotFoundAndNoObjectIsInvalid) {
  EXPECT_EQ(Field<bool>(*ParseJson("{}"), "a").error().code, Code::kNotFound);
  EXPECT_EQ(Field<bool>(*ParseJson("{}"), "a").error().message, "field 'a' is missing");
  EXPECT_EQ(Field<bool>(*ParseJson("[]"), "a").error().code, Code::kInvalid);
}

TEST(FieldOr, StandsInOnlyForWhatIsMissing) {
  const Json record = *ParseJson(R"({"a":1,"b":null})");
  EXPECT_EQ(*FieldOr<int>(record, "a", 7), 1);
  EXPECT_EQ(*FieldOr<int>(record, "c", 7), 7);
  EXPECT_FALSE(FieldOr<int>(record, "b", 7).ok());
}

}  // namespace
}  // namespace keel
