// OptionTable: all options of one program, declared once. Parsing (base/options.h), --help
// (base/option_help.h), man pages and completion are all made from it.
// Promises   options() gives them in the order of declaration, after those every program has:
//            --help (-h) and, unless it has no config file, --print-config.
// Threads    declare first, then share: const methods from any thread.
// A name declared twice, or a default that its own option refuses, is a bug of ours: KEEL_CHECK.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/option.h"

namespace keel {

// What arguments that are no options are to a program.
enum class Positionals {
  kNone,       // a mistake
  kAnywhere,   // collected: keel verify DIR --json
  kRemainder,  // the first one ends the options; it and all behind it are left as they are
};

class OptionTable {
 public:
  struct Example {
    std::string command;
    std::string meaning;
  };
  struct ExitCode {
    int code;
    std::string meaning;
  };

  OptionTable(std::string program, std::string summary);

  // The heading of the options added from here on.
  OptionTable& Section(std::string heading);
  OptionTable& Add(Option option);
  // `usage` names them in the usage line: "script [args...]".
  OptionTable& TakePositionals(Positionals rule, std::string usage);
  // Variables that begin so belong to us: one that no option knows is an error, unless `others`
  // (other programs of ours, which share the environment) has its exact name.
  OptionTable& EnvironmentPrefix(std::string prefix, std::vector<std::string> others = {});
  // The text option whose value is a config file's path; it is added before.
  OptionTable& ConfigFileFrom(std::string_view option_name);
  // For a program without a config file: --print-config would show one that nothing reads. Call it
  // before anything is added.
  OptionTable& WithoutPrintConfig();
  // In place of the declared default. kInvalid: the option cannot have it.
  Status SetDefault(std::string_view name, std::string text);
  OptionTable& AddExample(std::string command, std::string meaning);
  OptionTable& AddExitCode(int code, std::string meaning);

  const std::string& program() const { return program_; }
  const std::string& summary() const { return summary_; }
  const std::string& positional_usage() const { return positional_usage_; }
  Positionals positionals() const { return positionals_; }
  const std::string& environment_prefix() const { return environment_prefix_; }
  const std::vector<std::string>& other_variables() const { return other_variables_; }
  const std::string& config_option() const { return config_option_; }
  const std::vector<Option>& options() const { return options_; }
  const std::vector<Example>& examples() const { return examples_; }
  const std::vector<ExitCode>& exit_codes() const { return exit_codes_; }
  // Headings in the order in which they were first used; that of --help comes last.
  std::vector<std::string> Sections() const;

  // By canonical name or alias, or by letter; null where there is none.
  const Option* Find(std::string_view name) const;
  const Option* FindShort(char letter) const;
  // Every name and alias that begins so.
  std::vector<std::string> NamesFrom(std::string_view beginning) const;

 private:
  void CheckDeclaration(const Option& option) const;

  std::string program_;
  std::string summary_;
  std::string section_ = "Options";
  Positionals positionals_ = Positionals::kNone;
  std::string positional_usage_;
  std::string environment_prefix_;
  std::vector<std::string> other_variables_;
  std::string config_option_;
  std::vector<Option> options_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::vector<Example> examples_;
  std::vector<ExitCode> exit_codes_;
};

}  // namespace keel
