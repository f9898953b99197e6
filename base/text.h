// Numbers, sizes, durations and quoting as people write and read them.
// Promises   parsing takes the whole text or refuses it, naming it; nothing depends on the locale;
//            quoted text is one line, whatever bytes it came from.
// Does not   write durations (DurationText, base/clock.h).
// Threads    any. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

Result<int64_t> ParseInteger(std::string_view text);
// A finite number.
Result<double> ParseNumber(std::string_view text);
// true/false, yes/no, on/off, 1/0, in any case.
Result<bool> ParseBool(std::string_view text);

// The shortest text that reads back as the same number.
std::string NumberText(double number);

// With so many digits behind the point: "1.50".
std::string FixedText(double number, int digits);
// Four digits that count: "0.03125", "12.3", "4.5e-07"
std::string ShortText(double number);

// "512 B", "1.5 GiB": three digits at most.
std::string BytesText(uint64_t bytes);
// "4096", "512KiB", "1.5 GiB"; KiB and the bare letter K are 1024, kB is 1000. Case is ignored.
Result<uint64_t> ParseBytes(std::string_view text);

// "250ms", "10s", "1.5 h", "1h30min"; a bare number means seconds. Never negative.
Result<Duration> ParseDuration(std::string_view text);

// Two lower-case digits for each byte.
std::string HexText(std::string_view bytes);

// "1 host", "3 hosts".
std::string CountText(uint64_t count, const std::string& one);

std::string_view Trim(std::string_view text);
// At most so many bytes of the text, which does not end within a character of UTF-8.
std::string Beginning(std::string_view text, size_t bytes_max);
// "a, b,,c" gives a, b and c: blanks around a part and empty parts are dropped.
std::vector<std::string> SplitList(std::string_view text, char separator = ',');
// The parts with the separator between them, from the first one on that is not empty.
std::string JoinList(const std::vector<std::string>& parts, std::string_view separator = ",");

// A value of key=value: as it is where that is unmistakable, else in double quotes, where \" \\ \n
// \r \t and \xHH stand for what would break the line, confuse a terminal, or is no UTF-8.
std::string QuoteForLog(std::string_view text);
// For texts of others that are printed outside a log line: all that would break the line, confuse
// a terminal, or is no UTF-8, as \n \r \t and \xHH; all else as it is.
std::string Printable(std::string_view text);
// For messages: in single quotes, cut when long, without anything that would break the line.
std::string Shown(std::string_view text);
// kInvalid: "'7x' must be <expected>".
Error MustBe(std::string_view text, std::string_view expected);

}  // namespace keel
