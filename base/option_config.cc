// Takes a config file apart, line by line.
#include "base/option_config.h"

#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace keel {
namespace {

struct KeyValue {
  std::string key;
  std::string value;
};

Error Wrong(std::string why) { return {Code::kInvalid, std::move(why)}; }

bool IsBlankOrComment(std::string_view text) {
  text = Trim(text);
  return text.empty() || text.starts_with('#');
}

// Takes what a backslash begins off the front of `text`.
std::optional<char> TakeEscape(std::string_view& text) {
  constexpr std::string_view kNames = "\"\\nrt", kMeanings = "\"\\\n\r\t";
  const char name = text.size() < 2 ? '\0' : text[1];
  if (const size_t at = kNames.find(name); at != std::string_view::npos) {
    text.remove_prefix(2);
    return kMeanings[at];
  }
  unsigned char byte = 0;
  if (name != 'x' || text.size() < 4) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 4, byte, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  text.remove_prefix(4);
  return static_cast<char>(byte);
}

// `text` begins with a quote; behind the one that ends it only a comment may follow.
Result<std::string> ReadQuoted(std::string_view text) {
  const std::string_view whole = text;
  const char quote = text.front();
  std::string value;
  text.remove_prefix(1);
  while (!text.empty() && text.front() != quote) {
    if (quote == '"' && text.front() == '\\') {
      const std::optional<char> meant = TakeEscape(text);
      if (!meant) {
        return Wrong(Shown(text.substr(0, 2)) +
                     R"( means nothing: in "..." there are \" \\ \n \r \t and \xHH; '...' takes )"
                     "all as it is");
      }
      value += *meant;
    } else {
      value += text.front();
      text.remove_prefix(1);
    }
  }
  if (text.empty()) return Wrong("the quote of " + Shown(whole) + " does not end on its line");
  text.remove_prefix(1);
  if (!IsBlankOrComment(text)) return Wrong("after the value there is " + Shown(Trim(text)));
  return value;
}

// One line that names no section; nothing when it is blank.
Result<std::optional<KeyValue>> ReadLine(const std::string& section, std::string_view line) {
  line = Trim(line);
  if (IsBlankOrComment(line)) return std::optional<KeyValue>();
  const size_t equals = line.find_first_of("=#");
  const std::string_view key = Trim(line.substr(0, equals));
  if (equals == std::string_view::npos || line[equals] == '#' || key.empty()) {
    return Wrong(Shown(line) + " is neither 'key = value' nor '[section]'");
  }
  KeyValue pair{(section.empty() ? "" : section + ".") + std::string(key), ""};
  const std::string_view value = Trim(line.substr(equals + 1));
  if (value.starts_with('"') || value.starts_with('\'')) {
    KEEL_TRY_ASSIGN(pair.value, ReadQuoted(value));
  } else {
    pair.value = Trim(value.substr(0, value.find('#')));
  }
  return std::optional<KeyValue>(std::move(pair));
}

// "[name]" gives name.
std::optional<std::string> SectionOf(std::string_view line) {
  line = Trim(line.substr(0, line.find('#')));
  if (line.size() < 2 || !line.starts_with('[') || !line.ends_with(']')) return std::nullopt;
  return std::string(Trim(line.substr(1, line.size() - 2)));
}

class ConfigReader {
 public:
  ConfigReader(const OptionTable& table, const std::string& path) : table_(table), path_(path) {}

  ConfigFile Read(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    while (!text.empty()) {
      const size_t end = text.find('\n');
      ++line_;
      Take(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return std::move(file_);
  }

 private:
  void Take(std::string_view line) {
    if (std::optional<std::string> section = SectionOf(line)) {
      section_ = *std::move(section);
      return;
    }
    const Result<std::optional<KeyValue>> read = ReadLine(section_, line);
    if (!read.ok()) return Complain(read.error().message);
    if (*read) Take(**read);
  }

  void Take(const KeyValue& pair) {
    const Option* const option = table_.Find(CanonicalName(pair.key));
    if (option == nullptr) {
      return Complain("unknown key " + Shown(pair.key) +
                      DidYouMean(CanonicalName(pair.key), Keys()));
    }
    if (!Allowed(*option)) {
      return Complain("key " + Shown(pair.key) + " does not belong in a config file");
    }
    if (option->type == OptionType::kList && pair.value.starts_with('[')) {
      return Complain("key " + Shown(pair.key) + ": a list is written \"a,b\" here");
    }
    const auto [first, is_new] = first_lines_.emplace(option, line_);
    if (!is_new && option->type != OptionType::kList) {
      return Complain("key " + Shown(pair.key) + " was given on line " +
                      std::to_string(first->second) + " already");
    }
    file_.entries.push_back({option, pair.value, line_});
  }

  bool Allowed(const Option& option) const {
    return !option.command_line_only && option.name != table_.config_option();
  }

  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const Option& option : table_.options()) {
      if (Allowed(option)) keys.push_back(option.name);
    }
    // Behind all names: of two that are equally near the name is offered.
    for (const Option& option : table_.options()) {
      if (!Allowed(option)) continue;
      keys.insert(keys.end(), option.aliases.begin(), option.aliases.end());
    }
    return keys;
  }

  void Complain(const std::string& problem) {
    file_.problems.push_back(path_ + ":" + std::to_string(line_) + ": " + problem);
  }

  const OptionTable& table_;
  const std::string& path_;
  std::string section_;
  int line_ = 0;
  std::map<const Option*, int> first_lines_;
  ConfigFile file_;
};

}  // namespace

ConfigFile ReadConfig(const OptionTable& table, const std::string& path, std::string_view text) {
  return ConfigReader(table, path).Read(text);
}

}  // namespace keel
