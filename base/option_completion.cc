// Writes completion scripts for bash and zsh.
#include "base/option_completion.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace keel {
namespace {

// What completes a value or an argument.
enum class Kind { kNothing, kFile, kDirectory };

// By a word of the placeholder: "CKPT|DIR" and "OUT_DIR" are directories.
Kind KindOf(const std::string& usage, Kind otherwise) {
  Kind kind = otherwise;
  std::string word;
  for (const char c : usage + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (word == "DIR" || word == "CKPT") return Kind::kDirectory;
    if (word == "FILE") kind = Kind::kFile;
    word.clear();
  }
  return kind;
}

// "bash|zsh": the words themselves, in small letters. Otherwise none.
std::vector<std::string> WordsOf(const std::string& usage) {
  std::vector<std::string> words(1);
  for (const char c : usage) {
    if (c == '|') {
      words.emplace_back();
    } else if (c >= 'a' && c <= 'z') {
      words.back() += c;
    } else {
      return {};
    }
  }
  return words.size() > 1 ? words : std::vector<std::string>();
}

using Words = std::vector<std::string>;

// What stands for an argument: the words of its usage, or, for "[COMMAND]", the program's commands.
Words ArgumentWords(const std::string& usage, const Words& commands) {
  return usage.find("COMMAND") == std::string::npos ? WordsOf(usage) : commands;
}

bool TakesValue(const Option& option) { return option.type != OptionType::kFlag; }

// "--json", "--no-json": as they are typed.
std::vector<std::string> Spellings(const Option& option) {
  std::vector<std::string> spellings = {"--" + option.name};
  if (!TakesValue(option) && !option.command_line_only) {
    spellings.push_back("--no-" + option.name);
  }
  if (option.short_name != 0) spellings.push_back(std::string("-") + option.short_name);
  return spellings;
}

// In single quotes, in which a shell changes nothing.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c == '\n' ? ' ' : c;
    }
  }
  return quoted + "'";
}

// "keel-run" is no name of a function that all shells take.
std::string FunctionName(const std::string& program) {
  std::string name = "_" + program;
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

Words NamesOf(const std::vector<CompletedCommand>& commands) {
  Words names;
  for (const CompletedCommand& command : commands) names.push_back(command.name);
  return names;
}

// The last word of "keel ls" and of "/usr/bin/keelrun".
std::string ProgramName(const OptionTable& table) {
  const std::string& program = table.program();
  const size_t before = program.find_last_of(" /");
  return before == std::string::npos ? program : program.substr(before + 1);
}

// --- bash ---

// The command that offers what may stand there.
std::string BashOffer(const std::string& function, Kind kind,
                      const std::vector<std::string>& words) {
  const std::string offer = function + "_offer ";
  if (!words.empty()) return offer + "-W " + Quoted(JoinList(words, " "));
  switch (kind) {
    case Kind::kDirectory: return offer + "-d";
    case Kind::kFile: return offer + "-f";
    case Kind::kNothing: break;
  }
  return ":";
}

// The helpers see `cur` and `option` of their caller, as functions of bash do.
std::string BashHead(const std::string& function) {
  return function +
         R"(_offer() {
  local line
  [[ $1 == -W ]] || compopt -o filenames 2>/dev/null
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <(compgen "$@" -- "$cur")
}

# The word at hand, and the option whose value it is, also where "=" stands between them.
)" + function +
         R"(_look() {
  cur=${COMP_WORDS[COMP_CWORD]}
  option=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $cur == = ]]; then
    cur=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
}

)";
}

// A case of `$option` for each option that takes a value, then the names, then arguments.
std::string BashBody(const OptionTable& table, const std::string& function,
                     const std::string& indent, const Words& commands = {}) {
  std::string text = indent + "case $option in\n";
  std::vector<std::string> names;
  for (const Option& option : table.options()) {
    const std::vector<std::string> spellings = Spellings(option);
    names.insert(names.end(), spellings.begin(), spellings.end());
    if (!TakesValue(option)) continue;
    text += indent + "  " + JoinList(spellings, " | ") + ") ";
    text += BashOffer(function, KindOf(option.placeholder, Kind::kNothing), option.choices) +
            "; return ;;\n";
  }
  text += indent + "esac\n";
  text += indent + "if [[ $cur == -* ]]; then\n";
  text += indent + "  " + BashOffer(function, Kind::kNothing, names) + "\n";
  text += indent + "else\n";
  const std::string& usage = table.positional_usage();
  const Words words = ArgumentWords(usage, commands);
  text += indent + "  " + BashOffer(function, KindOf(usage, Kind::kFile), words) + "\n";
  return text + indent + "fi\n";
}

std::string BashEnd(const std::string& program) {
  return "complete -F " + FunctionName(program) + " " + program + "\n";
}

// --- zsh ---

// In a specification of _arguments brackets and colons mean something, a backslash takes it away.
std::string ZshText(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshAction(Kind kind, const std::vector<std::string>& words) {
  if (!words.empty()) return "(" + JoinList(words, " ") + ")";
  switch (kind) {
    case Kind::kDirectory: return "_files -/";
    case Kind::kFile: return "_files";
    case Kind::kNothing: break;
  }
  return " ";
}

// One specification for each spelling, so that a flag is not offered twice.
std::string ZshOption(const Option& option, const std::string& indent) {
  std::string text;
  const std::vector<std::string> spellings = Spellings(option);
  const bool is_list = option.type == OptionType::kList;
  for (const std::string& spelling : spellings) {
    std::string spec = is_list ? "*" : "(" + JoinList(spellings, " ") + ")";
    const bool is_long = spelling.starts_with("--");
    spec += spelling + (!TakesValue(option) ? "" : is_long ? "=" : "+");
    spec += "[" + ZshText(option.help) + "]";
    if (TakesValue(option)) {
      spec += ":" + ZshText(option.placeholder) + ":" +
              ZshAction(KindOf(option.placeholder, Kind::kNothing), option.choices);
    }
    text += indent + Quoted(spec) + " \\\n";
  }
  return text;
}

std::string ZshArguments(const OptionTable& table, const std::string& indent,
                         const Words& commands = {}) {
  std::string text = indent + "_arguments -s -S \\\n";
  for (const Option& option : table.options()) text += ZshOption(option, indent + "  ");
  if (table.positionals() == Positionals::kNone) return text + indent + "  && return\n";
  const std::string& usage = table.positional_usage();
  return text + indent + "  " +
         Quoted("*:" + ZshText(usage) + ":" +
                ZshAction(KindOf(usage, Kind::kFile), ArgumentWords(usage, commands))) +
         "\n";
}

std::string ZshEnd(const std::string& program) {
  return "\n(( $+functions[compdef] )) && compdef " + FunctionName(program) + " " + program + "\n";
}

}  // namespace

std::string BashCompletion(const OptionTable& table) {
  const std::string program = ProgramName(table);
  const std::string function = FunctionName(program);
  return "# Completes the command line of " + program + " in bash.\n" + BashHead(function) +
         function + "() {\n  local cur option\n  COMPREPLY=()\n  " + function + "_look\n" +
         BashBody(table, function, "  ") + "}\n" + BashEnd(program);
}

std::string BashCompletion(const std::string& program,
                           const std::vector<CompletedCommand>& commands) {
  const std::string function = FunctionName(program);
  const Words names = NamesOf(commands);
  std::string text = "# Completes the command line of " + program + " in bash.\n" +
                     BashHead(function) + function +
                     "() {\n  local cur option\n  COMPREPLY=()\n  " + function +
                     "_look\n  if ((COMP_CWORD == 1)); then\n    " + function + "_offer -W " +
                     Quoted(JoinList(names, " ") + " --help") +
                     "\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
  for (const CompletedCommand& command : commands) {
    text += "    " + command.name + ")\n" + BashBody(command.table, function, "      ", names) +
            "      ;;\n";
  }
  return text + "  esac\n}\n" + BashEnd(program);
}

std::string ZshCompletion(const OptionTable& table) {
  const std::string program = ProgramName(table);
  return "#compdef " + program + "\n# Completes the command line of " + program + " in zsh.\n" +
         FunctionName(program) + "() {\n" + ZshArguments(table, "  ") + "}\n" + ZshEnd(program);
}

std::string ZshCompletion(const std::string& program,
                          const std::vector<CompletedCommand>& commands) {
  std::string text = "#compdef " + program + "\n# Completes the command line of " + program +
                     " in zsh.\n" + FunctionName(program) +
                     "() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(\n";
  for (const CompletedCommand& command : commands) {
    text += "      " + Quoted(command.name + ":" + ZshText(command.summary)) + "\n";
  }
  text += "    )\n    _describe command commands\n    return\n  fi\n"
          "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  const Words names = NamesOf(commands);
  for (const CompletedCommand& command : commands) {
    text += "    " + command.name + ")\n" + ZshArguments(command.table, "      ", names) +
            "      ;;\n";
  }
  return text + "  esac\n}\n" + ZshEnd(program);
}

}  // namespace keel
