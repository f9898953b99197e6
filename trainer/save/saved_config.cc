// Saves options under names with a prefix, and makes those of weights the defaults of a program.
#include "trainer/saved_config.h"

#include "base/json.h"
#include "ckpt/catalog.h"
#include "ckpt/checkpoint.h"
#include "ckpt/error_list.h"
#include "ckpt/safetensors_file.h"

namespace keel {
namespace {

constexpr std::string_view kPrefix = "config.";
// The prefix that `keel export` puts before metadata, whose values it writes as JSON.
constexpr std::string_view kExported = "keel.metadata.config.";

SavedConfig ConfigIn(const SafetensorsFile& file) {
  SavedConfig config;
  for (const auto& [name, text] : file.header().metadata) {
    if (!name.starts_with(kExported)) continue;
    const Result<Json> value = ParseJson(text);
    if (!value.ok() || !value->is_string()) continue;
    config[name.substr(kExported.size())] = value->get<std::string>();
  }
  return config;
}

}  // namespace

void PutConfig(const SavedConfig& config, Metadata* metadata) {
  for (const auto& [name, value] : config) (*metadata)[std::string(kPrefix) + name] = value;
}

SavedConfig ConfigIn(const Metadata& metadata) {
  SavedConfig config;
  for (const auto& [name, value] : metadata) {
    if (name.starts_with(kPrefix)) config[name.substr(kPrefix.size())] = MetadataText(value);
  }
  return config;
}

Result<SavedConfig> ConfigOfWeights(Files& files, const std::string& path) {
  if (path.ends_with(kSafetensorsEnding)) {
    KEEL_TRY_ASSIGN(const auto file, SafetensorsFile::Open(files, path));
    return ConfigIn(*file);
  }
  KEEL_TRY_ASSIGN(const auto checkpoint, OpenCheckpoint(files, path));
  return ConfigIn(checkpoint->manifest().description.metadata);
}

Status TakeOptionsOfWeights(Files& files, const std::string& path, std::string_view beginning,
                            Options* options) {
  KEEL_TRY_ASSIGN(const SavedConfig config, ConfigOfWeights(files, path));
  ErrorList errors;
  for (const Options::Setting& setting : options->settings()) {
    const std::string& name = setting.option.name;
    const auto made_with = config.find(name);
    if (!name.starts_with(beginning) || made_with == config.end()) continue;
    KEEL_TRY(options->SetDefault(name, made_with->second, path));
    const std::string value = ConfigValue(setting.value);
    if (value == made_with->second) continue;
    errors.Add(Code::kInvalid, "--" + name + " is " + value + " (" + setting.source.Text() +
                                   "), but the weights were made with " + made_with->second);
  }
  return errors.ToStatus("weights from " + path);
}

}  // namespace keel
