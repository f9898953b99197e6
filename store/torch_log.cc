// LibTorch's text reaches stderr in two ways: its logger writes to std::cerr, its warnings call a
// handler.
#include "store/torch_log.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <iostream>
#include <optional>
#include <regex>
#include <streambuf>
#include <string>

#include "base/log.h"

namespace keel {
namespace {

struct TorchMessage {
  char severity = 'I';
  std::string place;  // "TCPStore.cpp:125"
  std::string text;   // its first line
};

// "[W1121 08:30:00.123456789 TCPStore.cpp:125] [c10d] words": the form of c10's logger.
std::optional<TorchMessage> Understand(const std::string& written) {
  static const std::regex form(R"(^\[([IWEF])[0-9 :.]*([A-Za-z_0-9]+\.\w+:[0-9]+)\] ([^\n]*))");
  std::smatch parts;
  if (!std::regex_search(written, parts, form)) return std::nullopt;
  return TorchMessage{parts[1].str()[0], parts[2].str(), parts[3].str()};
}

// c10d warns twice about each wait that reaches its limit, which to us is an answer like any other.
bool IsEverydayNoise(const TorchMessage& message) {
  return message.text.find("waitForInput") != std::string::npos;
}

void LogMessage(const TorchMessage& message) {
  const LogFields fields = {{"at", message.place}, {"says", message.text}};
  if (IsEverydayNoise(message)) return LogDebug("torch", fields);
  switch (message.severity) {
    case 'I': return LogInfo("torch", fields);
    case 'W': return LogWarn("torch", fields);
    default: return LogError("torch", fields);
  }
}

// c10's logger writes each message with one call. Anything else is passed on.
class TorchStream : public std::streambuf {
 public:
  explicit TorchStream(std::streambuf* original) : original_(original) {}

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    const std::string written(bytes, static_cast<size_t>(count));
    if (const std::optional<TorchMessage> message = Understand(written)) {
      LogMessage(*message);
      return count;
    }
    return original_->sputn(bytes, count);
  }
  int_type overflow(int_type character) override {
    return original_->sputc(traits_type::to_char_type(character));
  }
  int sync() override { return original_->pubsync(); }

 private:
  std::streambuf* const original_;
};

class TorchWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const std::string place = std::string(warning.source_location().file) + ":" +
                              std::to_string(warning.source_location().line);
    LogWarn("torch", {{"at", place}, {"says", warning.msg()}});
  }
};

}  // namespace

void RouteTorchLog() {
  static TorchWarnings* const warnings = new TorchWarnings();  // LibTorch keeps it until the end
  static TorchStream* const stream = [] {
    auto* made = new TorchStream(std::cerr.rdbuf());  // and std::cerr this one
    std::cerr.rdbuf(made);
    return made;
  }();
  (void)stream;
  c10::WarningUtils::set_warning_handler(warnings);
}

void OmitTorchStacks() {
  c10::SetStackTraceFetcher([] { return std::string(); });
}

}  // namespace keel
