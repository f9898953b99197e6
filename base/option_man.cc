// Writes man pages: escapes, headings, lists of options and commands.
#include "base/option_man.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "base/option_help.h"
#include "base/version.h"

namespace keel {
namespace {

// Text of ours: roff's own characters, and those that it would make prettier, as they are. No line
// of it begins a request.
std::string Escaped(std::string_view text) {
  static const std::map<char, std::string_view> kEscapes = {
      {'\\', "\\(rs"}, {'-', "\\-"},   {'\'', "\\(aq"}, {'`', "\\(ga"},
      {'"', "\\(dq"},  {'^', "\\(ha"}, {'~', "\\(ti"},  {'\n', " "}};
  std::string escaped;
  for (const char c : text) {
    const auto found = kEscapes.find(c);
    escaped += found == kEscapes.end() ? std::string(1, c) : std::string(found->second);
  }
  return !escaped.empty() && escaped.front() == '.' ? "\\&" + escaped : escaped;
}

std::string Bold(std::string_view text) { return "\\fB" + Escaped(text) + "\\fR"; }
std::string Slanted(std::string_view text) { return "\\fI" + Escaped(text) + "\\fR"; }

// Of macros' arguments, in which a quote would end them.
std::string Quoted(std::string_view text) { return "\"" + Escaped(text) + "\""; }

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// "keel-ls" of "keel ls".
std::string PageName(std::string program) {
  std::replace(program.begin(), program.end(), ' ', '-');
  return program;
}

std::string Head(const std::string& program, const ManFacts& facts) {
  const std::string name = PageName(program);
  return ".\\\" Made from the table of options; change that.\n"
         ".TH " + Quoted(Upper(name)) + " 1 \"\" " +
         Quoted("Evenkeel " + std::string(kVersion)) + " " + Quoted("User Commands") + "\n" +
         ".SH NAME\n" + Escaped(name) + " \\- " + Escaped(facts.title) + "\n";
}

std::string Paragraphs(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += ".PP\n" + Escaped(note) + "\n";
  return text;
}

std::string OptionItem(const Option& option) {
  const bool is_flag = option.type == OptionType::kFlag;
  std::string names;
  if (option.short_name != 0) names = Bold(std::string("-") + option.short_name) + ", ";
  names += Bold((is_flag && !option.command_line_only ? "--[no-]" : "--") + option.name);
  if (!is_flag) names += " " + Slanted(option.placeholder);
  return ".TP\n" + names + "\n" + Escaped(OptionHelp(option)) + "\n";
}

std::string OptionItems(const OptionTable& table) {
  std::string text = ".SH OPTIONS\n";
  for (const std::string& section : table.Sections()) {
    text += ".SS " + Quoted(section) + "\n";
    for (const Option& option : table.options()) {
      if (option.section == section) text += OptionItem(option);
    }
  }
  return text;
}

// Where values come from, for those who have not read it elsewhere.
std::string Sources(const OptionTable& table) {
  const bool has_variables =
      std::any_of(table.options().begin(), table.options().end(),
                  [](const Option& option) { return !option.environment.empty(); });
  if (!has_variables && table.config_option().empty()) return "";
  std::string text = ".SH ENVIRONMENT\nA value is the first of: the command line, the environment";
  if (!table.config_option().empty()) {
    text += ", the config file that " + Bold("--" + table.config_option()) + " names";
  }
  return text + ", the default. The variables stand in brackets behind each option; one that is "
                "empty counts as not set. " + Bold("--print-config") +
         " shows every value and where it came from.\n";
}

std::string Examples(const OptionTable& table) {
  if (table.examples().empty()) return "";
  std::string text = ".SH EXAMPLES\n";
  for (const auto& [command, meaning] : table.examples()) {
    text += ".PP\n" + Escaped(meaning) + ":\n.PP\n.RS 4\n.nf\n" + Escaped(command) +
            "\n.fi\n.RE\n";
  }
  return text;
}

std::string ExitCodes(const OptionTable& table) {
  if (table.exit_codes().empty()) return "";
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : table.exit_codes()) {
    text += ".TP\n" + Bold(std::to_string(code)) + "\n" + Escaped(meaning) + "\n";
  }
  return text;
}

std::string SeeAlso(const std::vector<std::string>& pages) {
  if (pages.empty()) return "";
  std::string text = ".SH SEE ALSO\n";
  for (size_t i = 0; i < pages.size(); ++i) {
    text += (i == 0 ? "" : ",\n") + Bold(pages[i]) + "(1)";
  }
  return text + "\n";
}

}  // namespace

std::string ManPage(const OptionTable& table, const ManFacts& facts) {
  std::string usage = Bold(table.program()) + " [" + Slanted("options") + "]";
  if (!table.positional_usage().empty()) usage += " " + Slanted(table.positional_usage());
  return Head(table.program(), facts) + ".SH SYNOPSIS\n" + usage + "\n.SH DESCRIPTION\n" +
         Escaped(table.summary()) + "\n" + Paragraphs(facts.notes) + OptionItems(table) +
         Sources(table) + Examples(table) + ExitCodes(table) + SeeAlso(facts.see_also);
}

std::string ManPage(const std::string& program, const std::vector<CompletedCommand>& commands,
                    const ManFacts& facts) {
  std::string text = Head(program, facts) + ".SH SYNOPSIS\n" + Bold(program) + " " +
                     Slanted("command") + " [" + Slanted("options") + "] " +
                     Slanted("arguments...") + "\n.SH DESCRIPTION\n";
  for (size_t i = 0; i < facts.notes.size(); ++i) {
    text += (i == 0 ? "" : ".PP\n") + Escaped(facts.notes[i]) + "\n";
  }
  text += ".SH COMMANDS\n";
  std::vector<std::string> pages;
  for (const CompletedCommand& command : commands) {
    text += ".TP\n" + Bold(command.name) + "\n" + Escaped(command.summary) + ": see " +
            Bold(program + "-" + command.name) + "(1)\n";
    pages.push_back(program + "-" + command.name);
  }
  pages.insert(pages.end(), facts.see_also.begin(), facts.see_also.end());
  return text + SeeAlso(pages);
}

}  // namespace keel
