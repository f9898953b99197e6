// The log: one line an event.
//   2026-11-21T08:30:00.123Z info worker-died rank=3 reason="signal 9" job=bert
//   {"time":"2026-11-21T08:30:00.123Z","level":"info","event":"worker-died","rank":3,...}
// Promises   a line stays one line and can be parsed back, whatever the values hold (QuoteForLog in
//            base/text.h); it leaves in one write(), so lines of several processes do not mix.
//            Logging neither throws nor kills nor changes errno: a closed stderr or a full disk
//            costs the line, which LogLinesLost() counts. Nothing is buffered, and the lock is held
//            across fork(): a child neither repeats its parent's lines nor finds the log locked.
// Does not   rotate files; notice that descriptor 2 was closed and then given to another file.
// Threads    any; not from signal handlers, nor from within a callback given to LogToCallback().
// At first: info, text, to stderr.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

enum class LogLevel { kDebug, kInfo, kWarn, kError };
enum class LogFormat { kText, kJson };

// A field's value, borrowed for the length of the call.
class LogValue {
 public:
  using Held = std::variant<int64_t, uint64_t, double, bool, std::string_view>;

  template <std::same_as<bool> T>
  LogValue(T value) : held_(value) {}
  template <std::signed_integral T>
  LogValue(T value) : held_(static_cast<int64_t>(value)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  LogValue(T value) : held_(static_cast<uint64_t>(value)) {}
  LogValue(double value) : held_(value) {}
  LogValue(const char* text) : held_(std::string_view(text == nullptr ? "(null)" : text)) {}
  LogValue(std::string_view text) : held_(text) {}
  LogValue(const std::string& text) : held_(std::string_view(text)) {}

  const Held& held() const { return held_; }

 private:
  Held held_;
};

struct LogField {
  std::string_view name;
  LogValue value;
};
using LogFields = std::initializer_list<LogField>;

// LogInfo("worker-died", {{"rank", 3}, {"reason", text}}). Names of events and fields are words
// without blanks; other characters in them become '-'. A field called time, level or event, or like
// an earlier one, gets a '_' behind its name.
void LogDebug(std::string_view event, LogFields fields = {}) noexcept;
void LogInfo(std::string_view event, LogFields fields = {}) noexcept;
void LogWarn(std::string_view event, LogFields fields = {}) noexcept;
void LogError(std::string_view event, LogFields fields = {}) noexcept;
void Log(LogLevel level, std::string_view event, std::span<const LogField> fields) noexcept;

void SetLogLevel(LogLevel level);
void SetLogFormat(LogFormat format);
// "debug", "info", "warn", "error"; "text", "json".
Result<LogLevel> ParseLogLevel(std::string_view name);
Result<LogFormat> ParseLogFormat(std::string_view name);

// Where lines go. Levels are coloured where text goes to a terminal on stderr.
void LogToStderr();
// Each line, with its line feed, one at a time.
void LogToCallback(std::function<void(std::string_view line)> callback);
// The clock that stamps the lines, which must live on.
void SetLogClock(Clock& clock);

// Lines that could not be written, or not whole, since the process started.
uint64_t LogLinesLost();

}  // namespace keel
