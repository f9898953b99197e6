// Each message's type and fields, named once.
#include "elastic/protocol/control_link.h"

#include <limits>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr int64_t kNumberMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kWorldMax = 1 << 20;
constexpr int64_t kQuietMillisMax = int64_t{1000} * 3600 * 24 * 365;
constexpr int64_t kPortMax = 65535;
constexpr int64_t kPhaseMax = 1 << 30;
// Ten years of nanoseconds: all parts together still are a number.
constexpr int64_t kFigureNanosMax = int64_t{1'000'000'000} * 3600 * 24 * 365 * 10;

std::string TooLongText(const std::string& fingerprint) {
  return "a fingerprint of " + std::to_string(fingerprint.size()) + " bytes is longer than " +
         std::to_string(kFingerprintBytesMax) + ", the most that hosts tell each other";
}

constexpr Within kEpochs{1, kNumberMax};
constexpr Within kSteps{kNoStep, kNumberMax};
constexpr Within kCounts{0, kNumberMax};

// For people: at most so many bytes. Whoever wrote it need not have cut it.
struct CutTo {
  size_t bytes_max;
  Json Write(const std::string& text) const { return Beginning(text, bytes_max); }
  Status Read(const Json& object, const char* name, std::string& into) const {
    KEEL_TRY_ASSIGN(const std::string text, Field<std::string>(object, name));
    into = Beginning(text, bytes_max);
    return Ok();
  }
};
constexpr CutTo kWords{kControlTextMax};

// What is compared cannot be cut.
struct FingerprintText {
  static Json Write(const std::string& text) { return text; }
  static Status Read(const Json& object, const char* name, std::string& into) {
    KEEL_TRY_ASSIGN(into, Field<std::string>(object, name));
    if (into.size() <= kFingerprintBytesMax) return Ok();
    return Error{Code::kInvalid, TooLongText(into)};
  }
};

// Null is no number, and nothing.
struct NumberOrNull {
  static Json Write(const std::optional<double>& number) { return number ? Json(*number) : Json(); }
  static Status Read(const Json& object, const char* name, std::optional<double>& into) {
    into = std::nullopt;
    if (object.contains(name) && object[name].is_null()) return Ok();
    KEEL_TRY_ASSIGN(into, Field<double>(object, name));
    return Ok();
  }
};

// An object whose members have any names.
struct NanosOfParts {
  using Parts = std::vector<std::pair<std::string, int64_t>>;
  static Json Write(const Parts& parts) {
    Json json = Json::object();
    for (const auto& [name, nanos] : parts) json[name] = nanos;
    return json;
  }
  static Status Read(const Json& object, const char* name, Parts& into) {
    const auto refused = [&](const std::string& before, const char* after) {
      return Error{Code::kInvalid, before + "'" + name + "' " + after};
    };
    KEEL_TRY_ASSIGN(const Json* const parts, ObjectField(object, name));
    if (parts->size() > kFigurePartsMax) return refused("", "has too many members");
    for (const auto& [part, nanos] : parts->items()) {
      if (part.size() > kFigureNameMax) return refused("a name in ", "is too long");
    }
    for (const auto& [part, nanos] : parts->items()) {
      KEEL_TRY_ASSIGN(const int64_t count, FieldWithin(*parts, part, 0, kFigureNanosMax));
      into.emplace_back(part, count);
    }
    return Ok();
  }
};

}  // namespace

template <>
struct JsonFields<HelloMessage> {
  static constexpr const char* kType = "hello";
  static void Visit(auto& field, auto& m) {
    field("version", m.version, kCounts);
    // Another version's hello may look otherwise; its number is what it is refused for.
    if (field.kReads && m.version != kControlVersion) return;
    field("fingerprint", m.fingerprint, FingerprintText());
  }
};

template <>
struct JsonFields<ReadyMessage> {
  static constexpr const char* kType = "ready";
  static void Visit(auto& field, auto& m) { field("step", m.step, kSteps); }
};

template <>
struct JsonFields<ParkedMessage> {
  static constexpr const char* kType = "parked";
  static void Visit(auto& field, auto& m) {
    field("epoch", m.epoch, kEpochs);
    field("step", m.step, kSteps);
    field("at_boundary", m.at_boundary);
  }
};

template <>
struct JsonFields<AtMessage> {
  static constexpr const char* kType = "at";
  static void Visit(auto& field, auto& m) {
    auto& [place, waits_for] = m.activity;
    field("step", m.position.step, kSteps);
    field("phase", m.position.phase, Within{0, kPhaseMax});
    field.Optional("tick", m.position.tick != 0, m.position.tick, kCounts);
    field.Optional("place", !place.empty(), place, CutTo{kPlaceBytesMax});
    field.Optional("waits_for", waits_for != Activity::kUntold, waits_for,
                   Within{Activity::kAnybody, kWorldMax - 1});
    field.Optional("lacks", m.lacks, m.lacks);
  }
};

template <>
struct JsonFields<SavedMessage> {
  static constexpr const char* kType = "saved";
  static void Visit(auto& field, auto& m) { field("step", m.step, kCounts); }
};

template <>
struct JsonFields<LeavingMessage> {
  static constexpr const char* kType = "leaving";
  static void Visit(auto& field, auto& m) { field("step", m.step, kSteps); }
};

template <>
struct JsonFields<FiguresMessage> {
  static constexpr const char* kType = "figures";
  static void Visit(auto& field, auto& m) {
    field("step", m.step, kSteps);
    field("loss", m.loss, NumberOrNull());
    field("steps", m.steps, kCounts);
    field("samples", m.samples, kCounts);
    field("parts_ns", m.parts, NanosOfParts());
    field("evaluating_ns", m.evaluating_ns, Within{0, kFigureNanosMax});
    auto& [rechecks, differences, slow_steps] = m.checks;
    field.Optional("rechecks", rechecks != 0, rechecks, kCounts);
    field.Optional("differences", differences != 0, differences, kCounts);
    field.Optional("slow_steps", slow_steps != 0, slow_steps, kCounts);
  }
};

template <>
struct JsonFields<ByeMessage> {
  static constexpr const char* kType = "bye";
  static void Visit(auto& field, auto& m) {
    field("code", m.code, Within{0, 255});
    field("message", m.message, kWords);
  }
};

template <>
struct JsonFields<EpochMessage> {
  static constexpr const char* kType = "epoch";
  static void Visit(auto& field, auto& m) {
    field("epoch", m.epoch, kEpochs);
    field.Optional("first", m.first != 1, m.first, kEpochs);
    field.Here("rank");   // the world says how large it may be
    field("world", m.world, Within{1, kWorldMax});
    field("rank", m.rank, Within{0, m.world - 1});
    field("address", m.address);
    field("port", m.port, Within{0, kPortMax});
    field("prefix", m.prefix);
    field("reason", m.reason, kWords);
    field("members", m.members);
    field("inexact_allowed", m.inexact_allowed);
    field.Optional("own_address", true, m.own_address);
    field.Optional("own_host", !m.own_host.empty(), m.own_host);
    field.Optional("seal", !m.seal.empty(), m.seal);
    const size_t world = static_cast<size_t>(m.world);
    field.Expect(m.members.empty() || m.members.size() == world, [&] {
      return "'members' has " + std::to_string(m.members.size()) + " names for a world of " +
             std::to_string(world);
    });
  }
};

template <>
struct JsonFields<BreakMessage> {
  static constexpr const char* kType = "break";
  static void Visit(auto& field, auto& m) {
    field("epoch", m.epoch, kEpochs);
    field("reason", m.reason, kWords);
  }
};

template <>
struct JsonFields<JoinMessage> {
  static constexpr const char* kType = "join";
  static void Visit(auto& field, auto& m) { field("epoch", m.epoch, kEpochs); }
};

template <>
struct JsonFields<StopMessage> {
  static constexpr const char* kType = "stop";
  static void Visit(auto& field, auto& m) {
    field("reason", m.reason, kWords);
    field.Optional("deadline_ms", m.deadline_ms, kCounts);
  }
};

template <>
struct JsonFields<SaveMessage> {
  static constexpr const char* kType = "save";
  static void Visit(auto& field, auto& m) { field("reason", m.reason, kWords); }
};

template <>
struct JsonFields<RefusedMessage> {
  static constexpr const char* kType = "refused";
  static void Visit(auto& field, auto& m) { field("reason", m.reason, kWords); }
};

template <>
struct JsonFields<AliveMessage> {
  static constexpr const char* kType = "alive";
  static void Visit(auto& field, auto& m) {
    field("limit_ms", m.limit_ms, Within{1, kQuietMillisMax});
  }
};

namespace {

// Of the variant's types, the one that is called so; the last one stands for those we do not know.
template <class Message, size_t i = 0>
Result<Message> ReadMessage(const std::string& type, const Json& json) {
  using One = std::variant_alternative_t<i, Message>;
  if constexpr (std::is_same_v<One, UnknownMessage>) {
    return Message(UnknownMessage{type});
  } else {
    if (type != JsonFields<One>::kType) return ReadMessage<Message, i + 1>(type, json);
    One message;
    KEEL_TRY(ReadFields(json, message));
    return Message(std::move(message));
  }
}

template <class One>
std::string NameOf(const One&) { return JsonFields<One>::kType; }
std::string NameOf(const UnknownMessage& unknown) { return unknown.type; }

template <class Message>
std::string TypeOf(const Message& message) {
  return std::visit([](const auto& one) { return NameOf(one); }, message);
}

void WriteMembers(Json& json, const auto& message) { WriteFields(json, message); }
void WriteMembers(Json&, const UnknownMessage&) {}

template <class Message>
Result<Message> Parse(std::string_view line) {
  const auto garbage = [line](const std::string& why) {
    return Error{Code::kCorrupt, "no message of the control link: " + why + ": " + Shown(line)};
  };
  if (line.size() > kControlLineMax) {
    return garbage("longer than " + std::to_string(kControlLineMax) + " bytes");
  }
  const Result<Json> json = ParseJson(line);
  if (!json.ok()) return garbage(json.error().message);
  if (!json->is_object()) return garbage("expected a JSON object");
  const Result<std::string> type = Field<std::string>(*json, "type");
  if (!type.ok()) return garbage(type.error().message);
  Result<Message> message = ReadMessage<Message>(*type, *json);
  if (!message.ok()) return garbage(message.error().message);
  return message;
}

template <class Message>
Result<std::string> Encode(const Message& message) {
  if (std::holds_alternative<UnknownMessage>(message)) {
    return Error{Code::kInvalid, "a message of unknown type cannot be sent"};
  }
  Json json;
  json["type"] = TypeOf(message);
  std::visit([&](const auto& one) { WriteMembers(json, one); }, message);
  std::string line = DumpJson(json);
  if (line.size() > kControlLineMax && json.contains("members")) {
    json["members"] = Json::array();
    line = DumpJson(json);
  }
  if (line.size() > kControlLineMax) {
    return Error{Code::kInvalid, "a '" + MessageType(message) + "' message of " +
                                     std::to_string(line.size()) + " bytes is too long for the "
                                     "control link, which takes " +
                                     std::to_string(kControlLineMax)};
  }
  return line += '\n';
}

}  // namespace

Result<std::string> EncodeMessage(const WorkerMessage& message) {
  const auto* const hello = std::get_if<HelloMessage>(&message);
  if (hello != nullptr && hello->fingerprint.size() > kFingerprintBytesMax) {
    return Error{Code::kInvalid, "a 'hello' message: " + TooLongText(hello->fingerprint)};
  }
  return Encode(message);
}
Result<std::string> EncodeMessage(const SupervisorMessage& message) { return Encode(message); }

Result<WorkerMessage> ParseWorkerMessage(std::string_view line) {
  return Parse<WorkerMessage>(line);
}
Result<SupervisorMessage> ParseSupervisorMessage(std::string_view line) {
  return Parse<SupervisorMessage>(line);
}

std::string MessageType(const WorkerMessage& message) { return TypeOf(message); }
std::string MessageType(const SupervisorMessage& message) { return TypeOf(message); }

}  // namespace keel
