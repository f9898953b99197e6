// Where option values come from in the real world, and how a program reads them.
#include "base/options.h"


#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kConfigBytesMax = 1 << 20;

template <class T>
const T& As(const Options::Setting& setting) {
  const T* const value = std::get_if<T>(&setting.value);
  KEEL_CHECK(value != nullptr, "option " << setting.option.name << " holds no value of this type");
  return *value;
}

// What a config file would not read back as it stands there.
bool NeedsQuotes(const std::string& text) {
  const bool printable = Shown(text) == "'" + text + "'";
  return !printable || Trim(text) != text || text.find('#') != std::string::npos ||
         text.starts_with('"') || text.starts_with('\'');
}

std::string Quoted(const std::string& text) {
  std::string quoted = QuoteForLog(text);
  // Where that sees no need for quotes there is nothing to escape either.
  return quoted.starts_with('"') ? quoted : '"' + quoted + '"';
}

}  // namespace

Result<std::string> ReadConfigFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kConfigBytesMax + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return Error{Code::kIo, "reading the config file " + Shown(path) + ": " +
                                (errno != 0 ? std::strerror(errno) : "it cannot be read")};
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kConfigBytesMax) {
    return Error{Code::kInvalid, "the config file " + Shown(path) + " is larger than " +
                                     BytesText(kConfigBytesMax)};
  }
  return text;
}

OptionInputs RealInputs(int argc, const char* const* argv) {
  OptionInputs inputs;
  inputs.arguments.assign(argv + std::min(argc, 1), argv + argc);
  inputs.environment = OwnEnvironment();
  return inputs;
}

std::string OptionSource::Text() const {
  switch (kind) {
    case Kind::kCommandLine: return "command line";
    case Kind::kEnvironment: return "environment " + where;
    case Kind::kConfigFile: return where;
    case Kind::kDefault: return where.empty() ? "default" : "default of " + where;
  }
  return "default";
}

const Options::Setting& Options::Find(std::string_view name) const {
  const auto found = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& setting) {
    return setting.option.name == name;
  });
  KEEL_CHECK(found != settings_.end(), "no option is called " << name);
  return *found;
}

Status Options::SetDefault(std::string_view name, const std::string& text,
                           const std::string& where) {
  Setting& setting = settings_[static_cast<size_t>(&Find(name) - settings_.data())];
  if (setting.source.kind != OptionSource::Kind::kDefault) return Ok();
  Result<OptionValue> value = ReadOption(setting.option, {text});
  if (!value.ok()) {
    return Error{value.error().code, "--" + setting.option.name + " of " + where + ": " +
                                         value.error().message};
  }
  setting.value = *std::move(value);
  setting.text = text;
  setting.source.where = where;
  return Ok();
}

bool Options::Flag(std::string_view name) const { return As<bool>(Find(name)); }
int64_t Options::Integer(std::string_view name) const { return As<int64_t>(Find(name)); }
double Options::Real(std::string_view name) const { return As<double>(Find(name)); }
uint64_t Options::Bytes(std::string_view name) const { return As<uint64_t>(Find(name)); }
Duration Options::Time(std::string_view name) const { return As<Duration>(Find(name)); }
const std::string& Options::Text(std::string_view name) const {
  return As<std::string>(Find(name));
}
const std::vector<std::string>& Options::List(std::string_view name) const {
  return As<std::vector<std::string>>(Find(name));
}
bool Options::Has(std::string_view name) const { return Find(name).value.index() != 0; }
const OptionSource& Options::Source(std::string_view name) const { return Find(name).source; }

std::string Options::ConfigText() const {
  std::string text;
  for (const Setting& setting : settings_) {
    if (setting.option.command_line_only) continue;
    if (setting.value.index() == 0) {
      text += "# " + setting.option.name + " is not set\n";
      continue;
    }
    const std::string value = NeedsQuotes(setting.text) ? Quoted(setting.text) : setting.text;
    if (setting.option.name == config_option_) text += "# ";
    text += setting.option.name + " = " + value + "  # " + setting.source.Text() + "\n";
  }
  return text;
}

}  // namespace keel
