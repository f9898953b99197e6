// How programs are given their options, and what they answer to mistakes.
#include "base/options.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/option_help.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/garbage.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = OptionSource::Kind;
using Arguments = std::vector<std::string>;

OptionTable TrainTable() {
  OptionTable table("train", "Train a small model so that nothing can stop it.");
  table.Section("Run")
      .Add(Option::Integer("steps", 100, "How many steps")
               .Range(1, 1000)
               .Env("KEEL_STEPS")
               .Env("PET_STEPS")
               .Short('s'))
      .Add(Option::Integer("max-restarts", 0, "How often a worker is started again").AtLeast(0))
      .Add(Option::Text("rdzv-id", "none", "Name of the job").Env("KEEL_RDZV_ID").Short('r'))
      .Add(Option::Text("rdzv-endpoint", "", "Where the store is").Alias("master_endpoint"))
      .Add(Option::Choice("device", {"auto", "cpu", "cuda"}, "auto", "What to compute on"))
      .Add(Option::List("tags", "a,b", "Words to remember the run by").Env("KEEL_TAGS"));
  table.Section("Numbers")
      .Add(Option::Real("optimizer.lr", 0.1, "Learning rate").RealRange(0, 10))
      .Add(Option::Bytes("frame", "512KiB", "Size of a frame").Range(1024, 1 << 30))
      .Add(Option::Time("notice", "10s", "Time to stop in").Range(Duration(1s), Duration(1h)))
      .Add(Option::Integer("seed", 0, "Seed").Optional())
      .Add(Option::Flag("save", true, "Save at the end").Env("KEEL_SAVE").Short('v'))
      .Add(Option::Flag("quiet", false, "Say nothing").Short('q'))
      .Add(Option::Text("config", "", "Config file").Env("KEEL_CONFIG").Placeholder("FILE"));
  table.EnvironmentPrefix("KEEL_", {"KEEL_CONTROL_FD"}).ConfigFileFrom("config");
  table.AddExample("train --steps 10", "Ten steps").AddExitCode(75, "stopped on request");
  return table;
}

OptionTable LauncherTable() {
  OptionTable table = TrainTable();
  table.TakePositionals(Positionals::kRemainder, "script [args...]");
  return table;
}

// Inputs with one config file, run.conf.
OptionInputs Inputs(Arguments arguments, Environment environment = {}, std::string config = "") {
  return {std::move(arguments), std::move(environment),
          [config](const std::string& path) -> Result<std::string> {
            if (path != "run.conf") return Error{Code::kIo, "no such file: " + path};
            return config;
          }};
}

Options Parsed(const OptionTable& table, const OptionInputs& inputs) {
  const Result<Options> options = ParseOptions(table, inputs);
  EXPECT_TRUE(options.ok()) << options.error().message;
  return *options;
}
Options Parsed(Arguments arguments) { return Parsed(TrainTable(), Inputs(std::move(arguments))); }

std::string ProblemOf(const OptionTable& table, const OptionInputs& inputs) {
  const Result<Options> options = ParseOptions(table, inputs);
  return options.ok() ? "none" : options.error().message;
}
std::string ProblemOf(Arguments arguments) {
  return ProblemOf(TrainTable(), Inputs(std::move(arguments)));
}
std::string ConfigProblem(std::string config) {
  return ProblemOf(TrainTable(), Inputs({"--config", "run.conf"}, {}, std::move(config)));
}

TEST(Options, HaveTheirDefaultsWhenNothingIsGiven) {
  const Options options = Parsed({});
  EXPECT_EQ(options.Integer("steps"), 100);
  EXPECT_EQ(options.Real("optimizer.lr"), 0.1);
  EXPECT_EQ(options.Bytes("frame"), 512u * 1024);
  EXPECT_EQ(options.Time("notice"), 10s);
  EXPECT_EQ(options.Text("rdzv-id"), "none");
  EXPECT_EQ(options.Text("device"), "auto");
  EXPECT_TRUE(options.Flag("save"));
  EXPECT_THAT(options.List("tags"), ElementsAre("a", "b"));
  EXPECT_FALSE(options.Has("seed"));
  EXPECT_EQ(options.Source("steps").kind, Kind::kDefault);
}

TEST(Options, ComeFromCommandLineThenEnvironmentThenConfigThenDefault) {
  const std::string config = "steps = 2\nrdzv_id = file\ntags = x\nmax_restarts = 5\n";
  const Environment environment = {{"KEEL_STEPS", "3"}, {"KEEL_RDZV_ID", "env"},
                                   {"KEEL_CONFIG", "run.conf"}};
  const Options options = Parsed(TrainTable(), Inputs({"--steps=4"}, environment, config));
  EXPECT_EQ(options.Integer("steps"), 4);
  EXPECT_EQ(options.Source("steps").Text(), "command line");
  EXPECT_EQ(options.Text("rdzv-id"), "env");
  EXPECT_EQ(options.Source("rdzv-id").Text(), "environment KEEL_RDZV_ID");
  EXPECT_THAT(options.List("tags"), ElementsAre("x"));
  EXPECT_EQ(options.Source("tags").Text(), "run.conf:3");
  EXPECT_EQ(options.Integer("max-restarts"), 5);
  EXPECT_EQ(options.Source("device").Text(), "default");
}

TEST(Options, ADefaultThatIsKnownLaterCountsWhereNobodyGaveAValue) {
  Options options = Parsed(TrainTable(), Inputs({"--steps=4"}));
  EXPECT_TRUE(options.SetDefault("steps", "7", "runs/one").ok());
  EXPECT_EQ(options.Integer("steps"), 4);
  EXPECT_EQ(options.Source("steps").Text(), "command line");
  EXPECT_TRUE(options.SetDefault("max-restarts", "7", "runs/one").ok());
  EXPECT_EQ(options.Integer("max-restarts"), 7);
  EXPECT_EQ(options.Source("max-restarts").Text(), "default of runs/one");
  const Status refused = options.SetDefault("device", "abacus", "runs/one");
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("--device of runs/one: 'abacus' must be"));
  EXPECT_EQ(options.Text("device"), "auto");
}

TEST(ScriptDefaults, AreTheLowestOfAllSources) {
  OptionTable table = TrainTable();
  const Result<Options> options =
      ParseOptions(table, Inputs({"--config=run.conf"}, {}, "steps = 9"),
                   {"--steps=7", "--max_restarts=6", "--seed=3", "--no-save"}, "digits.py");
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->Integer("steps"), 9);
  EXPECT_EQ(options->Source("steps").Text(), "run.conf:1");
  EXPECT_EQ(options->Integer("max-restarts"), 6);
  EXPECT_EQ(options->Source("max-restarts").Text(), "default of digits.py");
  EXPECT_EQ(options->Integer("seed"), 3);
  EXPECT_FALSE(options->Flag("save"));
  EXPECT_EQ(options->Source("device").Text(), "default");
  EXPECT_EQ(OptionHelp(*table.Find("steps")), "How many steps (default: 7) [KEEL_STEPS] "
                                              "[PET_STEPS]");
}

TEST(ScriptDefaults, MayNameTheConfigFile) {
  OptionTable table = TrainTable();
  const auto steps = [&](const Arguments& arguments) {
    return ParseOptions(table, Inputs(arguments, {}, "steps = 9"), {"--config=run.conf"},
                        "digits.py")->Integer("steps");
  };
  EXPECT_EQ(steps({}), 9);
  EXPECT_EQ(steps({"--config="}), 100);
}

TEST(ScriptDefaults, AreToldOfWithEveryMistake) {
  OptionTable table = TrainTable();
  const Result<Options> options = ParseOptions(
      table, Inputs({}), {"--stpes=7", "--steps=many", "--quiet=perhaps"}, "digits.py");
  ASSERT_EQ(options.error().code, Code::kInvalid);
  EXPECT_THAT(options.error().message, HasSubstr("3 problems"));
  EXPECT_THAT(options.error().message, HasSubstr("did you mean '--steps'?"));
  EXPECT_THAT(options.error().message,
              HasSubstr("option '--steps' (default of digits.py): 'many' must be"));
}

TEST(Options, TakeTheFirstVariableThatIsSetAndNotEmpty) {
  EXPECT_EQ(Parsed(TrainTable(), Inputs({}, {{"PET_STEPS", "7"}})).Integer("steps"), 7);
  EXPECT_EQ(Parsed(TrainTable(), Inputs({}, {{"KEEL_STEPS", "8"}, {"PET_STEPS", "7"}}))
                .Integer("steps"), 8);
  EXPECT_EQ(Parsed(TrainTable(), Inputs({}, {{"KEEL_STEPS", ""}, {"PET_STEPS", "7"}}))
                .Integer("steps"), 7);
}

TEST(CommandLine, TakesEverySpelling) {
  for (const Arguments& arguments :
       {Arguments{"--rdzv-id", "x"}, {"--rdzv_id", "x"}, {"--rdzv-id=x"}, {"--rdzv_id=x"},
        {"-r", "x"}, {"-rx"}, {"-r=x"}, {"-qr", "x"}, {"-qrx"}, {"--rdzv-i", "x"},
        {"--rdzv_i=x"}}) {
    EXPECT_EQ(Parsed(arguments).Text("rdzv-id"), "x") << arguments.front();
  }
  EXPECT_EQ(Parsed({"--master-endpoint", "h:1"}).Text("rdzv-endpoint"), "h:1");
  EXPECT_EQ(Parsed({"--master_end=h:1"}).Text("rdzv-endpoint"), "h:1");
  EXPECT_EQ(Parsed({"--rdzv-endpoint="}).Text("rdzv-endpoint"), "");
  EXPECT_EQ(Parsed({"--rdzv-id=-x=y"}).Text("rdzv-id"), "-x=y");
  EXPECT_EQ(Parsed({"--rdzv-id", "-"}).Text("rdzv-id"), "-");
}

TEST(CommandLine, FlagsCanBeSetNegatedAndSpelledOut) {
  EXPECT_TRUE(Parsed({"--quiet"}).Flag("quiet"));
  EXPECT_TRUE(Parsed({"-vq"}).Flag("quiet"));
  EXPECT_FALSE(Parsed({"--no-save"}).Flag("save"));
  EXPECT_FALSE(Parsed({"--no_sa"}).Flag("save"));
  EXPECT_FALSE(Parsed({"--save=off"}).Flag("save"));
  EXPECT_TRUE(Parsed({"--no-save", "--save"}).Flag("save"));
  EXPECT_EQ(ProblemOf({"--no-save=1"}), "option '--no-save' takes no value");
  EXPECT_THAT(ProblemOf({"--save=maybe"}),
              HasSubstr("option '--save' (command line): 'maybe' must be true or false"));
  EXPECT_THAT(ProblemOf({"--no-steps"}), HasSubstr("unknown option '--no-steps'"));
}

TEST(CommandLine, TheLastScalarWinsAndListsAppend) {
  EXPECT_EQ(Parsed({"--steps=1", "--steps=2"}).Integer("steps"), 2);
  EXPECT_THAT(Parsed({"--tags=a,b", "--tags", "c"}).List("tags"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Parsed({"--tags="}).List("tags"), IsEmpty());
  const Environment environment = {{"KEEL_TAGS", "e"}};
  EXPECT_THAT(Parsed(TrainTable(), Inputs({"--tags=c"}, environment)).List("tags"),
              ElementsAre("c"));
}

TEST(CommandLine, AnUnknownOptionIsAnsweredWithTheNearest) {
  EXPECT_EQ(ProblemOf({"--stpes"}), "unknown option '--stpes'; did you mean '--steps'?");
  EXPECT_EQ(ProblemOf({"--stpes", "5"}), "unknown option '--stpes'; did you mean '--steps'?");
  EXPECT_EQ(ProblemOf({"--max_restart_s=5"}),
            "unknown option '--max_restart_s'; did you mean '--max-restarts'?");
  EXPECT_THAT(ProblemOf({"-steps=5"}), HasSubstr("option '--steps' (command line): 'teps=5'"));
  EXPECT_EQ(ProblemOf({"--master-endpiont=x"}),
            "unknown option '--master-endpiont'; did you mean '--master-endpoint'?");
  EXPECT_EQ(ProblemOf({"-z"}), "unknown option '-z'");
  EXPECT_EQ(ProblemOf({"-teps"}), "unknown option '-teps'; did you mean '--steps'?");
  EXPECT_EQ(ProblemOf({"-qz"}), "unknown option '-z'");
  EXPECT_EQ(ProblemOf({"--=x"}), "unknown option '--'");
  EXPECT_EQ(ProblemOf({"--no-sve"}), "unknown option '--no-sve'; did you mean '--no-save'?");
}

TEST(CommandLine, AnAmbiguousBeginningNamesAllItCouldBe) {
  EXPECT_EQ(ProblemOf({"--rdzv=x"}),
            "option '--rdzv' could be any of '--rdzv-endpoint', '--rdzv-id'");
}

TEST(CommandLine, AMissingValueIsNotTakenFromTheNextOption) {
  EXPECT_EQ(ProblemOf({"--steps"}),
            "option '--steps' needs a value: a whole number from 1 to 1000");
  EXPECT_EQ(ProblemOf({"--rdzv-id", "-q"}),
            "option '--rdzv-id' needs a value: text (if it is '-q', write '--rdzv-id=-q')");
  EXPECT_THAT(ProblemOf({"--max-restarts", "-5"}),
              HasSubstr("'-5' must be a whole number of at least 0"));
}

TEST(CommandLine, ArgumentsThatAreNoOptionsAreRefusedCollectedOrLeftUntouched) {
  EXPECT_EQ(ProblemOf({"train.py"}), "unexpected argument 'train.py'");
  EXPECT_EQ(ProblemOf({"--", "--steps"}), "unexpected argument '--steps'");
  OptionTable anywhere = TrainTable();
  anywhere.TakePositionals(Positionals::kAnywhere, "dir");
  const Options options = Parsed(anywhere, Inputs({"a", "--steps=3", "b", "--", "--quiet"}));
  EXPECT_THAT(options.positionals(), ElementsAre("a", "b", "--quiet"));
  EXPECT_EQ(options.Integer("steps"), 3);
}

TEST(CommandLine, ALaunchersScriptAndItsArgumentsAreLeftUntouched) {
  const Options options = Parsed(
      LauncherTable(), Inputs({"--steps", "3", "train.py", "--steps=9", "--", "-x", "--help"}));
  EXPECT_EQ(options.Integer("steps"), 3);
  EXPECT_FALSE(options.Flag("help"));
  EXPECT_THAT(options.positionals(), ElementsAre("train.py", "--steps=9", "--", "-x", "--help"));
  EXPECT_THAT(Parsed(LauncherTable(), Inputs({"train.py", "--", "-x", "--", "y"})).positionals(),
              ElementsAre("train.py", "-x", "--", "y"));
  EXPECT_THAT(Parsed(LauncherTable(), Inputs({"--", "--odd", "x"})).positionals(),
              ElementsAre("--odd", "x"));
  EXPECT_EQ(ProblemOf(LauncherTable(), Inputs({"--stpes", "5", "train.py", "--odd"})),
            "unknown option '--stpes'; did you mean '--steps'?");
}

TEST(CommandLine, HelpIsGivenWhateverElseIsWrong) {
  const Environment environment = {{"KEEL_STPES", "x"}};
  for (const char* help : {"--help", "-h", "--hel"}) {
    const Options options = Parsed(TrainTable(), Inputs({"--nonsense", help}, environment));
    EXPECT_TRUE(options.Flag("help"));
    EXPECT_EQ(options.Integer("steps"), 100);
  }
}

TEST(Values, OfTheWrongTypeOrOutOfRangeAreExplained) {
  EXPECT_EQ(ProblemOf({"--steps=abc"}),
            "option '--steps' (command line): 'abc' must be a whole number from 1 to 1000");
  EXPECT_THAT(ProblemOf({"--steps=1001"}), HasSubstr("'1001' must be a whole number from 1"));
  EXPECT_THAT(ProblemOf({"--steps=99999999999999999999"}), HasSubstr("must be"));
  EXPECT_THAT(ProblemOf({"--steps="}), HasSubstr("'' must be a whole number"));
  EXPECT_EQ(ProblemOf(TrainTable(), Inputs({}, {{"KEEL_STEPS", "0"}})),
            "option '--steps' (environment KEEL_STEPS): '0' must be a whole number from 1 to 1000");
  EXPECT_EQ(ConfigProblem("\n[optimizer]\nlr = fast\n"),
            "option '--optimizer.lr' (run.conf:3): 'fast' must be a number from 0 to 10");
  EXPECT_EQ(ProblemOf({"--device=cdua"}),
            "option '--device' (command line): 'cdua' must be one of: auto, cpu, cuda; did you "
            "mean 'cuda'?");
  EXPECT_THAT(ProblemOf({"--frame=12"}), HasSubstr("from 1 KiB to 1 GiB"));
  EXPECT_THAT(ProblemOf({"--notice=2h"}),
              HasSubstr("must be a duration such as 250ms, 10s or 3min from 1 s to 1 h 0 min"));
}

TEST(Values, OverriddenByAHigherSourceAreNotLookedAt) {
  EXPECT_EQ(Parsed(TrainTable(), Inputs({"--steps=5"}, {{"KEEL_STEPS", "x"}})).Integer("steps"), 5);
}

TEST(Environment, AnUnknownVariableOfOursIsAnsweredWithTheNearest) {
  EXPECT_EQ(ProblemOf(TrainTable(), Inputs({}, {{"KEEL_STPES", "3"}})),
            "unknown environment variable 'KEEL_STPES'; did you mean 'KEEL_STEPS'?");
  EXPECT_EQ(ProblemOf(TrainTable(), Inputs({}, {{"KEEL_CONTROL_FD", "3"}, {"PATH", "/bin"}})),
            "none");
}

TEST(Environment, TheRealOneHasWhatTheProcessWasGiven) {
  EXPECT_FALSE(OwnEnvironment().at("PATH").empty());
}

TEST(ConfigFile, TakesSectionsCommentsAndEitherSpelling) {
  const std::string config =
      "\xef\xbb\xbf# first\r\nsteps=7 # seven\r\n\r\n rdzv_id =  a b \ntags = x\ntags = y,z\n"
      "save = no\nrdzv-endpoint =\n[optimizer]\nlr = 0.5";
  const Options options = Parsed(TrainTable(), Inputs({"--config=run.conf"}, {}, config));
  EXPECT_EQ(options.Integer("steps"), 7);
  EXPECT_EQ(options.Text("rdzv-id"), "a b");
  EXPECT_EQ(options.Text("rdzv-endpoint"), "");
  EXPECT_EQ(options.Source("rdzv-endpoint").Text(), "run.conf:8");
  EXPECT_THAT(options.List("tags"), ElementsAre("x", "y", "z"));
  EXPECT_FALSE(options.Flag("save"));
  EXPECT_EQ(options.Real("optimizer.lr"), 0.5);
  EXPECT_EQ(options.Source("optimizer.lr").Text(), "run.conf:10");
}

TEST(ConfigFile, QuotesKeepWhatWouldBeLostWithoutThem) {
  const auto read = [](const std::string& line) {
    return Parsed(TrainTable(), Inputs({"--config=run.conf"}, {}, line)).Text("rdzv-id");
  };
  EXPECT_EQ(read("rdzv-id = \"a # b\" # c"), "a # b");
  EXPECT_EQ(read("rdzv-id = ' a\\n\"b\" '\r\n"), " a\\n\"b\" ");
  EXPECT_EQ(read(R"(rdzv-id = "q\"\\\n\r\t\xff")"), "q\"\\\n\r\t\xff");
  EXPECT_EQ(read("rdzv-id = \"\""), "");
  EXPECT_EQ(read("rdzv-id = it's \"so\""), "it's \"so\"") << "not at the front: no quotes";
}

TEST(ConfigFile, QuotesThatMakeNoSenseAreNamedWithTheirLine) {
  EXPECT_EQ(ConfigProblem("\nrdzv-id = \"a"),
            "run.conf:2: the quote of '\"a' does not end on its line");
  EXPECT_EQ(ConfigProblem("rdzv-id = \"a\\\""),
            "run.conf:1: the quote of '\"a\\\"' does not end on its line");
  EXPECT_EQ(ConfigProblem("rdzv-id = 'a' b"), "run.conf:1: after the value there is 'b'");
  for (const char* escape : {"\\q", "\\x", "\\x1", "\\xg0", "\\"}) {
    EXPECT_THAT(ConfigProblem("rdzv-id = \"" + std::string(escape)), HasSubstr("means nothing"));
  }
  EXPECT_EQ(ConfigProblem("tags = [\"a\", \"b\"]"),
            "run.conf:1: key 'tags': a list is written \"a,b\" here");
}

TEST(ConfigFile, ItsMistakesAreNamedWithTheirLine) {
  EXPECT_EQ(ConfigProblem("steps = 1\nstpes = 2\n"),
            "run.conf:2: unknown key 'stpes'; did you mean 'steps'?");
  EXPECT_EQ(ConfigProblem("master_endpiont = 2\n"),
            "run.conf:1: unknown key 'master_endpiont'; did you mean 'master-endpoint'?");
  EXPECT_EQ(ConfigProblem("[optimiser]\nlr = 2\n"),
            "run.conf:2: unknown key 'optimiser.lr'; did you mean 'optimizer.lr'?");
  EXPECT_EQ(ConfigProblem("\nsteps\n"), "run.conf:2: 'steps' is neither 'key = value' nor "
                                        "'[section]'");
  EXPECT_EQ(ConfigProblem("steps = 1\n\nsteps = 2\n"),
            "run.conf:3: key 'steps' was given on line 1 already");
  EXPECT_EQ(ConfigProblem("help = 1"), "run.conf:1: key 'help' does not belong in a config file");
  EXPECT_EQ(ConfigProblem("config = other.conf"),
            "run.conf:1: key 'config' does not belong in a config file");
}

TEST(ConfigFile, OneThatCannotBeReadIsAnError) {
  EXPECT_THAT(ProblemOf({"--config=other.conf"}), HasSubstr("no such file: other.conf"));
  EXPECT_THAT(ReadConfigFile("/nowhere/run.conf").error().message,
              HasSubstr("'/nowhere/run.conf': No such file"));
  EXPECT_EQ(ReadConfigFile("/").error().code, Code::kIo);
  EXPECT_THAT(ReadConfigFile("/dev/zero").error().message, HasSubstr("larger than 1 MiB"));
}

TEST(ConfigFile, IsReadFromDisk) {
  const TempDir folder;
  const std::string path = folder.File("run.conf");
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_EQ(write(descriptor, "steps = 5\n", 10), 10);
  close(descriptor);
  EXPECT_EQ(*ReadConfigFile(path), "steps = 5\n");
}

TEST(Problems, OfAllSourcesAreReportedTogether) {
  const std::string problem = ProblemOf(
      TrainTable(), Inputs({"--stpes=1", "--device=x", "extra", "--config=run.conf"},
                           {{"KEEL_STEPS", "x"}, {"KEEL_NONSENSE", ""}}, "seed = 1.5\nodd = 1\n"));
  EXPECT_TRUE(problem.starts_with("7 problems:\n")) << problem;
  for (const char* part : {"--stpes", "--device", "'extra'", "KEEL_STEPS", "KEEL_NONSENSE",
                           "run.conf:1", "run.conf:2"}) {
    EXPECT_THAT(problem, HasSubstr(part));
  }
  EXPECT_LT(ProblemOf(Arguments(5000, "extra")).size(), 2000u);
}

TEST(Required, OptionsMustBeGivenByAnySource) {
  OptionTable table("tool", "A tool.");
  table.Add(
      Option::Integer("lanes", 0, "How many lanes").Range(1, 64).Required().Env("KEEL_LANES"));
  EXPECT_EQ(ProblemOf(table, Inputs({})),
            "option '--lanes' is required: a whole number from 1 to 64");
  EXPECT_EQ(Parsed(table, Inputs({}, {{"KEEL_LANES", "8"}})).Integer("lanes"), 8);
}

TEST(ConfigText, ShowsEveryValueWithItsSourceAndReadsBack) {
  const std::string text =
      Parsed(TrainTable(), Inputs({"--config=run.conf", "--tags=x", "--tags=y", "--rdzv-id=a b"},
                                  {{"KEEL_STEPS", "5"}}))
          .ConfigText();
  EXPECT_THAT(text, HasSubstr("steps = 5  # environment KEEL_STEPS\n"));
  EXPECT_THAT(text, HasSubstr("tags = x,y  # command line\n"));
  EXPECT_THAT(text, HasSubstr("frame = 512KiB  # default\n"));
  EXPECT_THAT(text, HasSubstr("# seed is not set\n"));
  EXPECT_EQ(text.find("help"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("# config = run.conf  # command line\n"));
  const Options again = Parsed(TrainTable(), Inputs({"--config=run.conf"}, {}, text));
  EXPECT_EQ(again.Integer("steps"), 5);
  EXPECT_EQ(again.Text("rdzv-id"), "a b");
  EXPECT_THAT(again.List("tags"), ElementsAre("x", "y"));
}

TEST(ConfigText, StaysOneLineAValueWhateverTheValueHolds) {
  const std::string text = Parsed({"--rdzv-id=a\nsteps = 9"}).ConfigText();
  EXPECT_THAT(text, HasSubstr("rdzv-id = \"a\\nsteps = 9\"  # command line\n"));
}

TEST(ConfigText, ReadsBackWhateverTheValueHolds) {
  for (const std::string& value :
       {std::string("a#b"), std::string("\"a\""), std::string("'"), std::string(" a "),
        std::string("\\n"), std::string("a\\\nb\xff"), std::string(), std::string(200, 'x'),
        std::string("[::1]:2")}) {
    const std::string text = Parsed({"--rdzv-id=" + value}).ConfigText();
    EXPECT_EQ(Parsed(TrainTable(), Inputs({"--config=run.conf"}, {}, text)).Text("rdzv-id"), value)
        << text;
  }
}

TEST(ValueText, IsTheSameForTheSameValueAndReadsBack) {
  const OptionTable table = TrainTable();
  const auto text = [&](const char* name, const std::string& value) {
    const Option* const option = table.Find(name);
    const std::string text = ValueText(*ReadOption(*option, {value}));
    EXPECT_EQ(ValueText(*ReadOption(*option, {text})), text);
    return text;
  };
  EXPECT_EQ(text("optimizer.lr", "1e-1"), "0.1");
  EXPECT_EQ(text("steps", "007"), "7");
  EXPECT_EQ(text("save", "On"), "true");
  EXPECT_EQ(text("frame", "1MiB"), "1048576");
  EXPECT_EQ(text("notice", "1min30s"), "90s");
  EXPECT_EQ(text("notice", "1.0000015s"), "1000001500ns");
  EXPECT_EQ(text("notice", "1.5s"), "1500ms");
  EXPECT_EQ(text("tags", " a, b"), "a,b");
  EXPECT_EQ(text("rdzv-id", " a "), " a ");
  EXPECT_EQ(ValueText(OptionValue()), "");
}

TEST(HelpText, ShowsUsageSectionsDefaultsVariablesExamplesAndExitCodes) {
  const std::string help = HelpText(LauncherTable(), 80);
  for (const char* part :
       {"usage: train [options] script [args...]\n", "\nRun\n", "\nNumbers\n", "\nHelp\n",
        "  -s, --steps N", "(default: 100)", "[KEEL_STEPS]", "--device auto|cpu|cuda",
        "--[no-]save", "--config FILE", "(default: none)", "\nExamples\n", "    train --steps 10\n",
        "\nExit codes\n   75  stopped on request\n", "-h, --help "}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
  EXPECT_EQ(help.find("master-endpoint"), std::string::npos);
  EXPECT_LT(help.find("\nNumbers\n"), help.find("\nHelp\n"));
}

TEST(HelpText, KeepsToTheWidth) {
  for (const int width : {60, 80, 100}) {
    size_t longest = 0, start = 0;
    const std::string help = HelpText(LauncherTable(), width);
    for (size_t end = 0; (end = help.find('\n', start)) != std::string::npos; start = end + 1) {
      longest = std::max(longest, end - start);
    }
    EXPECT_LE(longest, static_cast<size_t>(width));
    EXPECT_GT(longest, static_cast<size_t>(width) - 15);
  }
  EXPECT_FALSE(HelpText(LauncherTable(), 0).empty());
}

TEST(OptionTable, CanBeGoneThroughForManPagesAndCompletion) {
  std::vector<std::string> names;
  const OptionTable table = TrainTable();
  for (const Option& option : table.options()) names.push_back(option.name);
  EXPECT_EQ(names.size(), 15u);
  EXPECT_EQ(table.Find("master-endpoint")->name, "rdzv-endpoint");
  EXPECT_EQ(table.Find("nothing"), nullptr);
}

TEST(OptionTableDeathTest, AMalformedDeclarationIsABug) {
  OptionTable table = TrainTable();
  EXPECT_DEATH(table.Add(Option::Flag("steps", false, "")), "declared twice");
  EXPECT_DEATH(table.Add(Option::Flag("Bad_Name", false, "")), "Bad_Name");
  EXPECT_DEATH(table.Add(Option::Flag("x", false, "").Short('s')), "-s declared twice");
  EXPECT_DEATH(table.Add(Option::Flag("x", false, "").Env("KEEL_STEPS")), "KEEL_STEPS");
  EXPECT_DEATH(table.Add(Option::Integer("x", 7, "").Range(0, 5)), "default of x");
  EXPECT_DEATH((void)Parsed({}).Integer("rdzv-id"), "holds no value of this type");
  EXPECT_DEATH((void)Parsed({}).Flag("nonsense"), "no option is called nonsense");
}

// Garbage that looks enough like the real thing to get far.
std::string OptionGarbage(Garbage& garbage) {
  const std::vector<std::string> pieces = {
      "--", "-",    "steps", "no-", "save", "=",   "5",   "rdzv", "_",    "id", "[", "]",
      "#",  "\n",   " ",     "tags", ",",   "-s",  "-q",  "help", "1e99", "\"", "'",
      "\\x",  "\xff", "config", "run.conf", ".", "optimizer", "lr", "--print-config", "KEEL_",
      "99999999999999999999"};
  std::string text;
  for (uint64_t n = garbage.Below(6); n > 0; --n) text += garbage.OneOf(pieces);
  return garbage.Below(8) == 0 ? text + garbage.Bytes(8) : text;
}

TEST(ParseOptions, GarbageGivesAResult) {
  const uint64_t seed = 20261121;
  Garbage garbage(seed);
  const std::vector<OptionTable> tables = {TrainTable(), LauncherTable()};
  int good = 0;
  for (int i = 0; i < Rounds(5000, 1000); ++i) {
    OptionInputs inputs;
    for (uint64_t n = garbage.Below(4); n > 0; --n) {
      inputs.arguments.push_back(OptionGarbage(garbage));
    }
    if (garbage.Below(2) == 0) inputs.environment["KEEL_STEPS"] = OptionGarbage(garbage);
    if (garbage.Below(4) == 0) inputs.environment["KEEL_" + OptionGarbage(garbage)] = "1";
    if (garbage.Below(2) == 0) inputs.environment["KEEL_CONFIG"] = "run.conf";
    std::string config;
    for (uint64_t n = garbage.Below(6); n > 0; --n) config += OptionGarbage(garbage) + "\n";
    inputs.read_file = [&](const std::string&) -> Result<std::string> { return config; };
    const Result<Options> options = ParseOptions(garbage.OneOf(tables), inputs);
    if (!options.ok()) {
      ASSERT_EQ(options.error().code, Code::kInvalid) << garbage.Where(i);
      ASSERT_FALSE(options.error().message.empty()) << garbage.Where(i);
      continue;
    }
    ++good;
    ASSERT_FALSE(options->ConfigText().empty()) << garbage.Where(i);
  }
  EXPECT_GT(good, Rounds(100, 20)) << "seed " << seed;
}

TEST(Environment, VariablesThatKubernetesMakesForAServiceAreNotOurs) {
  const auto problem = [](const std::string& variable, const std::string& value) {
    const auto options = ParseOptions(TrainTable(), Inputs({}, {{variable, value}}));
    return options.ok() ? "" : options.error().message;
  };
  for (const std::string service : {"KEEL_", "KEEL_STATUS_"}) {
    const std::pair<const char*, const char*> made[] = {
        {"SERVICE_HOST", "10.96.0.7"},
        {"SERVICE_PORT", "29400"},
        {"SERVICE_PORT_STORE", "29400"},
        {"SERVICE_PORT_STORE_2", "29400"},
        {"PORT", "tcp://10.96.0.7:29400"},
        {"PORT_29400_TCP", "tcp://10.96.0.7:29400"},
        {"PORT_29400_TCP_PROTO", "tcp"},
        {"PORT_29400_TCP_PORT", "29400"},
        {"PORT_29400_TCP_ADDR", "10.96.0.7"},
        {"PORT_53_UDP", "udp://[fd00::7]:53"},
        {"PORT_53_SCTP_ADDR", "fd00::7"}};
    for (const auto& [name, value] : made) EXPECT_EQ(problem(service + name, value), "") << name;
  }
  const std::pair<const char*, const char*> others[] = {
      {"KEEL_PORT", "29400"},         {"KEEL_PORT", ""},          {"KEEL_STATUS_PORT", "8090"},
      {"KEEL_PORTS", "tcp://a:1"},    {"KEEL_PORT_TCP", "1"},     {"KEEL_PORT_1_ADDR", "1"},
      {"KEEL_PORT_A_TCP_ADDR", "1"},  {"KEEL_PORT_1_TCP_X", "1"}, {"KEEL_29400_TCP", "1"},
      {"KEEL_SERVICE", "10.96.0.7"},  {"KEEL_HOST", "10.96.0.7"}, {"KEEL_PORT_1_HTTP_PORT", "1"},
      {"KEEL_PORT_29400x_TCP", "1"}};
  for (const auto& [name, value] : others) {
    EXPECT_THAT(problem(name, value), HasSubstr("unknown environment variable")) << name;
  }
}

TEST(Environment, AnOptionIsReadThoughItsVariableLooksLikeOneOfAService) {
  OptionTable table("serve", "Answer.");
  table.Section("Run").Add(Option::Text("port", "", "Where").Env("KEEL_PORT"));
  table.EnvironmentPrefix("KEEL_");
  const Options options = Parsed(table, Inputs({}, {{"KEEL_PORT", "tcp://10.96.0.7:29400"}}));
  EXPECT_EQ(options.Text("port"), "tcp://10.96.0.7:29400");
}

}  // namespace
}  // namespace keel
