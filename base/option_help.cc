// Lays out --help: usage, sections of options, examples, exit codes.
#include "base/option_help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace keel {
namespace {

constexpr size_t kTextColumn = 30;
constexpr size_t kExitCodeColumn = 7;

// The words of `text` in lines of at most `width`, each begun with `indent` blanks.
std::string Wrapped(const std::string& text, size_t indent, size_t width) {
  std::istringstream words(text);
  std::string wrapped, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > width) {
      wrapped += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? wrapped : wrapped + std::string(indent, ' ') + line + "\n";
}

// `left`, then `text` in a column of its own; on the next line when `left` is too long for that.
std::string TwoColumns(const std::string& left, const std::string& text, size_t column,
                       size_t width) {
  std::string right = Wrapped(text, column, width);
  if (left.size() + 2 > column) return left + "\n" + right;
  return right.empty() ? left + "\n" : left + right.substr(left.size());
}

std::string LeftText(const Option& option) {
  std::string left = option.short_name == 0 ? "  " : std::string("  -") + option.short_name + ", ";
  const bool flag = option.type == OptionType::kFlag;
  left += flag && !option.command_line_only ? "--[no-]" : "--";
  left += option.name;
  return flag ? left : left + " " + option.placeholder;
}

}  // namespace

std::string OptionHelp(const Option& option) {
  std::string text = option.help;
  if (option.required) text += " (required)";
  if (option.default_text && !option.command_line_only) {
    text += option.default_text->empty() ? " (default: none)"
                                         : " (default: " + *option.default_text + ")";
  }
  for (const std::string& variable : option.environment) text += " [" + variable + "]";
  return text;
}

std::string HelpText(const OptionTable& table, int width) {
  const auto columns = static_cast<size_t>(std::max(width, 1));
  std::string usage = "usage: " + table.program() + " [options]";
  if (!table.positional_usage().empty()) usage += " " + table.positional_usage();
  std::string text = Wrapped(usage, 0, columns) + "\n" + Wrapped(table.summary(), 0, columns);
  for (const std::string& section : table.Sections()) {
    text += "\n" + section + "\n";
    for (const Option& option : table.options()) {
      if (option.section != section) continue;
      text += TwoColumns(LeftText(option), OptionHelp(option), kTextColumn, columns);
    }
  }
  if (!table.examples().empty()) text += "\nExamples\n";
  for (const auto& [command, meaning] : table.examples()) {
    text += Wrapped(meaning + ":", 2, columns) + "    " + command + "\n";
  }
  if (!table.exit_codes().empty()) text += "\nExit codes\n";
  for (const auto& [code, meaning] : table.exit_codes()) {
    const std::string number = std::to_string(code);
    const std::string left = std::string(number.size() < 5 ? 5 - number.size() : 0, ' ') + number;
    text += TwoColumns(left, meaning, kExitCodeColumn, columns);
  }
  return text;
}

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::clamp<int>(size.ws_col, 40, 120);
}

}  // namespace keel
