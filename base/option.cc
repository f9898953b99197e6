// Declares one option, checks the texts given for it and turns them into typed values.
#include "base/option.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/nearest.h"
#include "base/text.h"

namespace keel {
namespace {

Option Make(OptionType type, std::string name, std::string preset, std::string help,
            const char* placeholder) {
  Option option;
  option.type = type;
  option.name = std::move(name);
  option.default_text = std::move(preset);
  option.help = std::move(help);
  option.placeholder = placeholder;
  return option;
}

// A bound, in the words of the option's type.
std::string BoundText(const Option& option, int64_t bound) {
  if (option.type == OptionType::kBytes) return BytesText(static_cast<uint64_t>(bound));
  if (option.type == OptionType::kDuration) return DurationText(Duration(bound));
  return std::to_string(bound);
}

std::string RangeText(const Option& option) {
  if (option.least_real) {
    return " from " + NumberText(*option.least_real) + " to " + NumberText(*option.most_real);
  }
  if (option.least && option.most) {
    return " from " + BoundText(option, *option.least) + " to " + BoundText(option, *option.most);
  }
  return option.least ? " of at least " + BoundText(option, *option.least) : std::string();
}

bool InRange(const Option& option, int64_t value) {
  return (!option.least || value >= *option.least) && (!option.most || value <= *option.most);
}

Error MustBe(const Option& option, std::string_view text) {
  std::string message = Shown(text) + " must be " + AllowedText(option);
  if (option.type == OptionType::kChoice) message += DidYouMean(text, option.choices);
  return {Code::kInvalid, std::move(message)};
}

// The value if it was readable and `good`, else what it must be.
template <class T, class Good>
Result<OptionValue> Checked(const Option& option, std::string_view text, const Result<T>& value,
                            Good good) {
  if (!value.ok() || !good(*value)) return MustBe(option, text);
  return OptionValue(*value);
}

// In the largest unit that it is a whole number of: exact, where DurationText() rounds.
std::string WholeUnits(Duration time) {
  constexpr std::pair<int64_t, const char*> kUnits[] = {
      {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}};
  for (const auto& [unit, name] : kUnits) {
    if (time.count() % unit == 0) return std::to_string(time.count() / unit) + name;
  }
  return "";
}

}  // namespace

Option Option::Flag(std::string name, bool preset, std::string help) {
  return Make(OptionType::kFlag, std::move(name), preset ? "true" : "false", std::move(help), "");
}
Option Option::Integer(std::string name, int64_t preset, std::string help) {
  return Make(OptionType::kInteger, std::move(name), std::to_string(preset), std::move(help), "N");
}
Option Option::Real(std::string name, double preset, std::string help) {
  return Make(OptionType::kReal, std::move(name), NumberText(preset), std::move(help), "X");
}
Option Option::Bytes(std::string name, std::string preset, std::string help) {
  return Make(OptionType::kBytes, std::move(name), std::move(preset), std::move(help), "SIZE");
}
Option Option::Time(std::string name, std::string preset, std::string help) {
  return Make(OptionType::kDuration, std::move(name), std::move(preset), std::move(help), "TIME");
}
Option Option::Text(std::string name, std::string preset, std::string help) {
  return Make(OptionType::kText, std::move(name), std::move(preset), std::move(help), "TEXT");
}
Option Option::Choice(std::string name, std::vector<std::string> choices, std::string preset,
                      std::string help) {
  Option option =
      Make(OptionType::kChoice, std::move(name), std::move(preset), std::move(help), "");
  for (const std::string& choice : choices) {
    option.placeholder += (option.placeholder.empty() ? "" : "|") + choice;
  }
  option.choices = std::move(choices);
  return option;
}
Option Option::List(std::string name, std::string preset, std::string help) {
  return Make(OptionType::kList, std::move(name), std::move(preset), std::move(help), "A,B");
}

Option& Option::Range(int64_t smallest, int64_t largest) {
  KEEL_CHECK(type == OptionType::kInteger || type == OptionType::kBytes, name);
  KEEL_CHECK(smallest <= largest, name);
  least = smallest;
  most = largest;
  return *this;
}
Option& Option::AtLeast(int64_t smallest) {
  KEEL_CHECK(type == OptionType::kInteger || type == OptionType::kBytes, name);
  least = smallest;
  return *this;
}
Option& Option::Range(Duration smallest, Duration largest) {
  KEEL_CHECK(type == OptionType::kDuration && smallest <= largest, name);
  least = smallest.count();
  most = largest.count();
  return *this;
}
Option& Option::RealRange(double smallest, double largest) {
  KEEL_CHECK(type == OptionType::kReal && smallest <= largest, name);
  least_real = smallest;
  most_real = largest;
  return *this;
}
Option& Option::Env(std::string variable) {
  environment.push_back(std::move(variable));
  return *this;
}
Option& Option::Alias(std::string other_name) {
  aliases.push_back(std::move(other_name));
  return *this;
}
Option& Option::Short(char letter) {
  short_name = letter;
  return *this;
}
Option& Option::Placeholder(std::string word) {
  placeholder = std::move(word);
  return *this;
}
Option& Option::Optional() {
  default_text.reset();
  return *this;
}
Option& Option::Required() {
  default_text.reset();
  required = true;
  return *this;
}
Option& Option::CommandLineOnly() {
  command_line_only = true;
  return *this;
}
Option& Option::Incidental() {
  incidental = true;
  return *this;
}

std::string AllowedText(const Option& option) {
  switch (option.type) {
    case OptionType::kFlag: return "true or false";
    case OptionType::kInteger: return "a whole number" + RangeText(option);
    case OptionType::kReal: return "a number" + RangeText(option);
    case OptionType::kBytes: return "a size such as 512KiB or 2GiB" + RangeText(option);
    case OptionType::kDuration:
      return "a duration such as 250ms, 10s or 3min" + RangeText(option);
    case OptionType::kText: return "text";
    case OptionType::kChoice: return "one of: " + JoinList(option.choices, ", ");
    case OptionType::kList: return "a list separated by commas";
  }
  return "text";
}

Result<OptionValue> ReadOption(const Option& option, const std::vector<std::string>& texts) {
  KEEL_CHECK(!texts.empty(), option.name);
  const std::string& text = texts.back();
  const auto any = [](const auto&) { return true; };
  switch (option.type) {
    case OptionType::kFlag: return Checked(option, text, ParseBool(text), any);
    case OptionType::kInteger:
      return Checked(option, text, ParseInteger(text),
                     [&](int64_t value) { return InRange(option, value); });
    case OptionType::kReal:
      return Checked(option, text, ParseNumber(text), [&](double value) {
        return !option.least_real || (value >= *option.least_real && value <= *option.most_real);
      });
    case OptionType::kBytes:
      return Checked(option, text, ParseBytes(text), [&](uint64_t value) {
        return InRange(option, static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
      });
    case OptionType::kDuration:
      return Checked(option, text, ParseDuration(text),
                     [&](Duration value) { return InRange(option, value.count()); });
    case OptionType::kText: return OptionValue(text);
    case OptionType::kChoice:
      if (std::count(option.choices.begin(), option.choices.end(), text) == 0) {
        return MustBe(option, text);
      }
      return OptionValue(text);
    case OptionType::kList: break;
  }
  std::vector<std::string> list;
  for (const std::string& part : texts) {
    for (std::string& item : SplitList(part)) list.push_back(std::move(item));
  }
  return OptionValue(std::move(list));
}

std::string ValueText(const OptionValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return NumberText(*number);
  if (const auto* bytes = std::get_if<uint64_t>(&value)) return std::to_string(*bytes);
  if (const auto* time = std::get_if<Duration>(&value)) return WholeUnits(*time);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return JoinList(*list);
  return "";
}

std::string CanonicalName(std::string_view name) {
  std::string canonical(name);
  std::replace(canonical.begin(), canonical.end(), '_', '-');
  return canonical;
}

}  // namespace keel
