// Gathers what command line, environment and config file say, and lets Boost.Program_options
// decide between them.
#include <algorithm>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/nearest.h"
#include "base/option_config.h"
#include "base/option_line.h"
#include "base/options.h"
#include "base/text.h"

namespace keel {
namespace {

namespace po = boost::program_options;

constexpr size_t kProblemsShown = 20;

// How Boost reads and defaults one option of ours.
class Semantic : public po::value_semantic {
 public:
  explicit Semantic(const Option& option) : option_(option) {}

  std::string name() const override { return option_.placeholder; }
  unsigned min_tokens() const override { return 1; }
  unsigned max_tokens() const override { return 1; }
  bool is_composing() const override { return false; }
  bool is_required() const override { return false; }
  void parse(boost::any& value, const std::vector<std::string>& texts, bool) const override {
    Result<OptionValue> read = ReadOption(option_, texts);
    if (!read.ok()) throw std::runtime_error(read.error().message);
    value = *std::move(read);
  }
  bool apply_default(boost::any& value) const override {
    if (!option_.default_text) return false;
    value = *ReadOption(option_, {*option_.default_text});
    return true;
  }
  void notify(const boost::any&) const override {}

 private:
  const Option& option_;
};

// All that one source says about one option.
struct Given {
  const Option* option;
  std::vector<std::string> texts;
  OptionSource source;
};

bool TakeEnd(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// Kubernetes tells each pod of the Services of its namespace, by variables that begin with the
// Service's name. For one named keelrun these are KEELRUN_SERVICE_HOST, KEELRUN_SERVICE_PORT,
// KEELRUN_SERVICE_PORT_<NAME> for each port with a name, KEELRUN_PORT=tcp://10.0.0.1:29400, and for
// each port KEELRUN_PORT_29400_TCP, and the same with _PROTO, _PORT or _ADDR behind it. A variable
// that ends with _PORT and has another value than a URL may be a mistake of the user's.
bool IsOfService(std::string_view variable, std::string_view value) {
  if (variable.ends_with("_SERVICE_HOST") || variable.ends_with("_SERVICE_PORT") ||
      variable.find("_SERVICE_PORT_") != std::string_view::npos) {
    return true;
  }
  if (variable.ends_with("_PORT") && value.find("://") != std::string_view::npos) return true;
  if (!TakeEnd(variable, "_PROTO") && !TakeEnd(variable, "_PORT")) TakeEnd(variable, "_ADDR");
  if (!TakeEnd(variable, "_TCP") && !TakeEnd(variable, "_UDP") && !TakeEnd(variable, "_SCTP")) {
    return false;
  }
  const size_t number = variable.find_last_not_of("0123456789") + 1;
  return number < variable.size() && variable.substr(0, number).ends_with("_PORT_");
}

std::string JoinedProblems(const std::vector<std::string>& problems) {
  if (problems.size() == 1) return problems.front();
  std::string text = std::to_string(problems.size()) + " problems:";
  for (size_t i = 0; i < std::min(problems.size(), kProblemsShown); ++i) {
    text += "\n  " + problems[i];
  }
  if (problems.size() > kProblemsShown) text += "\n  and more like these";
  return text;
}

}  // namespace

// One run of ParseOptions().
class OptionParser {
 public:
  OptionParser(const OptionTable& table, const OptionInputs& inputs)
      : table_(table), inputs_(inputs) {
    for (const Option& option : table.options()) {
      description_.add(boost::shared_ptr<po::option_description>(
          new po::option_description(option.name.c_str(), new Semantic(option))));
    }
  }

  Result<Options> Parse() {
    CommandLine line = ReadCommandLine(table_, inputs_.arguments);
    if (line.help) return Help();
    problems_ = std::move(line.problems);
    for (GivenOption& given : line.given) {
      Add({given.option, {std::move(given.text)}, {OptionSource::Kind::kCommandLine, ""}});
    }
    StoreSource();
    ReadEnvironment();
    StoreSource();
    const Status config = ReadConfigSource();
    StoreSource();
    CheckRequired();
    if (!config.ok() && problems_.empty()) return config.error();
    if (!config.ok()) problems_.push_back(config.error().message);
    if (!problems_.empty()) return Error{Code::kInvalid, JoinedProblems(problems_)};
    return Made(std::move(line.positionals));
  }

 private:
  Result<Options> Help() {
    Add({table_.Find("help"), {"true"}, {OptionSource::Kind::kCommandLine, ""}});
    StoreSource();
    return Made({});
  }

  // Adds to what the source at hand says: lists append, of others the last counts.
  void Add(Given given) {
    for (Given& other : source_) {
      if (other.option != given.option) continue;
      other.texts.push_back(std::move(given.texts.front()));
      other.source = std::move(given.source);
      return;
    }
    source_.push_back(std::move(given));
  }

  // Hands the source's values to Boost, which keeps those that a higher source has given.
  void StoreSource() {
    for (Given& given : source_) {
      if (settled_.count(given.option) > 0) continue;
      try {
        po::parsed_options parsed(&description_);
        parsed.options.emplace_back(given.option->name, given.texts);
        po::store(parsed, values_);
      } catch (const std::exception& exception) {
        problems_.push_back("option '--" + given.option->name + "' (" + given.source.Text() +
                            "): " + exception.what());
      }
      settled_.emplace(given.option, std::move(given));
    }
    source_.clear();
  }

  void ReadEnvironment() {
    for (const Option& option : table_.options()) {
      for (const std::string& variable : option.environment) {
        const auto found = inputs_.environment.find(variable);
        if (found == inputs_.environment.end() || found->second.empty()) continue;
        Add({&option, {found->second}, {OptionSource::Kind::kEnvironment, variable}});
        break;
      }
    }
    const std::string& prefix = table_.environment_prefix();
    if (prefix.empty()) return;
    const std::vector<std::string> known = KnownVariables();
    for (auto at = inputs_.environment.lower_bound(prefix);
         at != inputs_.environment.end() && at->first.starts_with(prefix); ++at) {
      if (std::count(known.begin(), known.end(), at->first) > 0) continue;
      if (IsOfService(at->first, at->second)) continue;
      problems_.push_back("unknown environment variable " + Shown(at->first) +
                          DidYouMean(at->first, known));
    }
  }

  std::vector<std::string> KnownVariables() const {
    std::vector<std::string> known;
    for (const Option& option : table_.options()) {
      known.insert(known.end(), option.environment.begin(), option.environment.end());
    }
    known.insert(known.end(), table_.other_variables().begin(), table_.other_variables().end());
    return known;
  }

  Status ReadConfigSource() {
    const Option* const option = table_.Find(table_.config_option());
    if (option == nullptr) return Ok();
    const auto given = settled_.find(option);
    const std::string path = given == settled_.end() ? option->default_text.value_or("")
                                                     : given->second.texts.back();
    if (path.empty()) return Ok();
    const Result<std::string> text = inputs_.read_file(path);
    if (!text.ok()) return text.error();
    ConfigFile file = ReadConfig(table_, path, *text);
    problems_.insert(problems_.end(), file.problems.begin(), file.problems.end());
    for (ConfigEntry& entry : file.entries) {
      Add({entry.option,
           {std::move(entry.text)},
           {OptionSource::Kind::kConfigFile, path + ":" + std::to_string(entry.line)}});
    }
    return Ok();
  }

  void CheckRequired() {
    for (const Option& option : table_.options()) {
      if (!option.required || settled_.count(&option) > 0) continue;
      problems_.push_back("option '--" + option.name + "' is required: " + AllowedText(option));
    }
  }

  Options Made(std::vector<std::string> positionals) {
    // An empty source still makes Boost apply the defaults.
    po::store(po::parsed_options(&description_), values_);
    Options options;
    options.positionals_ = std::move(positionals);
    options.config_option_ = table_.config_option();
    for (const Option& option : table_.options()) {
      Options::Setting setting{option, {}, option.default_text.value_or(""), {}};
      const po::variable_value& value = values_[option.name];
      if (!value.empty()) setting.value = value.as<OptionValue>();
      if (const auto given = settled_.find(&option); given != settled_.end()) {
        setting.source = given->second.source;
        const std::vector<std::string>& texts = given->second.texts;
        setting.text = option.type == OptionType::kList ? JoinList(texts) : texts.back();
      }
      options.settings_.push_back(std::move(setting));
    }
    return options;
  }

  const OptionTable& table_;
  const OptionInputs& inputs_;
  po::options_description description_;
  po::variables_map values_;
  std::vector<Given> source_;               // what the source at hand says
  std::map<const Option*, Given> settled_;  // what decided, for each option that was given
  std::vector<std::string> problems_;
};

Result<Options> ParseOptions(const OptionTable& table, const OptionInputs& inputs) {
  try {
    return OptionParser(table, inputs).Parse();
  } catch (const std::exception& exception) {
    return Error{Code::kForeign, std::string("reading the options: ") + exception.what()};
  }
}

Result<Options> ParseOptions(OptionTable& table, const OptionInputs& inputs,
                             const std::vector<std::string>& defaults, const std::string& whose) {
  CommandLine line = ReadCommandLine(table, defaults);
  for (const auto& [option, text] : line.given) {
    const Status set = table.SetDefault(option->name, text);
    if (set.ok()) continue;
    line.problems.push_back("option '--" + option->name + "' (default of " + whose + "): " +
                            set.error().message);
  }
  if (!line.problems.empty()) return Error{Code::kInvalid, JoinedProblems(line.problems)};
  KEEL_TRY_ASSIGN(Options options, ParseOptions(std::as_const(table), inputs));
  for (const auto& [option, text] : line.given) {
    KEEL_TRY(options.SetDefault(option->name, text, whose));
  }
  return options;
}

}  // namespace keel
