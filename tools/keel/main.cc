// `keel`: looks after checkpoints and training data. Finds the command, runs it, prints what it
// returns.
// Promises   results go to stdout, messages and progress to stderr; exit codes as in command.h.
#include <unistd.h>

#include <string>

#include "base/nearest.h"
#include "base/option_help.h"
#include "base/posix_files.h"
#include "base/process_setup.h"
#include "base/text.h"
#include "base/version.h"
#include "store/bucket_files.h"
#include "tools/keel/command.h"
#include "tools/keel/output_stream.h"
#include "tools/keel/stop_signals.h"

namespace {

using namespace keel;

// What cannot be told to stderr cannot be told at all.
void Complain(const std::string& text) {
  (void)WriteToDescriptor(STDERR_FILENO, text + "\n", "stderr");
}

int Print(std::string_view text) {
  const Status status = WriteToDescriptor(STDOUT_FILENO, text, "stdout");
  // `keel ls | head -1` has seen all it wants.
  if (status.ok() || status.error().code == Code::kPeerLost) return 0;
  Complain("keel: " + status.error().message);
  return kExitFailed;
}

std::string Overview() {
  std::string text =
      "usage: keel COMMAND [options] ...\n\n" + std::string(kAbout) + "\n\nCommands\n";
  for (const Command& command : Commands()) {
    std::string name(command.name);
    name.resize(12, ' ');
    text += "  " + name + std::string(command.summary) + "\n";
  }
  return text + "\n" + std::string(kHowToName) +
         "\n`keel COMMAND --help` has options, examples and exit codes; `keel --version` says "
         "which\nversion this is.\n";
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

// Whether the arguments ask for JSON, as far as they can be understood at all.
bool AskForJson(const std::vector<std::string>& arguments) {
  bool is_json = false;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--json") is_json = true;
    if (argument == "--no-json") is_json = false;
  }
  return is_json;
}

void PrintError(const Error& error) {
  const Json json = {{"error", {{"code", CodeName(error.code)}, {"message", error.message}}}};
  (void)Print(DumpJson(json, 2) + "\n");
}

int Misused(const std::string& program, const std::string& why, bool is_json) {
  Complain(program + ": " + why + "\n(see " + program + " --help)");
  if (is_json) PrintError({Code::kInvalid, why});
  return kExitUsage;
}

int UnknownCommand(const std::string& name, bool is_json) {
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  return Misused("keel", "no command " + Shown(name) + DidYouMean(name, names), is_json);
}

int Fail(const Command& command, const Error& error, bool is_json) {
  Complain("keel " + std::string(command.name) + ": " + error.message);
  if (is_json) PrintError(error);
  return kExitFailed;
}

bool IsPlain(const Environment& environment) {
  const auto no_color = environment.find("NO_COLOR");
  const auto term = environment.find("TERM");
  return (no_color != environment.end() && !no_color->second.empty()) ||
         (term != environment.end() && term->second == "dumb");
}

int Run(const Command& command, const OptionInputs& inputs) {
  const OptionTable table = command.table();
  const Result<Options> options = ParseOptions(table, inputs);
  if (!options.ok()) {
    return Misused(table.program(), options.error().message, AskForJson(inputs.arguments));
  }
  if (options->Flag("help")) return Print(HelpText(table, TerminalWidth()));
  const bool is_json = options->Flag("json");
  const size_t given = options->positionals().size();
  if (given < command.arguments_least || given > command.arguments_most) {
    return Misused(table.program(), "expected " + table.positional_usage() + ", found " +
                                        std::to_string(given) + " such arguments",
                   is_json);
  }
  if (command.check != nullptr) {
    const Status sense = command.check(*options);
    if (!sense.ok()) return Misused(table.program(), sense.error().message, is_json);
  }
  PosixFiles disk;
  BucketFiles places(disk);
  StoppableFiles files(places);
  const World world{files, RealClock(),
                    Paint(::isatty(STDOUT_FILENO) == 1 && !IsPlain(inputs.environment)),
                    ::isatty(STDERR_FILENO) == 1,
                    [](std::string_view text) {
                      return WriteToDescriptor(STDOUT_FILENO, text, "stdout");
                    },
                    ::isatty(STDOUT_FILENO) == 1,
                    [](Duration time) { return RestWhileRead(STDOUT_FILENO, time, "stdout"); }};
  const Result<Outcome> outcome = command.run(world, *options);
  EndByStopSignal();
  if (!outcome.ok()) return Fail(command, outcome.error(), is_json);
  const bool has_json = is_json && !outcome->json.is_null();
  const int printed = Print(has_json ? DumpJson(outcome->json, 2) + "\n" : outcome->text);
  return printed != 0 ? printed : outcome->exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  IgnoreSigpipe();
  // A checkpoint may have more shards than the usual limit; where it stays, opening one says so.
  (void)RaiseFileLimit();
  OptionInputs inputs = RealInputs(argc, argv);
  if (inputs.arguments.empty()) {
    Complain(Overview());
    return kExitUsage;
  }
  const std::string name = inputs.arguments.front();
  if (name == "--help" || name == "-h" || name == "help") return Print(Overview());
  if (name == "--version") return Print("keel (Evenkeel) " + std::string(kVersion) + "\n");
  const Command* const command = FindCommand(name);
  if (command == nullptr) return UnknownCommand(name, AskForJson(inputs.arguments));
  inputs.arguments.erase(inputs.arguments.begin());
  return Run(*command, inputs);
}
