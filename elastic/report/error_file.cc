// As tolerant as Python's readers: a timestamp may be a number or a text, or missing.
#include "elastic/report/error_file.h"

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr uint64_t kErrorFileBytesMax = 16 << 20;

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
