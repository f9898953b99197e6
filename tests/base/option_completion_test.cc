// Completion scripts of programs without commands, and what hostile help texts do to them. Real
// shells are asked in tests/tools/keel_completion_test.cc.
#include "base/option_completion.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

OptionTable Table() {
  OptionTable table("tools/keel-run", "Starts workers.");
  table.TakePositionals(Positionals::kRemainder, "script [args...]");
  table.Add(Option::Integer("workers", 2, "How many").Short('n'));
  table.Add(
      Option::Choice("device", {"auto", "cpu", "cuda"}, "auto", "It's [where]: `here` $HOME"));
  table.Add(Option::Text("checkpoints", "", "Where").Placeholder("DIR"));
  table.Add(Option::Text("log", "", "Where").Placeholder("LOG_FILE"));
  table.Add(Option::List("env", "", "Variables"));
  return table;
}

bool Has(const std::string& script, const std::string& part) {
  return script.find(part) != std::string::npos;
}

TEST(OptionCompletion, BashKnowsValuesAndNames) {
  const std::string script = BashCompletion(Table());
  EXPECT_TRUE(Has(script, "complete -F _keel_run keel-run\n")) << script;
  EXPECT_TRUE(Has(script, "--workers | -n) :; return ;;")) << script;
  EXPECT_TRUE(Has(script, "--device) _keel_run_offer -W 'auto cpu cuda'; return ;;")) << script;
  EXPECT_TRUE(Has(script, "--checkpoints) _keel_run_offer -d; return ;;")) << script;
  EXPECT_TRUE(Has(script, "--log) _keel_run_offer -f; return ;;")) << script;
  EXPECT_TRUE(Has(script, "-W '--help -h --print-config --workers -n --device")) << script;
  EXPECT_TRUE(Has(script, "  else\n    _keel_run_offer -f\n")) << "the script: " << script;
}

TEST(OptionCompletion, ZshGetsHelpThatCannotBreakOut) {
  const std::string script = ZshCompletion(Table());
  EXPECT_TRUE(script.starts_with("#compdef keel-run\n")) << script;
  EXPECT_TRUE(Has(script, R"('(--device)--device=[It'\''s \[where\]\: `here` $HOME]:)"
                          R"(auto|cpu|cuda:(auto cpu cuda)')"))
      << script;
  EXPECT_TRUE(Has(script, "'(--workers -n)-n+[How many]:N: '")) << script;
  EXPECT_TRUE(Has(script, "'*--env=[Variables]:A,B: '")) << "a list may be given again";
  EXPECT_TRUE(Has(script, R"('*:script \[args...\]:_files')")) << script;
}

}  // namespace
}  // namespace keel
