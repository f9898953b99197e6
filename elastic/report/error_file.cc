// As tolerant as Python's readers: a timestamp may be a number or a text, or missing.
#include "elastic/report/error_file.h"

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr uint64_t kErrorFileBytesMax = 16 << 20;
// A traceback names the error in its last lines.
constexpr size_t kBeginningMax = 3072;
constexpr size_t kEndMax = 1024;

// At most so many bytes of it, without a part of a line where that costs no more than half.
std::string_view FrontOf(std::string_view text, size_t bytes_max) {
  const std::string_view front = text.substr(0, Beginning(text, bytes_max).size());
  const size_t line_end = front.rfind('\n');
  const bool has_line = line_end != std::string_view::npos && line_end >= bytes_max / 2;
  return has_line ? front.substr(0, line_end) : front;
}

std::string_view BackOf(std::string_view text, size_t bytes_max) {
  const size_t begin = text.size() - bytes_max;
  const size_t line_end = text.find('\n', begin);
  if (line_end < begin + bytes_max / 2) return text.substr(line_end + 1);
  const size_t whole = Beginning(text, begin).size();   // may lie within a character before it
  return text.substr(whole);
}

std::string TextOr(const Json& object, const char* name, std::string otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::optional<int64_t> TimeOf(const Json& object) {
  const auto found = object.find("timestamp");
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return static_cast<int64_t>(found->get<double>());
  if (!found->is_string()) return std::nullopt;
  const Result<int64_t> seconds = ParseInteger(found->get<std::string>());
  return seconds.ok() ? std::optional(*seconds) : std::nullopt;
}

Result<WorkerError> ReadError(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{Code::kInvalid, "expected a JSON object"};
  const auto message = json.find("message");
  if (message == json.end()) return Error{Code::kInvalid, "it has no 'message'"};
  WorkerError error;
  error.json = text;
  if (message->is_object()) {
    error.message = TextOr(*message, "message", "");
    const auto extra = message->find("extraInfo");
    if (extra == message->end() || !extra->is_object()) return error;
    error.traceback = TextOr(*extra, "py_callstack", "");
    error.time_s = TimeOf(*extra);
    return error;
  }
  if (!message->is_string()) {
    return Error{Code::kInvalid, "'message' is neither a string nor an object"};
  }
  error.message = message->get<std::string>();
  error.time_s = TimeOf(json);
  return error;
}

}  // namespace

Result<std::optional<WorkerError>> ReadErrorFile(Files& files, const std::string& path) {
  const Result<std::string> text = ReadWhole(files, path, kErrorFileBytesMax);
  if (!text.ok() && text.error().code == Code::kNotFound) return std::optional<WorkerError>();
  if (!text.ok()) return text.error();
  if (Trim(*text).empty()) return std::optional<WorkerError>();
  Result<WorkerError> error = ReadError(*text);
  if (error.ok()) return std::optional(*std::move(error));
  return Error{Code::kCorrupt, "the error file " + Shown(path) + ": " + error.error().message};
}

std::string BriefError(const std::string& text, const std::string& path) {
  if (text.size() <= kBeginningMax + kEndMax) return text;
  const std::string_view front = FrontOf(text, kBeginningMax);
  const std::string_view back = BackOf(text, kEndMax);
  const size_t left_out = text.size() - front.size() - back.size();
  return std::string(front) + "\n... " + BytesText(left_out) + " left out here; all of it is in " +
         Printable(path) + " ...\n" + std::string(back);
}

int PythonExitCode(const ExitStatus& status) {
  return status.kind == ExitStatus::Kind::kExited ? status.number : -status.number;
}

Status PassErrorOn(Files& files, const WorkerError& error, const ExitStatus& status,
                   const std::string& path) {
  KEEL_TRY_ASSIGN(Json json, ParseJson(error.json));
  Json& message = json["message"];
  if (message.is_object() && !status.ok()) message["errorCode"] = PythonExitCode(status);
  const Status wrote = WriteDurably(files, path, DumpJson(json));
  return wrote.ok() ? wrote : wrote.error().Doing("passing a worker's error on");
}

}  // namespace keel
