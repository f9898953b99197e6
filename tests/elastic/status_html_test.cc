// Escaping, and numbers for people.
#include "elastic/status_html.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace keel {
namespace {

TEST(StatusHtml, NothingThatOthersWroteIsMarkup) {
  EXPECT_EQ(HtmlText("<script>alert('a' & \"b\")</script>"),
            "&lt;script&gt;alert(&#39;a&#39; &amp; &quot;b&quot;)&lt;/script&gt;");
  EXPECT_EQ(HtmlText("&lt;"), "&amp;lt;");
  EXPECT_EQ(HtmlText("line\nbreak\tand \x1b[31m"), "line\\nbreak\\tand \\x1b[31m");
  EXPECT_EQ(HtmlText(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(HtmlText("\xff\xfe <"), "\\xff\\xfe &lt;");
  EXPECT_EQ(HtmlText("Größe ≥ 3"), "Größe ≥ 3");
}

TEST(StatusHtml, EveryByteComesOutHarmless) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = HtmlText(std::string(1, static_cast<char>(byte)));
    EXPECT_EQ(text.find_first_of("<>\"'"), std::string::npos) << byte;
    for (const char c : text) EXPECT_TRUE(c >= ' ' && c <= '~') << byte;
  }
}

TEST(StatusHtml, WhatIsCutStaysHarmless) {
  EXPECT_EQ(HtmlText("<<<<", 2), "&lt;&lt;...");
  EXPECT_EQ(HtmlText("<<", 2), "&lt;&lt;");
  EXPECT_EQ(HtmlText("aé", 2), "a\\xc3...");
}

TEST(StatusHtml, NumbersAreWrittenTheSameEverywhere) {
  EXPECT_EQ(FixedText(1.25, 1), "1.2");
  EXPECT_EQ(FixedText(1234567.0, 0), "1234567");
  EXPECT_EQ(FixedText(std::nan(""), 1), "NaN");
  EXPECT_EQ(FixedText(-std::numeric_limits<double>::infinity(), 1), "-Inf");
  EXPECT_EQ(FixedText(std::numeric_limits<double>::max(), 1).size(), 311U);
  EXPECT_EQ(ShortText(0.031254), "0.03125");
  EXPECT_EQ(ShortText(12.3), "12.3");
  EXPECT_EQ(TimeOfDayText(1'790'000'000'000'000'000), "14:13:20");
}

}  // namespace
}  // namespace keel
