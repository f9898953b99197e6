// Writes and reads the board's records as JSON.
#include "elastic/protocol/records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr const char* kNoWorker = "-";

template <class T, size_t N>
using Names = std::array<std::pair<T, std::string_view>, N>;

constexpr Names<SeatState, 9> kSeatStates = {{{SeatState::kEmpty, "empty"},
                                              {SeatState::kStarting, "starting"},
                                              {SeatState::kReady, "ready"},
                                              {SeatState::kRunning, "running"},
                                              {SeatState::kParked, "parked"},
                                              {SeatState::kStopping, "stopping"},
                                              {SeatState::kFinished, "finished"},
                                              {SeatState::kLeft, "left"},
                                              {SeatState::kDead, "dead"}}};
constexpr Names<MemberState, 3> kMemberStates = {{{MemberState::kMember, "member"},
                                                  {MemberState::kLeaving, "leaving"},
                                                  {MemberState::kLeft, "left"}}};
constexpr Names<JobKind, 2> kJobKinds = {
    {{JobKind::kForeign, "foreign"}, {JobKind::kInPlace, "in-place"}}};
constexpr Names<Tombstone::Why, 2> kWhys = {
    {{Tombstone::Why::kExpired, "expired"}, {Tombstone::Why::kRefused, "refused"}}};
constexpr Names<BreakCause, 8> kCauses = {{{BreakCause::kDied, "died"},
                                           {BreakCause::kHostLost, "host-lost"},
                                           {BreakCause::kLeft, "left"},
                                           {BreakCause::kHung, "hung"},
                                           {BreakCause::kReported, "reported"},
                                           {BreakCause::kNotParked, "not-parked"},
                                           {BreakCause::kJoined, "joined"},
                                           {BreakCause::kNotEntered, "not-entered"}}};

template <class T, size_t N>
std::string_view NameOf(const Names<T, N>& names, T value) {
  for (const auto& [one, name] : names) {
    if (one == value) return name;
  }
  KEEL_CHECK(false, "a value without a name: " << static_cast<int>(value));
}

template <class T, size_t N>
Result<T> FromName(const Names<T, N>& names, std::string_view text) {
  for (const auto& [value, name] : names) {
    if (name == text) return value;
  }
  return Error{Code::kInvalid, "unknown word " + Shown(text)};
}

template <class T, size_t N>
Status ReadName(const Json& json, std::string_view field, const Names<T, N>& names, T& into) {
  KEEL_TRY_ASSIGN(const std::string text, Field<std::string>(json, field));
  Result<T> value = FromName(names, text);
  if (!value.ok()) return value.error().Doing("field " + Shown(field));
  into = *value;
  return Ok();
}

template <class T>
Status ReadField(const Json& json, std::string_view field, T& into) {
  KEEL_TRY_ASSIGN(into, Field<T>(json, field));
  return Ok();
}

// So many members, and those that are read are all there: then there are no others.
Status Only(const Json& json, size_t members) {
  if (json.is_object() && json.size() == members) return Ok();
  return Error{Code::kInvalid, json.is_object() ? "it has " + std::to_string(json.size()) +
                                                      " members instead of " +
                                                      std::to_string(members)
                                                : "it is no object"};
}

// What fits into `most` bytes of JSON.
std::string Cut(const std::string& text, size_t most) {
  constexpr size_t kEscapedMax = 6;   // bytes of one: \u001f
  std::string cut = Beginning(text, most);
  while (cut.size() > most / kEscapedMax) {
    const size_t bytes = DumpJson(Json(cut)).size() - 2;   // without its quotes
    if (bytes <= most) break;
    cut = Beginning(cut, cut.size() - (bytes - most + kEscapedMax - 1) / kEscapedMax);
  }
  return cut;
}
std::string CutReason(const std::string& reason) { return Cut(reason, kReasonBytesMax); }

Json SeatJson(const SeatRecord& seat) {
  return {{"worker", seat.worker}, {"state", NameOf(kSeatStates, seat.state)},
          {"epoch", seat.epoch},   {"rank", seat.rank},
          {"step", seat.position.step}, {"phase", seat.position.phase},
          {"tick", seat.position.tick}, {"place", Cut(seat.activity.place, kPlaceBytesMax)},
          {"waits_for", seat.activity.waits_for}, {"silent", seat.silent},
          {"saved", seat.saved},   {"ended", Cut(seat.ended, kEndedBytesMax)}};
}

Result<SeatRecord> ReadSeat(const Json& json) {
  SeatRecord seat;
  KEEL_TRY(Only(json, 12));
  KEEL_TRY(ReadField(json, "worker", seat.worker));
  KEEL_TRY(ReadName(json, "state", kSeatStates, seat.state));
  KEEL_TRY(ReadField(json, "epoch", seat.epoch));
  KEEL_TRY(ReadField(json, "rank", seat.rank));
  KEEL_TRY(ReadField(json, "step", seat.position.step));
  KEEL_TRY(ReadField(json, "phase", seat.position.phase));
  KEEL_TRY(ReadField(json, "tick", seat.position.tick));
  KEEL_TRY(ReadField(json, "place", seat.activity.place));
  KEEL_TRY(ReadField(json, "waits_for", seat.activity.waits_for));
  KEEL_TRY(ReadField(json, "silent", seat.silent));
  KEEL_TRY(ReadField(json, "saved", seat.saved));
  KEEL_TRY(ReadField(json, "ended", seat.ended));
  return seat;
}

Result<ToldEpoch> ReadTold(const Json& json) {
  ToldEpoch told;
  KEEL_TRY(Only(json, 3));
  KEEL_TRY(ReadField(json, "number", told.number));
  KEEL_TRY(ReadField(json, "id", told.id));
  KEEL_TRY(ReadField(json, "hosts", told.hosts));
  return told;
}

Result<MemberRecord> ReadMember(const Json& json) {
  MemberRecord record;
  KEEL_TRY(Only(json, 16));
  KEEL_TRY(ReadField(json, "incarnation", record.incarnation));
  KEEL_TRY(ReadField(json, "host", record.host));
  KEEL_TRY(ReadField(json, "address", record.address));
  KEEL_TRY(ReadField(json, "order", record.order));
  KEEL_TRY(ReadField(json, "role", record.role));
  KEEL_TRY(ReadName(json, "state", kMemberStates, record.state));
  KEEL_TRY(ReadField(json, "reason", record.reason));
  KEEL_TRY(ReadField(json, "deadline_ms", record.deadline_ms));
  KEEL_TRY(ReadField(json, "refused", record.refused));
  KEEL_TRY(ReadName(json, "kind", kJobKinds, record.kind));
  KEEL_TRY(ReadField(json, "fingerprint", record.fingerprint));
  KEEL_TRY_ASSIGN(const Json* const told, ObjectField(json, "epoch"));
  KEEL_TRY_ASSIGN(record.epoch, ReadTold(*told));
  KEEL_TRY(ReadField(json, "outside", record.outside));
  KEEL_TRY(ReadField(json, "deaths", record.deaths));
  KEEL_TRY_ASSIGN(const Json* const seats, ArrayField(json, "seats"));
  for (const Json& item : *seats) {
    KEEL_TRY_ASSIGN(SeatRecord seat, ReadSeat(item));
    record.seats.push_back(std::move(seat));
  }
  return record;
}

Result<Tombstone> ReadTombstone(const Json& json) {
  Tombstone tombstone;
  KEEL_TRY(Only(json, 4));
  KEEL_TRY(ReadName(json, "gone", kWhys, tombstone.why));
  KEEL_TRY(ReadField(json, "incarnation", tombstone.incarnation));
  KEEL_TRY(ReadField(json, "reason", tombstone.reason));
  return tombstone;
}

Result<MemberSlot> ReadMemberSlot(const Json& json) {
  MemberSlot slot;
  if (json.contains("gone")) {
    KEEL_TRY_ASSIGN(slot.tombstone, ReadTombstone(json));
  } else {
    KEEL_TRY_ASSIGN(slot.record, ReadMember(json));
  }
  return slot;
}

// Hosts and workers are words in one string, not JSON of their own: an epoch of many is read by as
// many. A worker that is yet to be started is a lone '-'.
class Words {
 public:
  Words(const char* key, std::string_view text) : key_(key), rest_(text) {}

  bool empty() const { return rest_.empty(); }
  // Empty where there is none any more.
  std::string_view Next() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }
  template <class T>
  Status Number(T& number) {
    const std::string_view word = Next();
    const char* const end = word.data() + word.size();
    const auto [stopped, failure] = std::from_chars(word.data(), end, number);
    if (failure == std::errc() && stopped == end && number >= 0) return Ok();
    return Error{Code::kInvalid, "\"" + std::string(key_) + "\" has " + Shown(word) +
                                     " where a number belongs"};
  }
  Status Name(std::string& name) {
    name = Next();
    if (!name.empty()) return Ok();
    return Error{Code::kInvalid, "\"" + std::string(key_) + "\" lacks its last words"};
  }

 private:
  const char* const key_;
  std::string_view rest_;
};

Status ReadEpochHosts(const Json& json, std::vector<EpochHost>& hosts) {
  std::string text;
  KEEL_TRY(ReadField(json, "hosts", text));
  for (Words words("hosts", text); !words.empty();) {
    EpochHost host;
    host.group_rank = static_cast<int>(hosts.size());
    KEEL_TRY(words.Number(host.slot));
    KEEL_TRY(words.Name(host.incarnation));
    KEEL_TRY(words.Number(host.role));
    hosts.push_back(std::move(host));
  }
  return Ok();
}

Status ReadEpochWorkers(const Json& json, std::vector<EpochWorker>& workers) {
  std::string text;
  KEEL_TRY(ReadField(json, "workers", text));
  for (Words words("workers", text); !words.empty();) {
    EpochWorker worker;
    worker.rank = static_cast<int>(workers.size());
    KEEL_TRY(words.Number(worker.slot));
    KEEL_TRY(words.Number(worker.index));
    KEEL_TRY(words.Name(worker.worker));
    if (worker.worker == kNoWorker) worker.worker.clear();
    workers.push_back(std::move(worker));
  }
  return Ok();
}

Result<EpochStore> ReadEpochStore(const Json& json) {
  EpochStore store;
  KEEL_TRY(Only(json, 3));
  KEEL_TRY(ReadField(json, "address", store.address));
  KEEL_TRY(ReadField(json, "port", store.port));
  KEEL_TRY(ReadField(json, "prefix", store.prefix));
  return store;
}

Result<EpochRecord> ReadEpoch(const Json& json) {
  EpochRecord record;
  KEEL_TRY(Only(json, 10));
  KEEL_TRY(ReadField(json, "number", record.number));
  KEEL_TRY(ReadField(json, "id", record.id));
  KEEL_TRY(ReadName(json, "kind", kJobKinds, record.kind));
  KEEL_TRY(ReadField(json, "reason", record.reason));
  KEEL_TRY(ReadField(json, "restarts", record.restarts));
  KEEL_TRY(ReadField(json, "inexact_allowed", record.inexact_allowed));
  KEEL_TRY_ASSIGN(const Json* const store, ObjectField(json, "store"));
  KEEL_TRY_ASSIGN(record.store, ReadEpochStore(*store));
  KEEL_TRY(ReadEpochHosts(json, record.hosts));
  KEEL_TRY(ReadEpochWorkers(json, record.workers));
  return record;
}

Result<BreakRecord> ReadBreak(const Json& json) {
  BreakRecord record;
  KEEL_TRY(Only(json, 7));
  KEEL_TRY(ReadField(json, "epoch", record.epoch));
  KEEL_TRY(ReadField(json, "id", record.id));
  KEEL_TRY(ReadName(json, "cause", kCauses, record.cause));
  KEEL_TRY(ReadField(json, "by", record.by));
  KEEL_TRY(ReadField(json, "reason", record.reason));
  KEEL_TRY(ReadField(json, "ranks", record.ranks));
  return record;
}

Result<StopRecord> ReadStop(const Json& json) {
  StopRecord record;
  KEEL_TRY(Only(json, 4));
  KEEL_TRY(ReadField(json, "by", record.by));
  KEEL_TRY(ReadField(json, "reason", record.reason));
  KEEL_TRY(ReadField(json, "deadline_ms", record.deadline_ms));
  return record;
}

Result<EndRecord> ReadEnd(const Json& json) {
  EndRecord record;
  KEEL_TRY(Only(json, 3));
  KEEL_TRY(ReadField(json, "code", record.code));
  KEEL_TRY(ReadField(json, "reason", record.reason));
  return record;
}

Status CheckVersion(const Json& json) {
  KEEL_TRY_ASSIGN(const int version, Field<int>(json, "version"));
  if (version == kProtocolVersion) return Ok();
  return Error{Code::kInvalid, "its protocol version is " + std::to_string(version) + ", ours is " +
                                   std::to_string(kProtocolVersion) +
                                   ": run the same release of Evenkeel on every host"};
}

Status CheckSize(std::string_view text, size_t seats) {
  const size_t most = kRecordBytesMax + seats * kSeatBytesMax;
  if (text.size() <= most) return Ok();
  return Error{Code::kInvalid, "it has " + BytesText(text.size()) + ", more than the " +
                                   BytesText(most) + " that " + std::to_string(seats) +
                                   " seats may take"};
}

template <class T>
size_t SeatsOf(const T&) { return 0; }
size_t SeatsOf(const MemberSlot& slot) { return slot.record ? slot.record->seats.size() : 0; }
size_t SeatsOf(const EpochRecord& record) { return record.hosts.size() + record.workers.size(); }
size_t SeatsOf(const BreakRecord& record) { return record.ranks.size(); }

// Whatever the other version means by it: whoever cannot read the rest of its board cannot stay.
std::optional<Tombstone> ReadOtherTombstone(std::string_view text) {
  const std::optional<OtherRecord> other = ReadOtherRecord(text);
  if (!other) return std::nullopt;
  const Result<Json> json = ParseJson(text);
  if (!json.ok() || !Field<std::string>(*json, "gone").ok()) return std::nullopt;
  const Result<std::string> reason = Field<std::string>(*json, "reason");
  return Tombstone{Tombstone::Why::kRefused, other->incarnation,
                   "the coordinator of the job speaks " + OtherVersionText(other->version) +
                       (reason.ok() ? "; it says " + Shown(*reason) : "")};
}

// One record of a type, all but its key.
template <class T, class Read>
Result<T> ParseRecord(std::string_view key, std::string_view text, Read read) {
  const auto parse = [&]() -> Result<T> {
    KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
    KEEL_TRY(CheckVersion(json));
    KEEL_TRY_ASSIGN(T record, read(json));
    KEEL_TRY(CheckSize(text, SeatsOf(record)));
    return record;
  };
  Result<T> record = parse();
  if (record.ok()) return record;
  return Error{Code::kInvalid, "store key " + Shown(key) + ": " + record.error().message};
}

}  // namespace

std::optional<OtherRecord> ReadOtherRecord(std::string_view text) {
  const Result<Json> json = ParseJson(text);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const Result<int64_t> version = Field<int64_t>(*json, "version");
  if (!version.ok() || *version == kProtocolVersion) return std::nullopt;
  const auto word = [&](std::string_view name) {
    const Result<std::string> value = Field<std::string>(*json, name);
    return value.ok() ? *value : std::string();
  };
  return OtherRecord{*version, word("incarnation"), word("host")};
}

std::string OtherVersionText(int64_t version) {
  return "protocol version " + std::to_string(version) + ", where this keelrun speaks version " +
         std::to_string(kProtocolVersion) + ": run the same release of Evenkeel on every host";
}

SeatRecord WithoutStanding(SeatRecord seat) {
  seat.position = {};
  seat.activity = {};
  seat.silent = false;
  return seat;
}

MemberRecord WithoutStandings(MemberRecord record) {
  for (SeatRecord& seat : record.seats) seat = WithoutStanding(std::move(seat));
  return record;
}

bool HasMoved(const SeatRecord& before, const SeatRecord& after) {
  return before.worker != after.worker || before.state != after.state ||
         before.epoch != after.epoch || before.position != after.position ||
         before.activity != after.activity;
}

bool HasProcess(SeatState state) {
  return state == SeatState::kStarting || state == SeatState::kReady ||
         state == SeatState::kRunning || state == SeatState::kParked ||
         state == SeatState::kStopping;
}

std::string_view SeatStateName(SeatState state) { return NameOf(kSeatStates, state); }
std::string_view MemberStateName(MemberState state) { return NameOf(kMemberStates, state); }
std::string_view BreakCauseName(BreakCause cause) { return NameOf(kCauses, cause); }
std::string_view JobKindName(JobKind kind) { return NameOf(kJobKinds, kind); }

const EpochHost* EpochRecord::FindHost(int64_t slot, std::string_view incarnation) const {
  for (const EpochHost& host : hosts) {
    if (host.slot == slot && host.incarnation == incarnation) return &host;
  }
  return nullptr;
}

std::string MemberText(const MemberRecord& record) {
  Json seats = Json::array();
  for (const SeatRecord& seat : record.seats) seats.push_back(SeatJson(seat));
  return DumpJson({{"version", kProtocolVersion},
                   {"incarnation", record.incarnation},
                   {"host", record.host},
                   {"address", record.address},
                   {"order", record.order},
                   {"role", record.role},
                   {"state", NameOf(kMemberStates, record.state)},
                   {"reason", CutReason(record.reason)},
                   {"deadline_ms", record.deadline_ms},
                   {"refused", record.refused},
                   {"kind", NameOf(kJobKinds, record.kind)},
                   {"fingerprint", record.fingerprint},
                   {"epoch", Json{{"number", record.epoch.number},
                                  {"id", record.epoch.id},
                                  {"hosts", record.epoch.hosts}}},
                   {"outside", record.outside},
                   {"deaths", record.deaths},
                   {"seats", std::move(seats)}});
}

std::string TombstoneText(const Tombstone& tombstone) {
  return DumpJson({{"version", kProtocolVersion},
                   {"gone", NameOf(kWhys, tombstone.why)},
                   {"incarnation", tombstone.incarnation},
                   {"reason", CutReason(tombstone.reason)}});
}

std::string EpochText(const EpochRecord& record) {
  std::string hosts;
  for (const EpochHost& host : record.hosts) {
    hosts += (hosts.empty() ? "" : " ") + std::to_string(host.slot) + ' ' + host.incarnation + ' ' +
             std::to_string(host.role);
  }
  std::string workers;
  for (const EpochWorker& worker : record.workers) {
    workers += (workers.empty() ? "" : " ") + std::to_string(worker.slot) + ' ' +
               std::to_string(worker.index) + ' ' +
               (worker.worker.empty() ? kNoWorker : worker.worker);
  }
  return DumpJson({{"version", kProtocolVersion},
                   {"number", record.number},
                   {"id", record.id},
                   {"kind", NameOf(kJobKinds, record.kind)},
                   {"reason", CutReason(record.reason)},
                   {"restarts", record.restarts},
                   {"inexact_allowed", record.inexact_allowed},
                   {"store", Json{{"address", record.store.address},
                                  {"port", record.store.port},
                                  {"prefix", record.store.prefix}}},
                   {"hosts", std::move(hosts)},
                   {"workers", std::move(workers)}});
}

std::string BreakText(const BreakRecord& record) {
  return DumpJson({{"version", kProtocolVersion},
                   {"epoch", record.epoch},
                   {"id", record.id},
                   {"cause", NameOf(kCauses, record.cause)},
                   {"by", record.by},
                   {"reason", CutReason(record.reason)},
                   {"ranks", record.ranks}});
}

std::string StopText(const StopRecord& record) {
  return DumpJson({{"version", kProtocolVersion},
                   {"by", record.by},
                   {"reason", CutReason(record.reason)},
                   {"deadline_ms", record.deadline_ms}});
}

std::string EndText(const EndRecord& record) {
  return DumpJson(
      {{"version", kProtocolVersion}, {"code", record.code}, {"reason", CutReason(record.reason)}});
}

Result<MemberSlot> ParseMemberSlot(std::string_view key, std::string_view text) {
  Result<MemberSlot> slot = ParseRecord<MemberSlot>(key, text, ReadMemberSlot);
  if (slot.ok()) return slot;
  std::optional<Tombstone> tombstone = ReadOtherTombstone(text);
  if (!tombstone) return slot;
  return MemberSlot{std::nullopt, std::move(tombstone)};
}

Result<EpochRecord> ParseEpoch(std::string_view key, std::string_view text) {
  return ParseRecord<EpochRecord>(key, text, ReadEpoch);
}
Result<BreakRecord> ParseBreak(std::string_view key, std::string_view text) {
  return ParseRecord<BreakRecord>(key, text, ReadBreak);
}
Result<StopRecord> ParseStop(std::string_view key, std::string_view text) {
  return ParseRecord<StopRecord>(key, text, ReadStop);
}
Result<EndRecord> ParseEnd(std::string_view key, std::string_view text) {
  return ParseRecord<EndRecord>(key, text, ReadEnd);
}

Result<JobKind> ParseJobKind(std::string_view key, std::string_view text) {
  Result<JobKind> kind = FromName(kJobKinds, text);
  if (!kind.ok()) return kind.error().Doing("store key " + Shown(key));
  return kind;
}

Result<int64_t> ParseCount(std::string_view key, std::string_view text) {
  Result<int64_t> count = ParseInteger(text);
  if (!count.ok()) return count.error().Doing("store key " + Shown(key));
  return count;
}

}  // namespace keel
