// Parses the texts of torchrun's options that hold more than one value, by its rules.
// Promises   pure; an error names what is refused, and the form that is expected.
// Threads    any. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

// Practically never; several of them still add up to a representable time.
inline constexpr Duration kLongestWait = std::chrono::hours(24 * 365 * 10);

struct HostRange {
  int least = 1;
  int most = 1;
  bool operator==(const HostRange&) const = default;
};
// "2:20", or "4" for "4:4".
Result<HostRange> ParseHostRange(const std::string& text);

// "join_timeout=60,is_host=1", in that order; blanks around the words are dropped.
using KeyValues = std::vector<std::pair<std::string, std::string>>;
Result<KeyValues> ParseKeyValues(const std::string& text);

// "7s": above zero, and not beyond kLongestWait. `name` is for the message.
Result<Duration> ParseWait(const std::string& name, const std::string& text);

// "auto", "cpu", "gpu" or a number, for a host that has so many.
Result<int> ParseWorkerCount(const std::string& text, int cpus, int gpus);

// "0,2": local ranks.
Result<std::set<int>> ParseLocalRanks(const std::string& text);

// "SIGTERM,SIGINT": their numbers, in that order; each must be usable as a wish to stop. What is no
// signal's name is ignored, as torchrun does.
struct HandledSignals {
  std::vector<int> numbers;
  std::vector<std::string> ignored;   // why, in words, for each
};
Result<HandledSignals> ParseSignals(const std::string& text);

// "apple,orange"; a doubled comma stands for a comma in a word.
std::vector<std::string> ParseFilters(const std::string& text);

}  // namespace keel
