// Reads back what base/log_line.cc writes.
#include "tools/keel/log_words.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kStampBytes = 24;        // with milliseconds
constexpr size_t kShortStampBytes = 20;
constexpr size_t kCopyMarkMost = 80;
constexpr std::string_view kMarkOfTorch = "rank";   // in its warnings and tracebacks
constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

bool IsLevel(std::string_view word) {
  constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};
  return std::find(kLevels.begin(), kLevels.end(), word) != kLevels.end();
}

// The digits at that place as a number; -1 where another character is among them.
int Digits(std::string_view text, size_t at, size_t count) {
  int number = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

std::string_view TakeWord(std::string_view* text) {
  const std::string_view word = text->substr(0, text->find(' '));
  text->remove_prefix(std::min(text->size(), word.size() + 1));
  return word;
}

char Unescaped(std::string_view* text) {
  const char c = text->front();
  text->remove_prefix(1);
  if (c == 'n') return '\n';
  if (c == 'r') return '\r';
  if (c == 't') return '\t';
  if (c != 'x' || text->size() < 2) return c;
  unsigned value = 0;
  for (const char digit : text->substr(0, 2)) {
    const size_t place = std::string_view("0123456789abcdef").find(
        static_cast<char>(digit >= 'A' && digit <= 'F' ? digit - 'A' + 'a' : digit));
    value = value * 16 + static_cast<unsigned>(place == std::string_view::npos ? 0 : place);
  }
  text->remove_prefix(2);
  return static_cast<char>(value);
}

// A value as QuoteForLog() writes it, with the blank behind it.
std::string TakeValue(std::string_view* text, bool* is_quoted) {
  *is_quoted = !text->empty() && text->front() == '"';
  if (!*is_quoted) return std::string(TakeWord(text));
  text->remove_prefix(1);
  std::string value;
  while (!text->empty() && text->front() != '"') {
    const char c = text->front();
    text->remove_prefix(1);
    value += c == '\\' && !text->empty() ? Unescaped(text) : c;
  }
  text->remove_prefix(std::min<size_t>(text->size(), 2));
  return value;
}

Json TypedValue(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto whole = ParseInteger(text); whole.ok()) return *whole;
  if (const auto number = ParseNumber(text); number.ok()) return *number;
  return text;
}

Json TextFields(std::string_view text) {
  Json fields = Json::object();
  while (!text.empty()) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || text.substr(0, equals).find(' ') != text.npos) break;
    const std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    bool is_quoted = false;
    const std::string value = TakeValue(&text, &is_quoted);
    fields[name] = is_quoted ? Json(value) : TypedValue(value);
  }
  return fields;
}

std::string FieldText(const Json& value) {
  if (value.is_string()) return QuoteForLog(value.get<std::string>());
  if (value.is_number_float()) return NumberText(value.get<double>());
  return DumpJson(value);
}

// An object within becomes fields of its own: {"ms": {"data": 1}} is data_ms=1.
void AddField(const std::string& name, const Json& value, LogWords* words) {
  if (value.is_object()) {
    for (const auto& [inner, each] : value.items()) AddField(inner + "_" + name, each, words);
    return;
  }
  words->fields[name] = value;
  words->text += " " + name + "=" + FieldText(value);
}

bool ReadJsonLine(std::string_view line, LogWords* words) {
  if (line.empty() || line.front() != '{') return false;
  const auto json = ParseJson(line);
  if (!json.ok() || !json->is_object()) return false;
  const auto event = Field<std::string>(*json, "event");
  if (!event.ok() || event->empty()) return false;
  words->event = *event;
  const auto level = FieldOr<std::string>(*json, "level", "info");
  words->level = level.ok() && IsLevel(*level) ? *level : "info";
  words->text = words->level + " " + words->event;
  if (const auto time = Field<std::string>(*json, "time"); time.ok()) {
    words->nanos = ReadUtcStamp(*time);
  } else if (const auto nanos = Field<int64_t>(*json, "wall_ns"); nanos.ok() && *nanos >= 0) {
    words->nanos = *nanos;
  }
  for (const auto& [name, value] : json->items()) {
    if (name == "event" || name == "level" || name == "time" || name == "wall_ns") continue;
    AddField(name, value, words);
  }
  return true;
}

void ReadTextLine(std::string_view line, LogWords* words) {
  words->text = std::string(line);
  if (line.size() < kStampBytes + 2 || line[kStampBytes] != ' ') return;
  words->nanos = ReadUtcStamp(line.substr(0, kStampBytes));
  if (!words->nanos) return;
  std::string_view rest = line.substr(kStampBytes + 1);
  words->text = std::string(rest);
  const std::string_view level = TakeWord(&rest);
  if (!IsLevel(level)) return;
  words->level = std::string(level);
  words->event = std::string(TakeWord(&rest));
  words->fields = TextFields(rest);
}

// "[default0]:" in front of a line; empty: there is none.
std::string_view CopyMark(std::string_view line) {
  const size_t end = line.substr(0, kCopyMarkMost).find("]:");
  if (line.empty() || line.front() != '[' || end == std::string_view::npos) return {};
  const std::string_view mark = line.substr(1, end - 1);
  const size_t role_bytes = mark.find_last_not_of("0123456789") + 1;
  const bool is_copy = role_bytes < mark.size() && mark.substr(0, role_bytes) != kMarkOfTorch &&
                       mark.find_first_of(" []") == std::string_view::npos;
  return is_copy ? mark : std::string_view();
}

}  // namespace

std::optional<int64_t> ReadUtcStamp(std::string_view text) {
  const bool has_millis = text.size() == kStampBytes;
  if (!has_millis && text.size() != kShortStampBytes) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' ||
      text.back() != 'Z' || (has_millis && text[19] != '.')) {
    return std::nullopt;
  }
  const int year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const int hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  const int millis = has_millis ? Digits(text, 20, 3) : 0;
  if (year < 1970 || month < 0 || day < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 60 || millis < 0 || year > 2200) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
  return seconds * kNanosPerSecond + millis * kNanosPerMilli;
}

std::string UtcStamp(int64_t nanos) {
  std::string stamp = UtcText(nanos);   // "2026-11-21T08:30:00Z"
  const std::string millis = std::to_string(1000 + nanos % kNanosPerSecond / kNanosPerMilli);
  stamp.insert(stamp.size() - 1, "." + millis.substr(1));
  return stamp;
}

LogWords ReadLogWords(std::string_view line, bool may_be_copy) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  if (const size_t back = line.rfind('\r'); back != line.npos) line.remove_prefix(back + 1);
  LogWords words;
  const std::string_view mark = may_be_copy ? CopyMark(line) : std::string_view();
  if (!mark.empty()) {
    words.copy_of = std::string(mark);
    line.remove_prefix(mark.size() + 3);
  }
  if (!ReadJsonLine(line, &words)) ReadTextLine(line, &words);
  return words;
}

}  // namespace keel
