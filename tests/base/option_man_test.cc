// Man pages of made-up programs: what they hold, and what hostile help texts do to them. Whether
// man and groff take them is asked in tests/packaging.
#include "base/option_man.h"

#include <gtest/gtest.h>

#include <sstream>

namespace keel {
namespace {

OptionTable Table() {
  OptionTable table("keel run", "Starts 'workers'.");
  table.TakePositionals(Positionals::kAnywhere, "SCRIPT [args...]");
  table.Section("How \"many\"");
  table.Add(Option::Integer("workers", 2, "How many").Short('n').Env("KEEL_WORKERS"));
  table.Add(Option::Flag("dry-run", false, ".TH is no request, nor is \\fB"));
  table.Add(Option::Text("where", "", "'br\n.sp 9").Placeholder("DIR"));
  table.AddExample(".run --all", "'All' of them");
  table.AddExitCode(75, "stopped");
  return table;
}

std::string Page() { return ManPage(Table(), {"run them", {"A note."}, {"keel", "keelrun"}}); }

bool Has(const std::string& page, const std::string& part) {
  return page.find(part) != std::string::npos;
}

TEST(OptionMan, HoldsWhatHelpSays) {
  const std::string page = Page();
  EXPECT_TRUE(Has(page, "\n.TH \"KEEL\\-RUN\" 1 ")) << page;
  EXPECT_TRUE(Has(page, ".SH NAME\nkeel\\-run \\- run them\n")) << page;
  EXPECT_TRUE(Has(page, "\\fBkeel run\\fR [\\fIoptions\\fR] \\fISCRIPT [args...]\\fR\n")) << page;
  EXPECT_TRUE(Has(page, ".TP\n\\fB\\-n\\fR, \\fB\\-\\-workers\\fR \\fIN\\fR\n"
                        "How many (default: 2) [KEEL_WORKERS]\n"))
      << page;
  EXPECT_TRUE(Has(page, "\n\\fB\\-\\-[no\\-]dry\\-run\\fR\n")) << page;
  EXPECT_TRUE(Has(page, ".SS \"Help\"\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n")) << page;
  EXPECT_TRUE(Has(page, "\n.PP\nA note.\n.SH OPTIONS\n")) << page;
  EXPECT_TRUE(Has(page, ".SH EXIT STATUS\n.TP\n\\fB75\\fR\nstopped\n")) << page;
  EXPECT_TRUE(Has(page, ".SH SEE ALSO\n\\fBkeel\\fR(1),\n\\fBkeelrun\\fR(1)\n")) << page;
}

TEST(OptionMan, EnvironmentIsExplainedWhereThereIsOne) {
  EXPECT_TRUE(Has(Page(), ".SH ENVIRONMENT\n"));
  EXPECT_FALSE(Has(ManPage(OptionTable("keel ls", "Lists."), {"list"}), ".SH ENVIRONMENT\n"));
}

TEST(OptionMan, NoTextIsTakenForARequest) {
  const std::string page = Page();
  EXPECT_TRUE(Has(page, "\n\\&.TH is no request, nor is \\(rsfB")) << page;
  EXPECT_TRUE(Has(page, "\n\\(aqbr .sp 9 (default: none)\n")) << page;
  EXPECT_TRUE(Has(page, "\n.nf\n\\&.run \\-\\-all\n.fi\n")) << page;
  EXPECT_TRUE(Has(page, ".SS \"How \\(dqmany\\(dq\"\n")) << page;
  // Every line that roff would obey is one of ours.
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || (line[0] != '.' && line[0] != '\'')) continue;
    const std::string request = line.substr(0, line.find(' '));
    EXPECT_TRUE(std::string(" .\\\" .TH .SH .SS .TP .PP .RS .RE .nf .fi ")
                    .find(" " + request + " ") != std::string::npos)
        << line;
  }
}

TEST(OptionMan, AProgramOfCommandsListsTheirPages) {
  const std::string page = ManPage("keel", {{"ls", "list", Table()}, {"gc", "tidy", Table()}},
                                   {"look after them", {"One.", "Two."}, {"keelrun"}});
  EXPECT_TRUE(Has(page, ".SH DESCRIPTION\nOne.\n.PP\nTwo.\n.SH COMMANDS\n")) << page;
  EXPECT_TRUE(Has(page, ".TP\n\\fBgc\\fR\ntidy: see \\fBkeel\\-gc\\fR(1)\n")) << page;
  EXPECT_TRUE(Has(page, "\\fBkeel\\-gc\\fR(1),\n\\fBkeelrun\\fR(1)\n")) << page;
}

}  // namespace
}  // namespace keel
