// LogWords: what one line of a log says: when, how grave, which event, with which facts.
// Promises   understands what base/log.h writes, as text and as JSON, what a training program
//            appends to --log-jsonl, and the mark in front of a line that keelrun has copied from
//            a worker ("[default0]:"; "[rank0]:" is PyTorch's own). Any other line is its own text,
//            without a time. Of a line that was overwritten by carriage returns it takes what a
//            terminal would show last.
// Does not   guess at times in other forms: their zone is not known.
// Threads    any; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace keel {

struct LogWords {
  std::optional<int64_t> nanos;    // since 1970; none: the line tells no time
  std::string level;               // empty: a line of another program, whole in `text`
  std::string event;
  Json fields = Json::object();    // of the event
  std::string copy_of;             // "default0": a line of a worker that keelrun has copied
  std::string text;                // the line without its time: "warn straggler step=460 ..."

  bool is_event() const { return !event.empty(); }
};

// `may_be_copy`: no in a worker's own file, where nothing is copied to.
LogWords ReadLogWords(std::string_view line, bool may_be_copy = true);

// "2026-11-21T08:30:00.123Z", or without the fraction, to nanoseconds since 1970.
std::optional<int64_t> ReadUtcStamp(std::string_view text);
// The form with milliseconds.
std::string UtcStamp(int64_t nanos);

}  // namespace keel
