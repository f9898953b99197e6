// Points in time as HTTP, AWS and JSON write them; all are UTC, in nanoseconds since 1970.
// Promises   reading takes what servers send; it gives nothing for any other text.
// Threads    any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace keel {

// "20130524T000000Z": of a signature.
std::string AmzDateText(int64_t wall_ns);
// "2026-11-25T10:00:00.123Z", with or without the fraction. Years after 2200 count as that one.
std::optional<int64_t> ParseIsoTime(std::string_view text);
// "Fri, 24 May 2013 00:00:00 GMT": of the headers Date and Last-Modified.
std::optional<int64_t> ParseHttpDate(const std::string& text);

}  // namespace keel
