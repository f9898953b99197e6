// What the option tables of all commands have in common.
#include "tools/keel/command.h"

namespace keel {

OptionTable CommandTable(const std::string& name, const std::string& summary,
                         const std::string& positionals, const std::string& no) {
  OptionTable table("keel " + name, summary);
  table.WithoutPrintConfig();
  table.TakePositionals(positionals.empty() ? Positionals::kNone : Positionals::kAnywhere,
                        positionals);
  table.Add(Option::Flag("json", false,
                         "Print one JSON object, for programs. A command that fails, or is not "
                         "understood, prints {\"error\": {\"code\": ..., \"message\": ...}}"));
  table.AddExitCode(0, "done");
  if (!no.empty()) table.AddExitCode(kExitNo, no);
  table.AddExitCode(kExitUsage, "the command line was not understood; nothing was done");
  table.AddExitCode(kExitFailed, "the command failed: the message on stderr says why");
  return table;
}

}  // namespace keel
