// How sizes, durations, lists and foreign text are read and written.
#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/garbage.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

TEST(ParseInteger, TakesAllOf64BitsAndNothingElse) {
  EXPECT_EQ(*ParseInteger("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(*ParseInteger("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", " 1", "1 ", "1.0", "0x10", "1e3", "one", "+-1"}) {
    EXPECT_FALSE(ParseInteger(bad).ok()) << bad;
  }
  EXPECT_EQ(ParseInteger("9223372036854775808").error().message,
            "'9223372036854775808' does not fit 64 bits");
}

TEST(ParseNumber, RefusesWhatIsNotFinite) {
  EXPECT_EQ(*ParseNumber("-1.5e3"), -1500.0);
  for (const char* bad : {"", "nan", "inf", "-inf", "1e999", "1,5", "1.5x"}) {
    EXPECT_FALSE(ParseNumber(bad).ok()) << bad;
  }
}

TEST(NumberText, ReadsBackAsTheSameNumber) {
  for (const double number : {0.1, 1.0 / 3, 1e-300, 12345678.9, -2.0}) {
    EXPECT_EQ(*ParseNumber(NumberText(number)), number);
  }
  EXPECT_EQ(NumberText(0.1), "0.1");
}

TEST(BytesText, UsesTheLargestUnitThatFits) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1 KiB");
  EXPECT_EQ(BytesText(1610612736), "1.5 GiB");
  EXPECT_EQ(BytesText(1048575), "1 MiB");
  EXPECT_EQ(BytesText(100 * 1024), "100 KiB");
  EXPECT_EQ(BytesText(UINT64_MAX), "16 EiB");
}

TEST(ParseBytes, KnowsBinaryAndDecimalUnits) {
  EXPECT_EQ(*ParseBytes("4096"), 4096u);
  EXPECT_EQ(*ParseBytes("512KiB"), 512u * 1024);
  EXPECT_EQ(*ParseBytes("512k"), 512u * 1024);
  EXPECT_EQ(*ParseBytes("10 MB"), 10'000'000u);
  EXPECT_EQ(*ParseBytes("1.5 GiB"), 1610612736u);
  EXPECT_EQ(*ParseBytes("18446744073709551615"), UINT64_MAX);
}

TEST(ParseBytes, RefusesWhatIsNoSizeOrTooLarge) {
  for (const char* bad : {"", "-1", "KiB", "1 XiB", "1KiB 2", "1.", ".5", "16777216TiB", "1e3"}) {
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
  }
  EXPECT_EQ(ParseBytes("12 parsecs").error().message,
            "'12 parsecs' is not a size such as 512KiB or 2GiB");
}

TEST(ParseDuration, KnowsUnitsSumsAndBareSeconds) {
  EXPECT_EQ(*ParseDuration("250ms"), 250ms);
  EXPECT_EQ(*ParseDuration("10s"), 10s);
  EXPECT_EQ(*ParseDuration("3min"), 3min);
  EXPECT_EQ(*ParseDuration("1h30min"), 90min);
  EXPECT_EQ(*ParseDuration("3 min 20 s"), 200s);
  EXPECT_EQ(*ParseDuration("0.1"), 100ms);
  EXPECT_EQ(*ParseDuration("7"), 7s);
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* bad : {"", "-1s", "s", "5 parsecs", "1h30", "300000d", "nan", "1..5s"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

TEST(JoinList, PutsTheSeparatorBetweenParts) {
  EXPECT_EQ(JoinList({"a", "b", "c"}), "a,b,c");
  EXPECT_EQ(JoinList({"a", "b"}, " | "), "a | b");
  EXPECT_EQ(JoinList({"a", ""}), "a,");
  EXPECT_EQ(JoinList({"a"}), "a");
  EXPECT_EQ(JoinList({}), "");
}

TEST(SplitList, DropsBlanksAndEmptyParts) {
  EXPECT_EQ(SplitList(" a, b ,,c"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(SplitList(" , ").empty());
  EXPECT_EQ(SplitList("a:b", ':').size(), 2u);
}

TEST(QuoteForLog, QuotesOnlyWhereItMust) {
  EXPECT_EQ(QuoteForLog("step-12/x.keel"), "step-12/x.keel");
  EXPECT_EQ(QuoteForLog("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(QuoteForLog(""), "\"\"");
  EXPECT_EQ(QuoteForLog("signal 9"), "\"signal 9\"");
  EXPECT_EQ(QuoteForLog("a=b"), "\"a=b\"");
  EXPECT_EQ(QuoteForLog("say \"hi\" \\"), R"("say \"hi\" \\")");
}

TEST(QuoteForLog, EscapesWhatWouldBreakTheLineOrTheTerminal) {
  EXPECT_EQ(QuoteForLog("a\nb\tc\rd"), R"("a\nb\tc\rd")");
  EXPECT_EQ(QuoteForLog("\x1b[31m"), R"("\x1b[31m")");
  EXPECT_EQ(QuoteForLog("\xff"), R"("\xff")");
  EXPECT_EQ(QuoteForLog("\xc3"), R"("\xc3")");
  EXPECT_EQ(QuoteForLog("\xc0\xaf"), R"("\xc0\xaf")");
  EXPECT_EQ(QuoteForLog("\xe2\x80\xa8"), R"("\xe2\x80\xa8")");
  EXPECT_EQ(QuoteForLog("\xc2\x9b"), R"("\xc2\x9b")");
}

TEST(QuoteForLog, MakesOnePrintableLineOfAnything) {
  Garbage garbage(20261121);
  for (int i = 0; i < 2000; ++i) {
    for (const char c : QuoteForLog(garbage.Bytes(40))) {
      ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << garbage.Where(i);
    }
  }
}

TEST(Printable, EscapesWhatDisturbsATerminalAndKeepsTheRest) {
  EXPECT_EQ(Printable("a \"b\" c\\d='\xc3\xa9'"), "a \"b\" c\\d='\xc3\xa9'");
  EXPECT_EQ(Printable(std::string_view("\0\x1b[31m\n\xff", 8)), R"(\x00\x1b[31m\n\xff)");
  EXPECT_EQ(Printable("\xe2\x80\xae"), R"(\xe2\x80\xae)");
}

TEST(Shown, CutsWhatIsLong) {
  EXPECT_EQ(Shown("abc\n"), "'abc\\n'");
  EXPECT_LT(Shown(std::string(10000, 'x')).size(), 100u);
  EXPECT_TRUE(Shown(std::string(10000, 'x')).ends_with("...'"));
}

TEST(Text, NumbersForPeopleAreWrittenTheSameEverywhere) {
  EXPECT_EQ(FixedText(1.25, 1), "1.2");
  EXPECT_EQ(FixedText(1234567.0, 0), "1234567");
  EXPECT_EQ(FixedText(std::nan(""), 1), "NaN");
  EXPECT_EQ(FixedText(-std::numeric_limits<double>::infinity(), 1), "-Inf");
  EXPECT_EQ(FixedText(std::numeric_limits<double>::max(), 1).size(), 311U);
  EXPECT_EQ(ShortText(0.031254), "0.03125");
  EXPECT_EQ(ShortText(12.3), "12.3");
}

TEST(Text, ABeginningEndsBetweenCharacters) {
  EXPECT_EQ(Beginning("abc", 3), "abc");
  EXPECT_EQ(Beginning("abc", 2), "ab");
  EXPECT_EQ(Beginning("aé", 2), "a");
  EXPECT_EQ(Beginning("a€b", 3), "a");
  EXPECT_EQ(Beginning("a€b", 4), "a€");
  EXPECT_EQ(Beginning("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80");
  EXPECT_EQ(Beginning("é", 0), "");
  EXPECT_EQ(Beginning("", 0), "");
  const std::string mixed = "aé€\xf0\x9f\x98\x80z";   // characters of 1, 2, 3, 4 and 1 bytes
  const std::vector<size_t> ends = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (size_t most = 0; most < ends.size(); ++most) {
    EXPECT_EQ(Beginning(mixed, most), mixed.substr(0, ends[most])) << most;
  }
}

}  // namespace
}  // namespace keel
