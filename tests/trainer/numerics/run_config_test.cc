// What is kept of a program's options, and what is said when they change.
#include "trainer/numerics/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

OptionTable TrainTable() {
  OptionTable table("train", "Trains.");
  table.Add(Option::Text("config", "", "File").CommandLineOnly()).ConfigFileFrom("config");
  table.Add(Option::Integer("steps", 100, "Steps"));
  table.Add(Option::Real("lr", 0.1, "Rate"));
  return table;
}

// A program with these options of its own, called with these arguments and this file.
RunConfig ConfigOf(const std::vector<Option>& own, std::vector<std::string> arguments,
                   const std::string& file = "") {
  OptionTable table = TrainTable();
  const size_t own_from = table.options().size();
  for (const Option& option : own) table.Add(option);
  if (!file.empty()) arguments.push_back("--config=run.toml");
  const auto read = [&](const std::string&) -> Result<std::string> { return file; };
  const Result<Options> options = ParseOptions(table, {std::move(arguments), {}, read});
  KEEL_CHECK(options.ok(), options.error().message);
  return RunConfigOf(*options, own_from);
}

const std::vector<Option> kOwn = {Option::Integer("model.heads", 4, "Heads").Alias("heads"),
                                  Option::Text("name", "", "Name"),
                                  Option::Text("data", "", "File").Incidental(),
                                  Option::Integer("seats", 0, "Seats").Optional()};

std::string FingerprintOf(const RunConfig& config) {
  Fingerprint fingerprint;
  AddOptions(config, &fingerprint);
  return fingerprint.Text();
}

TEST(RunConfig, HasEveryOptionWithItsValueAndWhereThatCameFrom) {
  const RunConfig config =
      ConfigOf(kOwn, {"--lr=2e-1", "--data=x"}, "steps = 007\n[model]\nheads = 8\n");
  std::vector<std::string> lines;
  for (const ConfigField& field : config) {
    lines.push_back(field.name + "=" + field.value + " (" + field.source + ")" +
                    (field.shapes_result ? "!" : ""));
  }
  EXPECT_THAT(lines, ElementsAre("steps=7 (run.toml:1)", "lr=0.2 (command line)",
                                 "model.heads=8 (run.toml:3)!", "name= (default)!",
                                 "data=x (command line)", "seats=not set (default)!"));
  EXPECT_EQ(SavedOf(config).at("model.heads"), "8");
}

TEST(RunConfig, TheFingerprintNamesWhatShapesTheResultAndNothingElse) {
  const auto of = [](const std::vector<std::string>& arguments) {
    return FingerprintOf(ConfigOf(kOwn, arguments));
  };
  EXPECT_EQ(of({}), "--model.heads=4 --name= --seats=not%20set");
  EXPECT_EQ(of({"--lr=7", "--data=y", "--steps=1", "--heads=04"}), of({}));
  EXPECT_EQ(of({"--heads=5"}), "--model.heads=5 --name= --seats=not%20set");
}

TEST(RunConfig, DifferentTextsGiveDifferentWordsOfAFingerprintThatReadsBack) {
  std::vector<std::string> seen;
  const std::string longest(200, 'x');
  for (const std::string& name :
       {std::string("a b"), std::string("a_b"), std::string("a%20b"), std::string("a  b"),
        std::string("a=b"), std::string("a\nb"), std::string("\xff"), longest, longest + "y",
        longest + "z", std::string(5000, 'x')}) {
    const std::string text = FingerprintOf(ConfigOf(kOwn, {"--name=" + name}));
    const Result<Fingerprint> fingerprint = Fingerprint::Parse(text);
    ASSERT_TRUE(fingerprint.ok()) << fingerprint.error().message;
    EXPECT_EQ(fingerprint->Text(), text);
    EXPECT_LT(text.size(), 300u);
    EXPECT_THAT(seen, Not(testing::Contains(text)));
    seen.push_back(text);
  }
}

TEST(RunConfig, ManyOptionsAreADigestInTheFingerprint) {
  std::vector<Option> own;
  for (int i = 0; i < 500; ++i) {
    own.push_back(Option::Integer("option-" + std::to_string(i), 0, "One of many"));
  }
  const std::string text = FingerprintOf(ConfigOf(own, {}));
  EXPECT_THAT(text, StartsWith("options=digest:"));
  EXPECT_LT(text.size(), 100u);
  EXPECT_NE(FingerprintOf(ConfigOf(own, {"--option-499=1"})), text);
}

TEST(RunConfig, ChangesAreNamedWithBothValuesAndWhoMadeThem) {
  const SavedConfig was = SavedOf(ConfigOf(kOwn, {"--data=x", "--lr=0.10"}));
  EXPECT_THAT(CompareConfigs(was, ConfigOf(kOwn, {"--data=x"})).changed, IsEmpty());
  const ConfigChanges changes = CompareConfigs(was, ConfigOf(kOwn, {"--lr=0.2"}, "heads=9"));
  EXPECT_THAT(changes.changed,
              ElementsAre(ConfigChanges::Change{"lr", "0.1", "0.2", "command line"},
                          ConfigChanges::Change{"model.heads", "4", "9", "run.toml:1"},
                          ConfigChanges::Change{"data", "x", "", "default"}));
  EXPECT_THAT(changes.unknown, IsEmpty());
}

TEST(RunConfig, AnOptionThatOnlyOneOfThemKnowsIsToldApart) {
  const SavedConfig was = {{"steps", "100"}, {"lr", "0.1"}, {"depth", "7"}};
  const ConfigChanges changes = CompareConfigs(was, ConfigOf(kOwn, {}));
  EXPECT_THAT(changes.changed,
              ElementsAre(ConfigChanges::Change{"depth", "7", "no such option", "program"}));
  EXPECT_THAT(changes.unknown, ElementsAre("model.heads", "name", "seats"))
      << "the path of the data shapes nothing";
}

}  // namespace
}  // namespace keel
