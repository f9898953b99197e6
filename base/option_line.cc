// Takes a command line apart into options and the rest.
#include "base/option_line.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace keel {
namespace {

struct Meaning {
  const Option* option;
  bool negated;
  bool operator==(const Meaning&) const = default;
};

bool LooksLikeOption(std::string_view argument) {
  return argument.size() > 1 && argument.front() == '-' && !ParseNumber(argument).ok();
}

bool CanBeNegated(const Option* option) {
  return option != nullptr && option->type == OptionType::kFlag && !option->command_line_only;
}

class LineReader {
 public:
  LineReader(const OptionTable& table, const std::vector<std::string>& arguments)
      : table_(table), arguments_(arguments) {}

  CommandLine Read() {
    while (at_ < arguments_.size() && !stopped_) {
      const std::string& argument = arguments_[at_++];
      if (argument == "--") {
        TakeRest();
      } else if (!LooksLikeOption(argument)) {
        ReadPositional(argument);
      } else if (argument[1] == '-') {
        ReadLong(argument);
      } else {
        ReadShort(argument);
      }
    }
    return std::move(line_);
  }

 private:
  void TakeRest() {
    for (; at_ < arguments_.size(); ++at_) AddPositional(arguments_[at_]);
  }

  void AddPositional(const std::string& argument) {
    if (table_.positionals() == Positionals::kNone) {
      line_.problems.push_back("unexpected argument " + Shown(argument));
    } else {
      line_.positionals.push_back(argument);
    }
  }

  // Python's argparse drops a "--" right behind the first word, unless one came before.
  void ReadPositional(const std::string& argument) {
    AddPositional(argument);
    if (table_.positionals() != Positionals::kRemainder) return;
    if (at_ < arguments_.size() && arguments_[at_] == "--") ++at_;
    TakeRest();
  }

  void ReadLong(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string shown = argument.substr(0, equals);
    const std::vector<Meaning> meanings = MeaningsOf(CanonicalName(shown.substr(2)));
    if (meanings.empty()) return Unknown(shown, CanonicalName(shown), equals == std::string::npos);
    if (meanings.size() > 1) return Ambiguous(shown, meanings);
    const auto [option, negated] = meanings.front();
    if (equals != std::string::npos) {
      if (negated) {
        line_.problems.push_back("option " + Shown(shown) + " takes no value");
        return;
      }
      return Give(option, argument.substr(equals + 1));
    }
    if (option->type == OptionType::kFlag) return Give(option, negated ? "false" : "true");
    GiveNext(option, shown);
  }

  // "-r3", "-r=3", "-r 3", or several flags: "-ab".
  void ReadShort(const std::string& argument) {
    for (size_t i = 1; i < argument.size(); ++i) {
      const std::string shown = {'-', argument[i]};
      const Option* const option = table_.FindShort(argument[i]);
      if (option == nullptr) {
        // "-steps" was probably meant to be "--steps".
        return i == 1 ? Unknown(argument, CanonicalName('-' + argument), false)
                      : Unknown(shown, shown, false);
      }
      std::string rest = argument.substr(i + 1);
      if (rest.starts_with('=')) return Give(option, rest.substr(1));
      if (option->type == OptionType::kFlag) {
        Give(option, "true");
      } else {
        return rest.empty() ? GiveNext(option, shown) : Give(option, std::move(rest));
      }
    }
  }

  // What a long name can mean: one thing if it is whole, else all that begins with it.
  std::vector<Meaning> MeaningsOf(const std::string& name) const {
    if (name.empty()) return {};
    if (const Option* const option = table_.Find(name)) return {{option, false}};
    const bool negated = name.starts_with("no-");
    const std::string positive = negated ? name.substr(3) : std::string();
    const Option* const option = table_.Find(positive);
    if (CanBeNegated(option)) return {{option, true}};
    std::vector<Meaning> meanings;
    const auto add = [&](Meaning meaning) {
      if (std::count(meanings.begin(), meanings.end(), meaning) == 0) meanings.push_back(meaning);
    };
    for (const std::string& full : table_.NamesFrom(name)) add({table_.Find(full), false});
    if (positive.empty()) return meanings;
    for (const std::string& full : table_.NamesFrom(positive)) {
      if (CanBeNegated(table_.Find(full))) add({table_.Find(full), true});
    }
    return meanings;
  }

  void Unknown(const std::string& shown, const std::string& canonical, bool value_may_follow) {
    std::vector<std::string> names;
    for (const Option& option : table_.options()) {
      names.push_back("--" + option.name);
      if (CanBeNegated(&option)) names.push_back("--no-" + option.name);
    }
    // Behind all names: of two that are equally near the name is offered.
    for (const Option& option : table_.options()) {
      for (const std::string& alias : option.aliases) names.push_back("--" + alias);
    }
    line_.problems.push_back("unknown option " + Shown(shown) + DidYouMean(canonical, names));
    // What follows may be its value, so that calling it a positional would be a second complaint
    // about one mistake; whether the options end there cannot be known.
    if (!value_may_follow || at_ == arguments_.size() || LooksLikeOption(arguments_[at_])) return;
    if (table_.positionals() == Positionals::kRemainder) stopped_ = true;
    ++at_;
  }

  void Ambiguous(const std::string& shown, const std::vector<Meaning>& meanings) {
    std::string names;
    for (const auto& [option, negated] : meanings) {
      names += (names.empty() ? "'--" : ", '--") + (negated ? "no-" + option->name : option->name);
      names += "'";
    }
    line_.problems.push_back("option " + Shown(shown) + " could be any of " + names);
  }

  void GiveNext(const Option* option, const std::string& shown) {
    const bool at_end = at_ == arguments_.size();
    if (!at_end && !LooksLikeOption(arguments_[at_])) return Give(option, arguments_[at_++]);
    std::string problem =
        "option " + Shown(shown) + " needs a value: " + AllowedText(*option);
    if (!at_end) {
      problem += " (if it is " + Shown(arguments_[at_]) + ", write " +
                 Shown("--" + option->name + "=" + arguments_[at_]) + ")";
    }
    line_.problems.push_back(std::move(problem));
  }

  void Give(const Option* option, std::string text) {
    if (option->name == "help") line_.help = true;
    line_.given.push_back({option, std::move(text)});
  }

  const OptionTable& table_;
  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
  bool stopped_ = false;
  CommandLine line_;
};

}  // namespace

CommandLine ReadCommandLine(const OptionTable& table, const std::vector<std::string>& arguments) {
  return LineReader(table, arguments).Read();
}

}  // namespace keel
