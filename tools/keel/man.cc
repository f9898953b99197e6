// `keel man [COMMAND]`: man pages, made from what --help is made from.
#include "base/option_man.h"

#include "base/nearest.h"
#include "base/text.h"
#include "tools/keel/commands.h"

namespace keel {
namespace {

std::string PageOf(const Command& command) {
  return ManPage(command.table(), {.title = std::string(command.summary),
                                   .notes = {std::string(kHowToName)},
                                   .see_also = {"keel", "keelrun"}});
}

std::string PageOfAll() {
  return ManPage("keel", CompletedCommands(),
                 {.title = "look after checkpoints and training data",
                  .notes = {std::string(kAbout) + " Each command has its options, examples and "
                                                  "exit codes in a page of its own.",
                            std::string(kHowToName)},
                  .see_also = {"keelrun"}});
}

}  // namespace

OptionTable ManTable() {
  OptionTable table = CommandTable(
      "man",
      "Prints the man page of a command, or of keel itself, for man(1). An installed keel has "
      "them where man looks by itself.",
      "[COMMAND]", "");
  table.AddExample("man -l <(keel man verify)", "All about one command");
  return table;
}

Status CheckMan(const Options& options) {
  if (options.positionals().empty()) return Ok();
  const std::string& name = options.positionals()[0];
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (command.name == name) return Ok();
    names.emplace_back(command.name);
  }
  return Error{Code::kInvalid, "no command " + Shown(name) + DidYouMean(name, names)};
}

Result<Outcome> RunMan(const World&, const Options& options) {
  const std::string name = options.positionals().empty() ? "" : options.positionals()[0];
  std::string page = name.empty() ? PageOfAll() : "";
  for (const Command& command : Commands()) {
    if (command.name == name) page = PageOf(command);
  }
  return Outcome{{{"command", name}, {"page", page}}, page};
}

}  // namespace keel
