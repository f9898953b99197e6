// `keel completion bash|zsh`: the script that makes the shell complete command lines of `keel`.
#include "base/nearest.h"
#include "base/text.h"
#include "tools/keel/commands.h"

namespace keel {

OptionTable CompletionTable() {
  OptionTable table = CommandTable(
      "completion",
      "Prints a script that makes the shell complete commands, options, their values and "
      "directories. An installed keel needs none of this where the shell reads completions from "
      "its prefix.",
      "bash|zsh", "");
  table.AddExample("source <(keel completion bash)", "In ~/.bashrc");
  table.AddExample("source <(keel completion zsh)", "In ~/.zshrc, after compinit");
  return table;
}

Status CheckCompletion(const Options& options) {
  const std::string& shell = options.positionals()[0];
  if (shell == "bash" || shell == "zsh") return Ok();
  return Error{Code::kInvalid, "no completion for shell " + Shown(shell) +
                                   DidYouMean(shell, {"bash", "zsh"}) + ": bash or zsh"};
}

Result<Outcome> RunCompletion(const World&, const Options& options) {
  const std::string& shell = options.positionals()[0];
  const std::vector<CompletedCommand> commands = CompletedCommands();
  const std::string script =
      shell == "bash" ? BashCompletion("keel", commands) : ZshCompletion("keel", commands);
  return Outcome{{{"shell", shell}, {"script", script}}, script};
}

}  // namespace keel
