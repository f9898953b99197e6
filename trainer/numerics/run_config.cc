// Turns options into texts, and texts into words and differences.
#include "trainer/numerics/run_config.h"

#include <algorithm>
#include <span>

#include "base/digest.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kWordBytesMax = 200;
constexpr size_t kAllBytesMax = 2000;   // of the 4096 that a fingerprint may have

std::string DigestText(const std::string& text) {
  return "digest:" + DigestOf(std::as_bytes(std::span(text))).Hex().substr(0, 16);
}

// Different values give different words.
std::string WordOf(const std::string& value) {
  std::string word;
  for (const char c : value) {
    if (c == ' ') {
      word += "%20";
    } else if (c == '%') {
      word += "%25";
    } else {
      word += c;
    }
  }
  return word.size() > kWordBytesMax ? DigestText(word) : word;
}

}  // namespace

std::string ConfigValue(const OptionValue& value) {
  return value.index() == 0 ? "not set" : Printable(ValueText(value));
}

RunConfig RunConfigOf(const Options& options, size_t own_from) {
  RunConfig config;
  const std::vector<Options::Setting>& settings = options.settings();
  for (size_t i = 0; i < settings.size(); ++i) {
    const Option& option = settings[i].option;
    if (option.command_line_only) continue;
    config.push_back({.name = option.name,
                      .value = ConfigValue(settings[i].value),
                      .source = settings[i].source.Text(),
                      .shapes_result = i >= own_from && !option.incidental});
  }
  return config;
}

SavedConfig SavedOf(const RunConfig& config) {
  SavedConfig saved;
  for (const ConfigField& field : config) saved[field.name] = field.value;
  return saved;
}

void AddOptions(const RunConfig& config, Fingerprint* fingerprint) {
  std::vector<std::pair<std::string, std::string>> words;
  std::string all;
  for (const ConfigField& field : config) {
    if (!field.shapes_result) continue;
    words.emplace_back("--" + field.name, WordOf(field.value));
    all += words.back().first + "=" + words.back().second + " ";
  }
  if (all.size() > kAllBytesMax) return fingerprint->Add("options", DigestText(all));
  for (const auto& [name, value] : words) fingerprint->Add(name, value);
}

ConfigChanges CompareConfigs(const SavedConfig& was, const RunConfig& now) {
  ConfigChanges changes;
  for (const ConfigField& field : now) {
    const auto found = was.find(field.name);
    if (found == was.end()) {
      if (field.shapes_result) changes.unknown.push_back(field.name);
    } else if (found->second != field.value) {
      changes.changed.push_back({field.name, found->second, field.value, field.source});
    }
  }
  for (const auto& [name, value] : was) {
    const bool known = std::any_of(now.begin(), now.end(), [&name = name](const auto& field) {
      return field.name == name;
    });
    if (!known) changes.changed.push_back({name, value, "no such option", "program"});
  }
  return changes;
}

}  // namespace keel
