// How numbers, sizes and durations are read and written, and how foreign text is made harmless.
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

namespace keel {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr uint64_t kKilo = 1000, kKibi = 1024;
constexpr std::array kByteUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKibi},
    Unit{"kib", kKibi},
    Unit{"kb", kKilo},
    Unit{"m", kKibi * kKibi},
    Unit{"mib", kKibi * kKibi},
    Unit{"mb", kKilo * kKilo},
    Unit{"g", kKibi * kKibi * kKibi},
    Unit{"gib", kKibi * kKibi * kKibi},
    Unit{"gb", kKilo * kKilo * kKilo},
    Unit{"t", kKibi * kKibi * kKibi * kKibi},
    Unit{"tib", kKibi * kKibi * kKibi * kKibi},
    Unit{"tb", kKilo * kKilo * kKilo * kKilo},
};

constexpr uint64_t kSecond = 1'000'000'000;
constexpr std::array kTimeUnits = {
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", kSecond},
    Unit{"m", 60 * kSecond},
    Unit{"min", 60 * kSecond},
    Unit{"h", 3600 * kSecond},
    Unit{"d", 24 * 3600 * kSecond},
};

constexpr size_t kShownMax = 80;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), Lower);
  return lowered;
}

template <size_t n>
std::optional<uint64_t> FactorOf(const std::array<Unit, n>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

// "1.5 GiB": whole 1, fraction 0.5, unit "gib".
struct Amount {
  uint64_t whole = 0;
  double fraction = 0;
  std::string unit;
};

size_t DigitsAtFront(std::string_view text) {
  return std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin();
}

std::string_view TakeFront(std::string_view& text, size_t count) {
  const std::string_view front = text.substr(0, count);
  text.remove_prefix(count);
  return front;
}

// Takes one amount off the front of `text`, with the blanks around its unit.
std::optional<Amount> TakeAmount(std::string_view& text) {
  Amount amount;
  const std::string_view whole = TakeFront(text, DigitsAtFront(text));
  const char* whole_end = whole.data() + whole.size();
  if (std::from_chars(whole.data(), whole_end, amount.whole).ec != std::errc()) return std::nullopt;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string digits = "0." + std::string(TakeFront(text, DigitsAtFront(text)));
    if (digits.size() == 2) return std::nullopt;
    std::from_chars(digits.data(), digits.data() + digits.size(), amount.fraction);
  }
  text = Trim(text);
  const auto is_letter = [](char c) { return Lower(c) >= 'a' && Lower(c) <= 'z'; };
  const auto unit_end = std::find_if_not(text.begin(), text.end(), is_letter);
  amount.unit = Lowered(TakeFront(text, unit_end - text.begin()));
  text = Trim(text);
  return amount;
}

// whole and fraction times factor, or nothing when that exceeds `max`.
std::optional<uint64_t> Scaled(const Amount& amount, uint64_t factor, uint64_t max) {
  if (amount.whole > max / factor) return std::nullopt;
  const uint64_t whole = amount.whole * factor;
  const auto part = static_cast<uint64_t>(std::llround(amount.fraction * double(factor)));
  if (part > max - whole) return std::nullopt;
  return whole + part;
}

// Decodes the UTF-8 character at the front; its length, or 0 when the bytes are no UTF-8.
size_t DecodeUtf8(std::string_view text, uint32_t& point) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3
                        : lead >> 3 == 30 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  point = length == 1 ? lead : lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    point = point << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < kSmallest[length] || surrogate || point > 0x10ffff ? 0 : length;
}

// Control characters, line and paragraph separators, and what turns a terminal's writing around.
bool IsUnprintable(uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

// Length of the harmless character at the front, 0 when there is none.
size_t PrintableLength(std::string_view text) {
  uint32_t point = 0;
  const size_t length = DecodeUtf8(text, point);
  return length == 0 || IsUnprintable(point) ? 0 : length;
}

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  std::array<char, 8> hex{};
  std::snprintf(hex.data(), hex.size(), "\\x%02x", static_cast<unsigned char>(c));
  out += hex.data();
}

template <class... How>
std::string Written(double number, How... how) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Inf" : "-Inf";
  std::array<char, 400> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, how...);
  return {text.data(), end.ptr};
}

}  // namespace

Result<int64_t> ParseInteger(std::string_view text) {
  int64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec == std::errc::result_out_of_range) {
    return Error{Code::kInvalid, Shown(text) + " does not fit 64 bits"};
  }
  if (ec != std::errc() || end != text.data() + text.size()) {
    return Error{Code::kInvalid, Shown(text) + " is not a whole number"};
  }
  return number;
}

Result<double> ParseNumber(std::string_view text) {
  double number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec == std::errc::result_out_of_range) {
    return Error{Code::kInvalid, Shown(text) + " is too large or too small a number"};
  }
  if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return Error{Code::kInvalid, Shown(text) + " is not a finite number"};
  }
  return number;
}

Result<bool> ParseBool(std::string_view text) {
  const std::string word = Lowered(text);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return Error{Code::kInvalid, Shown(text) + " is neither true nor false"};
}

std::string NumberText(double number) {
  std::array<char, 40> text{};
  const auto [end, ec] = std::to_chars(text.data(), text.data() + text.size(), number);
  return ec == std::errc() ? std::string(text.data(), end) : std::string("?");
}

std::string BytesText(uint64_t bytes) {
  constexpr std::array<const char*, 7> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < kKibi) return std::to_string(bytes) + " B";
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.5 would be rounded to 1024, which the next unit says better.
  while (amount >= 1023.5 && unit + 1 < kNames.size()) {
    amount /= kKibi;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0,
                amount);
  std::string shown = text.data();
  if (shown.find('.') != std::string::npos) {
    shown.erase(shown.find_last_not_of('0') + 1);
    if (shown.ends_with('.')) shown.pop_back();
  }
  return shown + " " + kNames[unit];
}

Result<uint64_t> ParseBytes(std::string_view text) {
  std::string_view rest = Trim(text);
  const std::optional<Amount> amount = TakeAmount(rest);
  const std::optional<uint64_t> factor =
      amount && rest.empty() ? FactorOf(kByteUnits, amount->unit) : std::nullopt;
  if (!factor) return Error{Code::kInvalid, Shown(text) + " is not a size such as 512KiB or 2GiB"};
  const std::optional<uint64_t> bytes = Scaled(*amount, *factor, UINT64_MAX);
  if (!bytes) return Error{Code::kInvalid, Shown(text) + " does not fit 64 bits"};
  return *bytes;
}

Result<Duration> ParseDuration(std::string_view text) {
  const Error malformed{Code::kInvalid,
                        Shown(text) + " is not a duration such as 250ms, 10s or 3min"};
  std::string_view rest = Trim(text);
  uint64_t total = 0;
  for (bool first = true; first || !rest.empty(); first = false) {
    const std::optional<Amount> amount = TakeAmount(rest);
    if (!amount) return malformed;
    const bool bare = first && rest.empty() && amount->unit.empty();
    const std::optional<uint64_t> factor = bare ? kSecond : FactorOf(kTimeUnits, amount->unit);
    if (!factor) return malformed;
    const std::optional<uint64_t> part = Scaled(*amount, *factor, INT64_MAX - total);
    if (!part) return Error{Code::kInvalid, Shown(text) + " is longer than 292 years"};
    total += *part;
  }
  return Duration(static_cast<int64_t>(total));
}

std::string CountText(uint64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string> SplitList(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    const std::string_view part = Trim(text.substr(0, end));
    if (!part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string JoinList(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string QuoteForLog(std::string_view text) {
  std::string escaped;
  bool plain = !text.empty();
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    const char c = text.front();
    if (length == 0) AppendEscaped(escaped, c);
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += text.substr(0, length);
    if (length == 0 || c == '"' || c == '\\' || c == ' ' || c == '=') plain = false;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return plain ? escaped : '"' + escaped + '"';
}

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length == 0) AppendEscaped(printable, text.front());
    printable += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return printable;
}

std::string Shown(std::string_view text) {
  std::string shown = "'";
  while (!text.empty() && shown.size() < kShownMax) {
    const size_t length = PrintableLength(text);
    if (length == 0) AppendEscaped(shown, text.front());
    shown += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return shown + (text.empty() ? "'" : "...'");
}

Error MustBe(std::string_view text, std::string_view expected) {
  return {Code::kInvalid, Shown(text) + " must be " + std::string(expected)};
}

std::string FixedText(double number, int digits) {
  return Written(number, std::chars_format::fixed, digits);
}

std::string ShortText(double number) {
  constexpr int kDigits = 4;
  return Written(number, std::chars_format::general, kDigits);
}

std::string Beginning(std::string_view text, size_t bytes_max) {
  constexpr size_t kFollowersMax = 3;   // more of them are no character
  if (text.size() <= bytes_max) return std::string(text);
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, bytes_max - end <= kFollowersMax ? end : bytes_max));
}

std::string HexText(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

}  // namespace keel
