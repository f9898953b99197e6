// Whatever others wrote is text on the page.
#include "elastic/status/html.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(HtmlText("aé", 2), "a...");
}

}  // namespace
}  // namespace keel
