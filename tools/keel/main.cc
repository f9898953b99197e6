// `keel`: looks after checkpoints and training data. Finds the command, runs it, prints what it
// returns.
// Promises   results go to stdout, messages and progress to stderr; exit codes as in command.h.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/nearest.h"
#include "base/option_help.h"
#include "base/posix_files.h"
#include "base/process_setup.h"
#include "base/text.h"
#include "base/version.h"
#include "tools/keel/command.h"

namespace {

using namespace keel;

Status WriteTo(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EPIPE) return Error{Code::kPeerLost, "nobody reads the output"};
    if (wrote < 0) return Error{Code::kIo, std::string("writing output: ") + std::strerror(errno)};
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return Ok();
}

// What cannot be told to stderr cannot be told at all.
void Complain(const std::string& text) { (void)WriteTo(STDERR_FILENO, text + "\n"); }

int Print(std::string_view text) {
  const Status status = WriteTo(STDOUT_FILENO, text);
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

int UnknownCommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  Complain("keel: no command " + Shown(name) + DidYouMean(name, names) + " (see keel --help)");
  return kExitUsage;
}

int Fail(const Command& command, const Error& error, bool is_json) {
  Complain("keel " + std::string(command.name) + ": " + error.message);
  if (is_json) {
    const Json json = {{"error", {{"code", CodeName(error.code)}, {"message", error.message}}}};
    (void)Print(DumpJson(json, 2) + "\n");
  }
  return kExitFailed;
}

bool IsPlain(const Environment& environment) {
  const auto no_color = environment.find("NO_COLOR");
  const auto term = environment.find("TERM");
  return (no_color != environment.end() && !no_color->second.empty()) ||
         (term != environment.end() && term->second == "dumb");
}

int Misused(const OptionTable& table, const std::string& why) {
  Complain(table.program() + ": " + why + "\n(see " + table.program() + " --help)");
  return kExitUsage;
}

int Run(const Command& command, const OptionInputs& inputs) {
  const OptionTable table = command.table();
  const Result<Options> options = ParseOptions(table, inputs);
  if (!options.ok()) return Misused(table, options.error().message);
  if (options->Flag("help")) return Print(HelpText(table, TerminalWidth()));
  if (options->Flag("print-config")) return Print(options->ConfigText());
  const size_t given = options->positionals().size();
  if (given < command.arguments_least || given > command.arguments_most) {
    return Misused(table, "expected " + table.positional_usage() + ", found " +
                              std::to_string(given) + " such arguments");
  }
  PosixFiles files;
  const World world{files, RealClock(),
                    Paint(::isatty(STDOUT_FILENO) == 1 && !IsPlain(inputs.environment)),
                    ::isatty(STDERR_FILENO) == 1,
                    [](std::string_view text) { return WriteTo(STDOUT_FILENO, text); },
                    ::isatty(STDOUT_FILENO) == 1};
  const Result<Outcome> outcome = command.run(world, *options);
  const bool is_json = options->Flag("json");
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
  if (command == nullptr) return UnknownCommand(name);
  inputs.arguments.erase(inputs.arguments.begin());
  return Run(*command, inputs);
}
