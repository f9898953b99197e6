// Takes a config file apart, line by line, since Boost's reader does not tell lines.
#include "base/option_config.h"

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace keel {
namespace {

namespace po = boost::program_options;

struct KeyValue {
  std::string key;
  std::string value;
};

// One line, read by Boost as if it were a whole file in `section`; nothing when it is blank.
Result<std::optional<KeyValue>> ReadLine(const std::string& section, std::string_view line) {
  try {
    std::istringstream file((section.empty() ? "" : "[" + section + "]\n") + std::string(line));
    const po::options_description none;
    const po::parsed_options parsed = po::parse_config_file(file, none, true);
    if (parsed.options.empty()) return std::optional<KeyValue>();
    const po::option& option = parsed.options.front();
    const std::string value = option.value.empty() ? std::string() : option.value.front();
    return std::optional<KeyValue>({option.string_key, value});
  } catch (const std::exception&) {
    return Error{Code::kInvalid, Shown(Trim(line)) + " is neither 'key = value' nor '[section]'"};
  }
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
