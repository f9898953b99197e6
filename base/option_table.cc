// Keeps the declared options and finds them by name.
#include "base/option_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace keel {
namespace {

constexpr const char* kHelpSection = "Help";

bool IsName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

OptionTable::OptionTable(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {
  const std::string first_section = std::exchange(section_, kHelpSection);
  Add(Option::Flag("help", false, "Show this text and exit").Short('h').CommandLineOnly());
  Add(Option::Flag("print-config", false,
                   "Show every value and where it came from, as a config file, and exit")
          .CommandLineOnly());
  section_ = first_section;
}

OptionTable& OptionTable::Section(std::string heading) {
  section_ = std::move(heading);
  return *this;
}

OptionTable& OptionTable::Add(Option option) {
  for (std::string& alias : option.aliases) alias = CanonicalName(alias);
  option.section = section_;
  CheckDeclaration(option);
  by_name_.emplace(option.name, options_.size());
  for (const std::string& alias : option.aliases) by_name_.emplace(alias, options_.size());
  options_.push_back(std::move(option));
  return *this;
}

void OptionTable::CheckDeclaration(const Option& option) const {
  KEEL_CHECK(IsName(option.name), "name=" << option.name);
  KEEL_CHECK(Find(option.name) == nullptr, "declared twice: " << option.name);
  for (const std::string& alias : option.aliases) {
    KEEL_CHECK(IsName(alias) && Find(alias) == nullptr && alias != option.name, "alias=" << alias);
  }
  KEEL_CHECK(option.short_name == 0 || FindShort(option.short_name) == nullptr,
             "-" << option.short_name << " declared twice");
  for (const Option& other : options_) {
    for (const std::string& variable : option.environment) {
      KEEL_CHECK(std::count(other.environment.begin(), other.environment.end(), variable) == 0,
                 "two options take " << variable);
    }
  }
  if (option.default_text) {
    const Result<OptionValue> value = ReadOption(option, {*option.default_text});
    KEEL_CHECK(value.ok(), "default of " << option.name << ": " << value.error().message);
  }
}

OptionTable& OptionTable::TakePositionals(Positionals rule, std::string usage) {
  positionals_ = rule;
  positional_usage_ = std::move(usage);
  return *this;
}

OptionTable& OptionTable::EnvironmentPrefix(std::string prefix, std::vector<std::string> others) {
  environment_prefix_ = std::move(prefix);
  other_variables_ = std::move(others);
  return *this;
}

OptionTable& OptionTable::ConfigFileFrom(std::string_view option_name) {
  const Option* const option = Find(option_name);
  KEEL_CHECK(option != nullptr && option->type == OptionType::kText, option_name);
  config_option_ = option->name;
  return *this;
}

OptionTable& OptionTable::WithoutPrintConfig() {
  KEEL_CHECK(options_.size() == 2, "options were added before");
  by_name_.erase(options_.back().name);
  options_.pop_back();
  return *this;
}

Status OptionTable::SetDefault(std::string_view name, std::string text) {
  const auto found = by_name_.find(name);
  KEEL_CHECK(found != by_name_.end(), "no option is called " << name);
  Option& option = options_[found->second];
  const Result<OptionValue> value = ReadOption(option, {text});
  if (!value.ok()) return value.error();
  option.default_text = std::move(text);
  return Ok();
}

OptionTable& OptionTable::AddExample(std::string command, std::string meaning) {
  examples_.push_back({std::move(command), std::move(meaning)});
  return *this;
}

OptionTable& OptionTable::AddExitCode(int code, std::string meaning) {
  exit_codes_.push_back({code, std::move(meaning)});
  return *this;
}

std::vector<std::string> OptionTable::Sections() const {
  std::vector<std::string> sections;
  for (const Option& option : options_) {
    if (option.section == kHelpSection) continue;
    if (std::count(sections.begin(), sections.end(), option.section) == 0) {
      sections.push_back(option.section);
    }
  }
  sections.push_back(kHelpSection);
  return sections;
}

const Option* OptionTable::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &options_[found->second];
}

const Option* OptionTable::FindShort(char letter) const {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& option) {
    return option.short_name != 0 && option.short_name == letter;
  });
  return found == options_.end() ? nullptr : &*found;
}

std::vector<std::string> OptionTable::NamesFrom(std::string_view beginning) const {
  std::vector<std::string> names;
  for (auto at = by_name_.lower_bound(beginning);
       at != by_name_.end() && at->first.starts_with(beginning); ++at) {
    names.push_back(at->first);
  }
  return names;
}

}  // namespace keel
