// Names the fields of the board's records, each once, and the words and forms they have.
// This file is longer than 500 lines because all records share the forms at its beginning, which
// nobody else needs, and the one template at its end that reads them.
#include "elastic/protocol/records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr const char* kNoWorker = "-";
constexpr int64_t kMillisMax = int64_t{1} << 40;   // 34 years

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
constexpr Names<Tombstone::Why, 3> kWhys = {{{Tombstone::Why::kExpired, "expired"},
                                             {Tombstone::Why::kRefused, "refused"},
                                             {Tombstone::Why::kShunned, "shunned"}}};
constexpr Names<BreakCause, 9> kCauses = {{{BreakCause::kDied, "died"},
                                           {BreakCause::kHostLost, "host-lost"},
                                           {BreakCause::kLeft, "left"},
                                           {BreakCause::kHung, "hung"},
                                           {BreakCause::kReported, "reported"},
                                           {BreakCause::kNotParked, "not-parked"},
                                           {BreakCause::kJoined, "joined"},
                                           {BreakCause::kNotEntered, "not-entered"},
                                           {BreakCause::kLeaseLost, "lease-lost"}}};

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

// A value by its name.
template <class T, size_t N>
class Named {
 public:
  explicit Named(const Names<T, N>& names) : names_(names) {}
  Json Write(T value) const { return NameOf(names_, value); }
  Status Read(const Json& object, const char* name, T& into) const {
    KEEL_TRY_ASSIGN(const std::string text, Field<std::string>(object, name));
    Result<T> value = FromName(names_, text);
    if (!value.ok()) return value.error().Doing("field " + Shown(name));
    into = *value;
    return Ok();
  }

 private:
  const Names<T, N>& names_;
};

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
// Cut where it is written, so that what is written fits what is read.
struct CutTo {
  size_t most;
  Json Write(const std::string& text) const { return Cut(text, most); }
  static Status Read(const Json& object, const char* name, std::string& into) {
    KEEL_TRY_ASSIGN(into, Field<std::string>(object, name));
    return Ok();
  }
};
constexpr CutTo kReason{kReasonBytesMax};

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

// Names that have no spaces.
struct NameWords {
  static Json Write(const std::vector<std::string>& names) { return JoinList(names, " "); }
  static Status Read(const Json& object, const char* name, std::vector<std::string>& names) {
    KEEL_TRY_ASSIGN(const std::string text, Field<std::string>(object, name));
    for (Words words(name, text); !words.empty();) {
      KEEL_TRY(words.Name(names.emplace_back()));
    }
    return Ok();
  }
};

struct InMillis {
  static Json Write(Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  }
  static Status Read(const Json& object, const char* name, Duration& into) {
    KEEL_TRY_ASSIGN(const int64_t millis, FieldWithin(object, name, 0, kMillisMax));
    into = std::chrono::milliseconds(millis);
    return Ok();
  }
};

// A record within a record, or null.
struct OrNull {
  template <class T>
  static Json Write(const std::optional<T>& value) {
    if (!value) return nullptr;
    Json json = Json::object();
    WriteFields(json, *value);
    return json;
  }
  template <class T>
  static Status Read(const Json& object, const char* name, std::optional<T>& into) {
    if (object.contains(name) && object[name].is_null()) return Ok();
    KEEL_TRY_ASSIGN(const Json* const inner, ObjectField(object, name));
    return ReadOnlyFields(*inner, into.emplace());
  }
};

struct HostWords {
  static Json Write(const std::vector<EpochHost>& hosts) {
    std::string text;
    for (const EpochHost& host : hosts) {
      text += (text.empty() ? "" : " ") + std::to_string(host.slot) + ' ' + host.incarnation + ' ' +
              std::to_string(host.role) + ' ' + std::to_string(host.deaths);
    }
    return text;
  }
  static Status Read(const Json& object, const char* name, std::vector<EpochHost>& hosts) {
    KEEL_TRY_ASSIGN(const std::string text, Field<std::string>(object, name));
    for (Words words(name, text); !words.empty();) {
      EpochHost host;
      host.group_rank = static_cast<int>(hosts.size());
      KEEL_TRY(words.Number(host.slot));
      KEEL_TRY(words.Name(host.incarnation));
      KEEL_TRY(words.Number(host.role));
      KEEL_TRY(words.Number(host.deaths));
      hosts.push_back(std::move(host));
    }
    return Ok();
  }
};

struct WorkerWords {
  static Json Write(const std::vector<EpochWorker>& workers) {
    std::string text;
    for (const EpochWorker& worker : workers) {
      text += (text.empty() ? "" : " ") + std::to_string(worker.slot) + ' ' +
              std::to_string(worker.index) + ' ' +
              (worker.worker.empty() ? kNoWorker : worker.worker);
    }
    return text;
  }
  static Status Read(const Json& object, const char* name, std::vector<EpochWorker>& workers) {
    KEEL_TRY_ASSIGN(const std::string text, Field<std::string>(object, name));
    for (Words words(name, text); !words.empty();) {
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
};

}  // namespace

template <>
struct JsonFields<SeatRecord> {
  static void Visit(auto& field, auto& seat) {
    field("worker", seat.worker);
    field("state", seat.state, Named(kSeatStates));
    field("epoch", seat.epoch);
    field("rank", seat.rank);
    field("step", seat.position.step);
    field("phase", seat.position.phase);
    field("tick", seat.position.tick);
    field("place", seat.activity.place, CutTo{kPlaceBytesMax});
    field("waits_for", seat.activity.waits_for);
    field("silent", seat.silent);
    field("saved", seat.saved);
    field("ended", seat.ended, CutTo{kEndedBytesMax});
    field.Optional("lacks", seat.lacks, seat.lacks);
  }
};

template <>
struct JsonFields<ToldEpoch> {
  static void Visit(auto& field, auto& told) {
    field("number", told.number);
    field.Optional("first", told.first != 0, told.first);
    field("id", told.id);
    field("hosts", told.hosts);
    field("keeper", told.keeper);
    field("restarts", told.restarts);
    field("restarts_recent", told.restarts_recent);
    field("deaths", told.deaths);
  }
};

template <>
struct JsonFields<HostBlame> {
  static void Visit(auto& field, auto& blame) {
    for (const DeathCause& cause : kDeathCauses) field(cause.name, blame.*cause.count);
    field("rechecks", blame.checks.rechecks);
    field("differences", blame.checks.differences);
    field("slow_steps", blame.checks.slow_steps);
  }
};

template <>
struct JsonFields<LostCoordinator> {
  static void Visit(auto& field, auto& lost) {
    field("who", lost.who);
    field("inside", lost.inside);
    field("outside", lost.outside);
    field("beat_age_ms", lost.beat_age, InMillis());
    field("refused", lost.refused);
  }
};

template <>
struct JsonFields<EpochsSeen> {
  static void Visit(auto& field, auto& seen) {
    field("met", seen.met);
    field("tried", seen.tried, NameWords());
    field("linked", seen.linked);
    field("shared", seen.shared);
    field("lost", seen.lost, OrNull());
  }
};

template <>
struct JsonFields<CountedEpoch> {
  static void Visit(auto& field, auto& epoch) {
    field("number", epoch.number);
    field("id", epoch.id);
    field("coordinator", epoch.coordinator);
    field("hosts", epoch.hosts, NameWords());
    field("by_lease", epoch.by_lease);
  }
};

template <>
struct JsonFields<BoardPlace> {
  static void Visit(auto& field, auto& place) {
    field("term", place.term);
    field("epoch", place.epoch);
    field("address", place.address);
    field("by", place.by);
  }
};

template <>
struct JsonFields<LinkRecord> {
  static void Visit(auto& field, auto& link) {
    field("place", link.place);
    field("peer", link.peer);
    field("epoch", link.epoch);
  }
};

template <>
struct JsonFields<Heir> {
  static void Visit(auto& field, auto& heir) {
    field("incarnation", heir.incarnation);
    field("peer", heir.peer);
  }
};

template <>
struct JsonFields<SuccessionRecord> {
  static void Visit(auto& field, auto& record) {
    field("term", record.term);
    field("coordinator", record.coordinator);
    field("address", record.address);
    field("heirs", record.heirs);
    field("chosen", record.chosen);
    field("met", record.met);
    field("shared", record.shared);
    field("moved", record.moved, OrNull());
  }
};

template <>
struct JsonFields<MemberRecord> {
  static void Visit(auto& field, auto& record) {
    field("incarnation", record.incarnation);
    field("host", record.host);
    field("address", record.address);
    field("machine", record.machine);
    field("peer", record.peer);
    field("order", record.order);
    field("role", record.role);
    field("state", record.state, Named(kMemberStates));
    field("reason", record.reason, kReason);
    field("deadline_ms", record.deadline_ms);
    field("refused", record.refused);
    field("forgiven", record.forgiven);
    field("unfit", record.unfit, CutTo{kUnfitBytesMax});
    field("health", record.health, CutTo{kUnfitBytesMax});
    field("kind", record.kind, Named(kJobKinds));
    field("fingerprint", record.fingerprint);
    field("epoch", record.epoch);
    field("seen", record.seen);
    field("outside", record.outside);
    field("deaths", record.deaths);
    field("incidents", record.incidents);
    field("blame", record.blame);
    field("finished", record.finished);
    field("finished_id", record.finished_id);
    field("seats", record.seats);
  }
};

template <>
struct JsonFields<Tombstone> {
  static void Visit(auto& field, auto& tombstone) {
    field("gone", tombstone.why, Named(kWhys));
    field("incarnation", tombstone.incarnation);
    field("reason", tombstone.reason, kReason);
  }
};

template <>
struct JsonFields<ShunnedHost> {
  static void Visit(auto& field, auto& shunned) {
    field("incarnation", shunned.incarnation);
    field("host", shunned.host);
    field("machine", shunned.machine);
    field("reason", shunned.reason, CutTo{kUnfitBytesMax});
    field("epoch", shunned.epoch);
    field("deaths", shunned.deaths);
  }
};

template <>
struct JsonFields<ShunnedRecord> {
  static void Visit(auto& field, auto& record) { field("hosts", record.hosts); }
};

template <>
struct JsonFields<EpochStore> {
  static void Visit(auto& field, auto& store) {
    field("address", store.address);
    field("port", store.port);
    field("prefix", store.prefix);
  }
};

template <>
struct JsonFields<EpochRecord> {
  static void Visit(auto& field, auto& record) {
    field("number", record.number);
    field.Optional("first", record.first != 1, record.first);
    field("id", record.id);
    field("kind", record.kind, Named(kJobKinds));
    field("reason", record.reason, kReason);
    field("coordinator", record.coordinator);
    field("restarts", record.restarts);
    field("restarts_recent", record.restarts_recent);
    field("inexact_allowed", record.inexact_allowed);
    field("by_lease", record.by_lease);
    field("store", record.store);
    field("hosts", record.hosts, HostWords());
    field("workers", record.workers, WorkerWords());
  }
};

template <>
struct JsonFields<BreakRecord> {
  static void Visit(auto& field, auto& record) {
    field("epoch", record.epoch);
    field("id", record.id);
    field("cause", record.cause, Named(kCauses));
    field("by", record.by);
    field("reason", record.reason, kReason);
    field("ranks", record.ranks);
  }
};

template <>
struct JsonFields<StopRecord> {
  static void Visit(auto& field, auto& record) {
    field("by", record.by);
    field("reason", record.reason, kReason);
    field("deadline_ms", record.deadline_ms);
  }
};

template <>
struct JsonFields<EndRecord> {
  static void Visit(auto& field, auto& record) {
    field("code", record.code);
    field("reason", record.reason, kReason);
  }
};

namespace {

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
size_t SeatsOf(const CountedEpoch& epoch) { return epoch.hosts.size(); }

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

// The version stands beside what a record has of its own.
template <class T>
std::string TextOf(const T& record) {
  Json json;
  json["version"] = kProtocolVersion;
  WriteFields(json, record);
  return DumpJson(json);
}

template <class T>
Status Read(const Json& json, T& record) {
  return ReadOnlyFields(json, record, 1);
}
Status Read(const Json& json, MemberSlot& slot) {
  if (json.contains("gone")) return Read(json, slot.tombstone.emplace());
  return Read(json, slot.record.emplace());
}

template <class T>
Result<T> ParseRecord(std::string_view key, std::string_view text) {
  const auto parse = [&]() -> Result<T> {
    KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
    KEEL_TRY(CheckVersion(json));
    T record;
    KEEL_TRY(Read(json, record));
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
  seat.lacks = false;
  return seat;
}

MemberRecord WithoutStandings(MemberRecord record) {
  for (SeatRecord& seat : record.seats) seat = WithoutStanding(std::move(seat));
  record.blame.checks = {};
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

ToldEpoch ToldBy(std::string_view incarnation, const EpochRecord& epoch) {
  ToldEpoch told;
  told.number = epoch.number;
  told.first = epoch.first;
  told.id = epoch.id;
  told.hosts = static_cast<int>(epoch.hosts.size());
  told.restarts = epoch.restarts;
  told.restarts_recent = epoch.restarts_recent;
  for (const EpochHost& host : epoch.hosts) {
    if (host.incarnation == epoch.coordinator) told.keeper = host.incarnation;
    if (host.incarnation == incarnation) told.deaths = host.deaths;
  }
  return told;
}

CountedEpoch CountedOf(const EpochRecord& epoch) {
  CountedEpoch counted{epoch.number, epoch.id, epoch.coordinator, {}, epoch.by_lease};
  for (const EpochHost& host : epoch.hosts) counted.hosts.push_back(host.incarnation);
  return counted;
}

bool IsSameBoard(const BoardPlace& a, const BoardPlace& b) {
  return a.term == b.term && a.by == b.by;
}

// The address decides between two heirs that opened a board of the same term, neither of which has
// formed an epoch.
bool IsAhead(const BoardPlace& a, const BoardPlace& b) {
  return std::tie(a.epoch, a.term, a.address) > std::tie(b.epoch, b.term, b.address);
}

std::string PlaceText(const BoardPlace& place) {
  return "term " + std::to_string(place.term) + " at " + Shown(place.address);
}

const EpochHost* EpochRecord::FindHost(int64_t slot, std::string_view incarnation) const {
  for (const EpochHost& host : hosts) {
    if (host.slot == slot && host.incarnation == incarnation) return &host;
  }
  return nullptr;
}

const ShunnedHost* ShunnedRecord::FindLauncher(std::string_view incarnation) const {
  const auto at = std::find_if(hosts.begin(), hosts.end(), [&](const ShunnedHost& one) {
    return one.incarnation == incarnation;
  });
  return at != hosts.end() ? &*at : nullptr;
}

const ShunnedHost* ShunnedRecord::FindMachine(std::string_view machine) const {
  if (machine.empty()) return nullptr;
  const auto at = std::find_if(hosts.begin(), hosts.end(), [&](const ShunnedHost& one) {
    return one.machine == machine;
  });
  return at != hosts.end() ? &*at : nullptr;
}

void ShunnedRecord::Add(ShunnedHost host) {
  if (hosts.size() >= kShunnedMax) hosts.erase(hosts.begin());
  hosts.push_back(std::move(host));
}

std::string MemberText(const MemberRecord& record) { return TextOf(record); }
std::string TombstoneText(const Tombstone& tombstone) { return TextOf(tombstone); }
std::string EpochText(const EpochRecord& record) { return TextOf(record); }
std::string BreakText(const BreakRecord& record) { return TextOf(record); }
std::string StopText(const StopRecord& record) { return TextOf(record); }
std::string EndText(const EndRecord& record) { return TextOf(record); }
std::string ShunnedText(const ShunnedRecord& record) { return TextOf(record); }
std::string SuccessionText(const SuccessionRecord& record) { return TextOf(record); }
std::string BoardPlaceText(const BoardPlace& place) { return TextOf(place); }
std::string CountedEpochText(const CountedEpoch& epoch) { return TextOf(epoch); }
std::string LinkText(const LinkRecord& link) { return TextOf(link); }

Result<MemberSlot> ParseMemberSlot(std::string_view key, std::string_view text) {
  Result<MemberSlot> slot = ParseRecord<MemberSlot>(key, text);
  if (slot.ok()) return slot;
  std::optional<Tombstone> tombstone = ReadOtherTombstone(text);
  if (!tombstone) return slot;
  return MemberSlot{std::nullopt, std::move(tombstone)};
}

Result<EpochRecord> ParseEpoch(std::string_view key, std::string_view text) {
  return ParseRecord<EpochRecord>(key, text);
}
Result<BreakRecord> ParseBreak(std::string_view key, std::string_view text) {
  return ParseRecord<BreakRecord>(key, text);
}
Result<StopRecord> ParseStop(std::string_view key, std::string_view text) {
  return ParseRecord<StopRecord>(key, text);
}
Result<EndRecord> ParseEnd(std::string_view key, std::string_view text) {
  return ParseRecord<EndRecord>(key, text);
}
Result<ShunnedRecord> ParseShunned(std::string_view key, std::string_view text) {
  return ParseRecord<ShunnedRecord>(key, text);
}

Result<SuccessionRecord> ParseSuccession(std::string_view key, std::string_view text) {
  return ParseRecord<SuccessionRecord>(key, text);
}
Result<BoardPlace> ParseBoardPlace(std::string_view key, std::string_view text) {
  return ParseRecord<BoardPlace>(key, text);
}
Result<CountedEpoch> ParseCountedEpoch(std::string_view key, std::string_view text) {
  return ParseRecord<CountedEpoch>(key, text);
}
Result<LinkRecord> ParseLink(std::string_view name, std::string_view text) {
  return ParseRecord<LinkRecord>(name, text);
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
