// Renders events as lines and hands them, through spdlog, to where they go.
#include "base/log.h"

#include <pthread.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log_line.h"
#include "base/log_output.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"debug", "info", "warn", "error"};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view LevelName(spdlog::level::level_enum level) {
  return kLevelNames[std::clamp<int>(level - spdlog::level::debug, 0, kLevelNames.size() - 1)];
}

std::string_view LevelColour(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return "\x1b[31m";
  if (level == spdlog::level::warn) return "\x1b[33m";
  return level == spdlog::level::info ? "\x1b[32m" : "\x1b[2m";
}

// Our names of the levels, which are shorter than spdlog's.
class LevelFlag : public spdlog::custom_flag_formatter {
 public:
  explicit LevelFlag(bool coloured) : coloured_(coloured) {}

  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    const auto add = [&](std::string_view text) {
      line.append(text.data(), text.data() + text.size());
    };
    if (coloured_) add(LevelColour(message.level));
    add(LevelName(message.level));
    if (coloured_) add("\x1b[0m");
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<LevelFlag>(coloured_);
  }

 private:
  const bool coloured_;
};

// Puts time and level in front of what Log() has rendered: "2026-11-21T08:30:00.123Z info ...".
std::unique_ptr<spdlog::formatter> MakeFormatter(LogFormat format, bool coloured) {
  auto formatter =
      std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc, "\n");
  formatter->add_flag<LevelFlag>('*', coloured).set_pattern(
      format == LogFormat::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%*",%v)"
                                 : "%Y-%m-%dT%H:%M:%S.%eZ %* %v");
  return formatter;
}

using WriteLine = std::function<void(std::string_view)>;

// Not locked by itself: State's mutex covers more than the sink.
class LineSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  void Use(WriteLine write) { write_ = std::move(write); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_(std::string_view(line.data(), line.size()));
  }
  void flush_() override {}

 private:
  WriteLine write_;
};

// All there is, under one lock. Lives until the process ends, since destructors log, too.
class State {
 public:
  State() : sink_(std::make_shared<LineSink>()), logger_("keel", sink_) {
    logger_.set_error_handler([this](const std::string&) { ++lost_; });
    logger_.set_level(spdlog::level::info);
    UseStderr();
    pthread_atfork([] { The().mutex_.lock(); }, [] { The().mutex_.unlock(); },
                   [] { The().mutex_.unlock(); });
  }

  static State& The() {
    static State* const state = new State;
    return *state;
  }

  bool Enabled(LogLevel level) const { return logger_.should_log(SpdlogLevel(level)); }
  void SetLevel(LogLevel level) { logger_.set_level(SpdlogLevel(level)); }
  uint64_t lost() const { return lost_; }

  void Write(LogLevel level, std::string_view event, std::span<const LogField> fields) {
    std::lock_guard lock(mutex_);
    const std::string line = LogPayload(format_, event, NamedLogValues(fields));
    using Time = spdlog::log_clock::time_point;
    const Duration since_1970(clock_->WallNanos());
    logger_.log(Time(std::chrono::duration_cast<Time::duration>(since_1970)), {},
                SpdlogLevel(level), spdlog::string_view_t(line));
  }

  void SetFormat(LogFormat format) {
    std::lock_guard lock(mutex_);
    format_ = format;
    Reformat();
  }
  void SetClock(Clock& clock) {
    std::lock_guard lock(mutex_);
    clock_ = &clock;
  }
  void UseStderr() {
    const auto output = std::make_shared<LogDescriptor>(STDERR_FILENO, lost_);
    Use([output](std::string_view line) { output->Write(line); }, isatty(STDERR_FILENO) == 1);
  }
  void Use(WriteLine write, bool terminal) {
    std::lock_guard lock(mutex_);
    sink_->Use(std::move(write));
    terminal_ = terminal;
    Reformat();
  }

 private:
  void Reformat() {
    const bool coloured = terminal_ && format_ == LogFormat::kText;
    sink_->set_formatter(MakeFormatter(format_, coloured));
  }

  std::mutex mutex_;
  std::atomic<uint64_t> lost_{0};
  Clock* clock_ = &RealClock();
  LogFormat format_ = LogFormat::kText;
  bool terminal_ = false;
  std::shared_ptr<LineSink> sink_;
  spdlog::logger logger_;
};

}  // namespace

void Log(LogLevel level, std::string_view event, std::span<const LogField> fields) noexcept {
  const int errno_before = errno;
  try {
    State& state = State::The();
    if (state.Enabled(level)) state.Write(level, event, fields);
  } catch (...) {
    // Out of memory, or a callback that throws: a lost line must not become a lost process.
  }
  errno = errno_before;
}

void LogDebug(std::string_view event, LogFields fields) noexcept {
  Log(LogLevel::kDebug, event, {fields.begin(), fields.size()});
}
void LogInfo(std::string_view event, LogFields fields) noexcept {
  Log(LogLevel::kInfo, event, {fields.begin(), fields.size()});
}
void LogWarn(std::string_view event, LogFields fields) noexcept {
  Log(LogLevel::kWarn, event, {fields.begin(), fields.size()});
}
void LogError(std::string_view event, LogFields fields) noexcept {
  Log(LogLevel::kError, event, {fields.begin(), fields.size()});
}

void SetLogLevel(LogLevel level) { State::The().SetLevel(level); }
void SetLogFormat(LogFormat format) { State::The().SetFormat(format); }
void SetLogClock(Clock& clock) { State::The().SetClock(clock); }
uint64_t LogLinesLost() { return State::The().lost(); }

Result<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return Error{Code::kInvalid, Shown(name) + " is not a log level: use debug, info, warn or error"};
}

Result<LogFormat> ParseLogFormat(std::string_view name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  return Error{Code::kInvalid, Shown(name) + " is not a log format: use text or json"};
}

void LogToStderr() { State::The().UseStderr(); }

void LogToCallback(std::function<void(std::string_view line)> callback) {
  State::The().Use(std::move(callback), false);
}

}  // namespace keel
