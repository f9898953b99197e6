// How the fields of a log line are written, as text or as JSON.
// Promises   any name and value gives something that stays on its line and can be parsed back.
// Threads    any. For base/log.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace keel {

// A field under the name that the line will show. Borrows text from the call.
struct LogNamedValue {
  std::string name;
  LogValue::Held value;
};

// Makes the names fit for a line, and different from each other and from the line's own keys.
std::vector<LogNamedValue> NamedLogValues(std::span<const LogField> fields);

// What follows time and level: "worker-died rank=3", or "\"event\":\"worker-died\",\"rank\":3}".
std::string LogPayload(LogFormat format, std::string_view event,
                       const std::vector<LogNamedValue>& values);

}  // namespace keel
