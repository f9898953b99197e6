// Writes the fields of a log line.
#include "base/log_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr std::array<std::string_view, 3> kReserved = {"time", "level", "event"};

std::string Word(std::string_view name) {
  std::string word(name);
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '-';
  };
  std::replace_if(word.begin(), word.end(), [&](char c) { return !allowed(c); }, '-');
  return word.empty() ? "-" : word;
}

std::string ValueText(const LogValue::Held& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<uint64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return NumberText(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return QuoteForLog(std::get<std::string_view>(value));
}

Json ValueJson(const LogValue::Held& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    // JSON has no NaN; a null would hide that there was one.
    return std::isfinite(*number) ? Json(*number) : Json(NumberText(*number));
  }
  return std::visit([](const auto& held) { return Json(held); }, value);
}

bool HasName(const std::vector<LogNamedValue>& values, std::string_view name) {
  return std::any_of(values.begin(), values.end(),
                     [&](const LogNamedValue& value) { return value.name == name; });
}

}  // namespace

std::vector<LogNamedValue> NamedLogValues(std::span<const LogField> fields) {
  std::vector<LogNamedValue> values;
  for (const LogField& field : fields) {
    std::string name = Word(field.name);
    while (std::count(kReserved.begin(), kReserved.end(), name) > 0 || HasName(values, name)) {
      name += '_';
    }
    values.push_back({std::move(name), field.value.held()});
  }
  return values;
}

std::string LogPayload(LogFormat format, std::string_view event,
                       const std::vector<LogNamedValue>& values) {
  if (format == LogFormat::kText) {
    std::string text = Word(event);
    for (const auto& [name, value] : values) text += " " + name + "=" + ValueText(value);
    return text;
  }
  Json object = {{"event", Word(event)}};
  for (const auto& [name, value] : values) object[name] = ValueJson(value);
  // Without the brace, which the formatter writes before time and level.
  return DumpJson(object).substr(1);
}

}  // namespace keel
