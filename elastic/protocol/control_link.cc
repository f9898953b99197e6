// Each message's members, written and read side by side.
#include "elastic/protocol/control_link.h"

#include <limits>

#include "base/json.h"
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

// At most so many bytes of it, and no half of a character at the end.
std::string Cut(const std::string& text) { return Beginning(text, kControlTextMax); }

std::string TooLongText(const std::string& fingerprint) {
  return "a fingerprint of " + std::to_string(fingerprint.size()) + " bytes is longer than " +
         std::to_string(kFingerprintBytesMax) + ", the most that hosts tell each other";
}

// Reads members one after the other and remembers the first that is not as it should be.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  int64_t Whole(std::string_view name, int64_t least, int64_t most) {
    const int64_t number = Take<int64_t>(name);
    if (status_.ok() && (number < least || number > most)) {
      Fail("'" + std::string(name) + "' is " + std::to_string(number) + ", expected " +
           std::to_string(least) + " to " + std::to_string(most));
    }
    return number;
  }
  bool Flag(std::string_view name) { return Take<bool>(name); }
  std::string Text(std::string_view name) { return Take<std::string>(name); }
  // For people; whoever wrote it need not have cut it.
  std::string Words(std::string_view name) { return Cut(Text(name)); }
  std::vector<std::string> Texts(std::string_view name) {
    return Take<std::vector<std::string>>(name);
  }
  // Null is no number, and nothing.
  std::optional<double> Real(const char* name) {
    if (Has(name) && json_[name].is_null()) return std::nullopt;
    return Take<double>(name);
  }
  std::vector<std::pair<std::string, int64_t>> Counts(const char* name, size_t count_max,
                                                      size_t name_max, int64_t most) {
    std::vector<std::pair<std::string, int64_t>> counts;
    const Result<const Json*> object = ObjectField(json_, name);
    if (!object.ok()) {
      Fail(object.error().message);
      return counts;
    }
    if ((*object)->size() > count_max) Fail("'" + std::string(name) + "' has too many members");
    Members inner(**object);
    for (const auto& [key, value] : (*object)->items()) {
      if (key.size() > name_max) Fail("a name in '" + std::string(name) + "' is too long");
      if (!status_.ok()) return {};
      counts.emplace_back(key, inner.Whole(key, 0, most));
    }
    if (!inner.status().ok()) Fail(inner.status().error().message);
    return counts;
  }
  bool Has(const char* name) const { return json_.contains(name); }
  void Fail(const std::string& why) {
    if (status_.ok()) status_ = Error{Code::kCorrupt, why};
  }
  const Status& status() const { return status_; }

 private:
  template <class T>
  T Take(std::string_view name) {
    Result<T> value = Field<T>(json_, name);
    if (value.ok()) return *std::move(value);
    Fail(value.error().message);
    return T{};
  }

  const Json& json_;
  Status status_;
};

int64_t Step(Members& in) { return in.Whole("step", kNoStep, kNumberMax); }
int64_t Epoch(Members& in) { return in.Whole("epoch", 1, kNumberMax); }

Json Write(const HelloMessage& m) {
  return {{"type", "hello"}, {"version", m.version}, {"fingerprint", m.fingerprint}};
}
HelloMessage ReadHello(Members& in) {
  HelloMessage hello;
  hello.version = in.Whole("version", 0, kNumberMax);
  // Another version's hello may look otherwise; its number is what it is refused for.
  if (hello.version == kControlVersion) hello.fingerprint = in.Text("fingerprint");
  if (hello.fingerprint.size() > kFingerprintBytesMax) in.Fail(TooLongText(hello.fingerprint));
  return hello;
}

Json Write(const ReadyMessage& m) { return {{"type", "ready"}, {"step", m.step}}; }
ReadyMessage ReadReady(Members& in) { return {Step(in)}; }

Json Write(const ParkedMessage& m) {
  return {{"type", "parked"},
          {"epoch", m.epoch},
          {"step", m.step},
          {"at_boundary", m.at_boundary}};
}
ParkedMessage ReadParked(Members& in) { return {Epoch(in), Step(in), in.Flag("at_boundary")}; }

Json Write(const AtMessage& m) {
  Json json = {{"type", "at"}, {"step", m.position.step}, {"phase", m.position.phase}};
  if (m.position.tick != 0) json["tick"] = m.position.tick;
  if (!m.activity.place.empty()) json["place"] = Beginning(m.activity.place, kPlaceBytesMax);
  if (m.activity.waits_for != Activity::kUntold) json["waits_for"] = m.activity.waits_for;
  return json;
}
AtMessage ReadAt(Members& in) {
  AtMessage at;
  at.position = {Step(in), static_cast<int>(in.Whole("phase", 0, kPhaseMax))};
  if (in.Has("tick")) at.position.tick = in.Whole("tick", 0, kNumberMax);
  if (in.Has("place")) at.activity.place = Beginning(in.Text("place"), kPlaceBytesMax);
  if (in.Has("waits_for")) {
    at.activity.waits_for =
        static_cast<int>(in.Whole("waits_for", Activity::kAnybody, kWorldMax - 1));
  }
  return at;
}

Json Write(const SavedMessage& m) { return {{"type", "saved"}, {"step", m.step}}; }
SavedMessage ReadSaved(Members& in) { return {in.Whole("step", 0, kNumberMax)}; }

Json Write(const LeavingMessage& m) { return {{"type", "leaving"}, {"step", m.step}}; }
LeavingMessage ReadLeaving(Members& in) { return {Step(in)}; }

Json Write(const FiguresMessage& m) {
  Json parts = Json::object();
  for (const auto& [name, nanos] : m.parts) parts[name] = nanos;
  return {{"type", "figures"},
          {"step", m.step},
          {"loss", m.loss ? Json(*m.loss) : Json()},
          {"steps", m.steps},
          {"samples", m.samples},
          {"parts_ns", std::move(parts)},
          {"evaluating_ns", m.evaluating_ns}};
}
FiguresMessage ReadFigures(Members& in) {
  FiguresMessage figures;
  figures.step = Step(in);
  figures.loss = in.Real("loss");
  figures.steps = in.Whole("steps", 0, kNumberMax);
  figures.samples = in.Whole("samples", 0, kNumberMax);
  figures.parts = in.Counts("parts_ns", kFigurePartsMax, kFigureNameMax, kFigureNanosMax);
  figures.evaluating_ns = in.Whole("evaluating_ns", 0, kFigureNanosMax);
  return figures;
}

Json Write(const ByeMessage& m) {
  return {{"type", "bye"}, {"code", m.code}, {"message", Cut(m.message)}};
}
ByeMessage ReadBye(Members& in) {
  return {static_cast<int>(in.Whole("code", 0, 255)), in.Words("message")};
}

Json Write(const EpochMessage& m) {
  Json json = {{"type", "epoch"},      {"epoch", m.epoch}, {"rank", m.rank},
               {"world", m.world},     {"address", m.address}, {"port", m.port},
               {"prefix", m.prefix},   {"reason", Cut(m.reason)}};
  json["members"] = m.members;
  json["inexact_allowed"] = m.inexact_allowed;
  json["own_address"] = m.own_address;
  return json;
}
EpochMessage ReadEpoch(Members& in) {
  EpochMessage epoch;
  epoch.epoch = Epoch(in);
  epoch.world = static_cast<int>(in.Whole("world", 1, kWorldMax));
  epoch.rank = static_cast<int>(in.Whole("rank", 0, epoch.world - 1));
  epoch.address = in.Text("address");
  epoch.port = static_cast<uint16_t>(in.Whole("port", 0, kPortMax));
  epoch.prefix = in.Text("prefix");
  epoch.reason = in.Words("reason");
  epoch.members = in.Texts("members");
  epoch.inexact_allowed = in.Flag("inexact_allowed");
  if (in.Has("own_address")) epoch.own_address = in.Text("own_address");
  if (!epoch.members.empty() && epoch.members.size() != static_cast<size_t>(epoch.world)) {
    in.Fail("'members' has " + std::to_string(epoch.members.size()) + " names for a world of " +
            std::to_string(epoch.world));
  }
  return epoch;
}

Json Write(const BreakMessage& m) {
  return {{"type", "break"}, {"epoch", m.epoch}, {"reason", Cut(m.reason)}};
}
BreakMessage ReadBreak(Members& in) { return {Epoch(in), in.Words("reason")}; }

Json Write(const JoinMessage& m) { return {{"type", "join"}, {"epoch", m.epoch}}; }
JoinMessage ReadJoin(Members& in) { return {Epoch(in)}; }

Json Write(const StopMessage& m) {
  Json json = {{"type", "stop"}, {"reason", Cut(m.reason)}};
  if (m.deadline_ms) json["deadline_ms"] = *m.deadline_ms;
  return json;
}
StopMessage ReadStop(Members& in) {
  StopMessage stop{in.Words("reason"), std::nullopt};
  if (in.Has("deadline_ms")) stop.deadline_ms = in.Whole("deadline_ms", 0, kNumberMax);
  return stop;
}

Json Write(const SaveMessage& m) { return {{"type", "save"}, {"reason", Cut(m.reason)}}; }
SaveMessage ReadSave(Members& in) { return {in.Words("reason")}; }

Json Write(const RefusedMessage& m) { return {{"type", "refused"}, {"reason", Cut(m.reason)}}; }
RefusedMessage ReadRefused(Members& in) { return {in.Words("reason")}; }

Json Write(const AliveMessage& m) { return {{"type", "alive"}, {"limit_ms", m.limit_ms}}; }
AliveMessage ReadAlive(Members& in) { return {in.Whole("limit_ms", 1, kQuietMillisMax)}; }

Json Write(const UnknownMessage& m) { return {{"type", m.type}}; }

WorkerMessage ReadMembers(const std::string& type, Members& in, const WorkerMessage*) {
  if (type == "hello") return ReadHello(in);
  if (type == "ready") return ReadReady(in);
  if (type == "parked") return ReadParked(in);
  if (type == "at") return ReadAt(in);
  if (type == "saved") return ReadSaved(in);
  if (type == "leaving") return ReadLeaving(in);
  if (type == "figures") return ReadFigures(in);
  if (type == "bye") return ReadBye(in);
  return UnknownMessage{type};
}

SupervisorMessage ReadMembers(const std::string& type, Members& in,
                              const SupervisorMessage*) {
  if (type == "epoch") return ReadEpoch(in);
  if (type == "break") return ReadBreak(in);
  if (type == "join") return ReadJoin(in);
  if (type == "stop") return ReadStop(in);
  if (type == "save") return ReadSave(in);
  if (type == "refused") return ReadRefused(in);
  if (type == "alive") return ReadAlive(in);
  return UnknownMessage{type};
}

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
  Members in(*json);
  const Message message = ReadMembers(*type, in, static_cast<const Message*>(nullptr));
  if (!in.status().ok()) return garbage(in.status().error().message);
  return message;
}

template <class Message>
Result<std::string> Encode(const Message& message) {
  if (std::holds_alternative<UnknownMessage>(message)) {
    return Error{Code::kInvalid, "a message of unknown type cannot be sent"};
  }
  Json json = std::visit([](const auto& held) { return Write(held); }, message);
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

template <class Message>
std::string TypeOf(const Message& message) {
  return std::visit([](const auto& held) { return Write(held); }, message)
      .at("type")
      .template get<std::string>();
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
