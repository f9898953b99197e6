// One poll of the coordinator: it reads what changed and notes when, then decides and writes until
// there is nothing left to do.
#include "elastic/board/coordinator.h"

#include <algorithm>

#include "elastic/board/snapshot.h"

namespace keel {
namespace {

constexpr size_t kStepTimesKept = 31;
// Each job has too few hosts for a moment as it begins. Only a longer wait for hosts is logged.
constexpr Duration kHostsPatience = std::chrono::seconds(1);

// A poll that carries out more decisions than this is an endless loop, and our bug.
size_t DecisionsMax(size_t members) { return 2 * members + 16; }

}  // namespace

Coordinator::Coordinator(CoordinatorConfig config, Random random, OpenEpochStore open_epoch_store)
    : config_(std::move(config)),
      random_(std::move(random)),
      open_epoch_store_(std::move(open_epoch_store)),
      generation_(RandomId(random_, 16)),
      keys_(config_.job, generation_) {
  view_.coordinator = config_.incarnation;
}

Coordinator::Step Coordinator::Poll(Store& store, TimePoint now) {
  Step step;
  const auto poll = [&]() -> Status {
    if (!opened_) KEEL_TRY(Open(store, now));
    Forgive(now);
    KEEL_TRY_ASSIGN(const bool due, Due(store, now));
    if (!due) return Ok();
    KEEL_TRY(Read(store, now));
    if (end_) {
      AwaitMembers(now);
      return Ok();
    }
    KEEL_TRY(NoteKind(store));
    return DecideAll(store, now, step);
  };
  step.status = poll();
  if (!step.status.ok()) next_read_ = now;  // only a part may have been read, so all is read again
  next_poll_ = std::min(now + config_.poll_interval, std::max(now, ask_again_));
  return step;
}

Status Coordinator::Open(Store& store, TimePoint now) {
  KEEL_TRY(store.Set(keys_.Presence(), config_.presence));
  KEEL_TRY(store.Set(keys_.NewestEpoch(), "0"));
  for (const std::string& key : {keys_.Kind(), keys_.Joining(), keys_.Stop(), keys_.End()}) {
    KEEL_TRY(store.Set(key, kNothingYet));
  }
  KEEL_TRY(store.Set(ProtocolKey(config_.job), std::to_string(kProtocolVersion)));
  KEEL_TRY(store.Set(GenerationKey(config_.job), generation_));
  opened_ = true;
  view_.opened = view_.idle_since = last_poll_ = next_read_ = now;
  return Ok();
}

// If this process was suspended, or the store did not answer, no beat could be seen in the gap. So
// the gap counts against nobody.
void Coordinator::Forgive(TimePoint now) {
  const Duration gap = now - last_poll_;
  last_poll_ = now;
  if (gap < config_.policy.beat_limit / 3) return;
  for (HostView& host : view_.hosts) {
    host.heard = host.heard + gap;
    if (host.presence_closed) host.presence_closed = now;
  }
  if (view_.epoch) view_.epoch->moved = view_.epoch->moved + gap;
}

// Whether to read everything: if there is news, if it is time, or if a wait is over.
Result<bool> Coordinator::Due(Store& store, TimePoint now) {
  KEEL_TRY_ASSIGN(const auto text, store.Get(keys_.News()));
  KEEL_TRY_ASSIGN(const int64_t news,
                  text ? ParseCount(keys_.News(), *text) : Result<int64_t>(int64_t{0}));
  if (news == news_ && now < next_read_ && now < ask_again_) return false;
  news_ = news;
  return true;
}

// Members are read before breaks. A host reports a break before it promises to be outside, so a
// promise that was read has its break on the board. If breaks were read first, an epoch that broke
// in between would look as if all had parked at a boundary.
Status Coordinator::Read(Store& store, TimePoint now) {
  KEEL_TRY_ASSIGN(const auto slots_text, store.Get(keys_.Slots()));
  KEEL_TRY_ASSIGN(const int64_t slots, slots_text ? ParseCount(keys_.Slots(), *slots_text)
                                                  : Result<int64_t>(int64_t{0}));
  slots_ = std::max(slots_, slots);
  KEEL_TRY(ReadMembers(store, now));
  KEEL_TRY(ReadWishes(store, now));
  NoteEpochState(now);
  next_read_ = now + config_.read_interval;
  return Ok();
}

Status Coordinator::ReadMembers(Store& store, TimePoint now) {
  std::vector<int64_t> slots;
  std::vector<std::string> keys;
  for (int64_t slot = 0; slot < slots_; ++slot) {
    const HostView* const host = Find(slot);
    if (host != nullptr && host->gone) continue;
    slots.push_back(slot);
    keys.push_back(keys_.Member(slot));
    keys.push_back(keys_.Beat(slot));
  }
  if (keys.empty()) return Ok();
  KEEL_TRY_ASSIGN(const auto values, store.GetMany(keys));
  for (size_t i = 0; i < slots.size(); ++i) {
    Take(slots[i], values[2 * i], values[2 * i + 1], now);
  }
  return Ok();
}

// Reads the break of the epoch, which members write as well, and the stop, which only the
// coordinator writes.
Status Coordinator::ReadWishes(Store& store, TimePoint now) {
  const std::string stop_key = keys_.Stop();
  const std::string break_key = view_.epoch ? keys_.Break(view_.epoch->record.id) : "";
  std::vector<std::string> keys = {stop_key};
  if (view_.epoch) keys.push_back(break_key);
  KEEL_TRY_ASSIGN(const BoardSnapshot board, BoardSnapshot::Take(store, keys));
  const std::string* const stop = board.Of(stop_key);
  if (stop != nullptr && *stop != kNothingYet && !view_.stop) {
    KEEL_TRY_ASSIGN(view_.stop, ParseStop(stop_key, *stop));
    view_.stopped_at = now;
  }
  const std::string* const broken = view_.epoch ? board.Of(break_key) : nullptr;
  if (broken != nullptr && *broken != kNothingYet && !view_.epoch->broken) {
    KEEL_TRY_ASSIGN(BreakRecord record, ParseBreak(break_key, *broken));
    NoteBreak(std::move(record), now);
  }
  return Ok();
}

void Coordinator::Take(int64_t slot, const std::optional<std::string>& text,
                       const std::optional<std::string>& beat, TimePoint now) {
  if (!text) return;  // the slot was given, but its host has not written a record yet
  HostView& host = FindOrAdd(slot, now);
  Known& known = known_[slot];
  if (*text != known.text) {
    known.text = *text;
    TakeRecord(host, known, now);
  }
  const Result<int64_t> count =
      beat ? ParseCount(keys_.Beat(slot), *beat) : Result<int64_t>(int64_t{0});
  if (!count.ok()) {
    host.unreadable = count.error().message;
  } else if (*count > known.beat) {
    known.beat = *count;
    host.heard = now;
  }
}

void Coordinator::TakeRecord(HostView& host, Known& known, TimePoint now) {
  Result<MemberSlot> parsed = ParseMemberSlot(keys_.Member(host.slot), known.text);
  if (!parsed.ok()) {
    host.unreadable = parsed.error().message;
    if (const auto other = ReadOtherRecord(known.text)) NoteOther(host, *other);
    return;
  }
  if (parsed->tombstone) {  // this coordinator wrote it, but the answer was lost
    host.gone = true;
    host.gone_reason = parsed->tombstone->reason;
    return;
  }
  const MemberRecord& record = *parsed->record;
  NoteDeaths(known, record, now);
  NotePositions(host.record, record, now);
  host.record = record;
  if (record.state == MemberState::kLeft) {
    host.gone = true;
    host.gone_reason = record.host + " left: " + record.reason;
  }
}

// Notes what the coordinator needs to refuse a member of another version.
void Coordinator::NoteOther(HostView& host, const OtherRecord& other) {
  if (host.record.incarnation.empty()) host.record.incarnation = other.incarnation;
  if (host.record.host.empty()) host.record.host = other.host;
  host.unreadable = host.record.host + " (slot " + std::to_string(host.slot) + ") speaks " +
                    OtherVersionText(other.version);
}

void Coordinator::NoteDeaths(Known& known, const MemberRecord& record, TimePoint now) {
  if (record.kind == JobKind::kInPlace) view_.kind = JobKind::kInPlace;
  // A host that no epoch has had yet spends restarts of its own, not the job's: see
  // Host::GiveUpOutside().
  const bool is_newcomer = view_.epoch && record.epoch.number == 0;
  for (; known.deaths < record.deaths; ++known.deaths) {
    if (is_newcomer) continue;
    deaths_.push_back(now);
    view_.barren = 0;   // a death spends a restart, which limits how often the job tries again
  }
  CountFailures();
}

// In a job in place, each death is a failure. Foreign workers die together, so in their jobs each
// break by a death is one failure. Both are kept, since the kind may become known only after the
// first break.
void Coordinator::CountFailures() {
  view_.failures = view_.kind == JobKind::kInPlace ? deaths_ : failed_breaks_;
}

void Coordinator::NotePositions(const MemberRecord& before, const MemberRecord& record,
                                TimePoint now) {
  if (!view_.epoch) return;
  for (size_t i = 0; i < record.seats.size(); ++i) {
    const SeatRecord& seat = record.seats[i];
    if (seat.epoch != view_.epoch->record.number) continue;
    if (i < before.seats.size() && !HasMoved(before.seats[i], seat)) continue;
    view_.epoch->moved = now;
    if (seat.position.step > furthest_.step) NoteStep(seat.position, now);
  }
}

// Positions are told only now and then, so the job may have made several steps since the last one.
void Coordinator::NoteStep(Position position, TimePoint now) {
  if (step_seen_ && furthest_.step >= 0) {
    step_times_.push_back((now - *step_seen_) / (position.step - furthest_.step));
    if (step_times_.size() > kStepTimesKept) step_times_.erase(step_times_.begin());
    std::vector<Duration> sorted = step_times_;
    std::sort(sorted.begin(), sorted.end());
    view_.median_step = sorted[sorted.size() / 2];
  }
  progressed_ |= step_seen_.has_value();
  step_seen_ = now;
  furthest_ = position;
}

void Coordinator::NoteBreak(BreakRecord record, TimePoint now) {
  const bool failure = record.cause == BreakCause::kDied || record.cause == BreakCause::kHung ||
                       record.cause == BreakCause::kReported;
  if (failure) failed_breaks_.push_back(now);
  CountFailures();
  const bool barren = record.cause == BreakCause::kReported && !progressed_;
  if (barren && view_.barren == 0) view_.barren_since = now;
  view_.barren = barren ? view_.barren + 1 : 0;
  view_.epoch->broken = std::move(record);
  view_.idle_since = now;
}

// Notes when the first worker parked at a boundary, and since when every host has been outside.
void Coordinator::NoteEpochState(TimePoint now) {
  if (!view_.epoch || view_.epoch->broken) return;
  EpochView& epoch = *view_.epoch;
  bool all_outside = true;
  for (const EpochHost& member : epoch.record.hosts) {
    const HostView* const host = Find(member.slot, member.incarnation);
    if (host == nullptr) continue;
    all_outside = all_outside && host->record.outside >= epoch.record.number;
    for (const SeatRecord& seat : host->record.seats) {
      const bool parked = seat.state == SeatState::kParked && seat.epoch == epoch.record.number;
      if (parked && !epoch.parked) epoch.parked = now;
    }
  }
  if (!all_outside) view_.idle_since = now;
}

Status Coordinator::NoteKind(Store& store) {
  if (kind_written_ || view_.kind != JobKind::kInPlace) return Ok();
  KEEL_TRY(store.Set(keys_.Kind(), std::string(JobKindName(view_.kind))));
  kind_written_ = true;
  return Ok();
}

HostView* Coordinator::Find(int64_t slot) {
  const auto at = std::lower_bound(
      view_.hosts.begin(), view_.hosts.end(), slot,
      [](const HostView& host, int64_t wanted) { return host.slot < wanted; });
  return at != view_.hosts.end() && at->slot == slot ? &*at : nullptr;
}

HostView* Coordinator::Find(int64_t slot, const std::string& incarnation) {
  HostView* const host = Find(slot);
  return host != nullptr && host->record.incarnation == incarnation ? host : nullptr;
}

HostView& Coordinator::FindOrAdd(int64_t slot, TimePoint now) {
  if (HostView* const host = Find(slot)) return *host;
  HostView host;
  host.slot = slot;
  host.arrived = host.heard = now;
  view_.hosts.push_back(std::move(host));
  std::sort(view_.hosts.begin(), view_.hosts.end(),
            [](const HostView& a, const HostView& b) { return a.slot < b.slot; });
  return *Find(slot);
}

Status Coordinator::DecideAll(Store& store, TimePoint now, Step& step) {
  // The answer to the writing of this epoch was lost. Members may be in it already, so it comes
  // before all else.
  if (const std::optional<Decision> decision = unwritten_) {
    KEEL_TRY(WriteEpoch(store, *decision, now));
    step.look = true;
    step.decisions.push_back(*decision);
  }
  for (size_t made = 0;; ++made) {
    KEEL_CHECK(made <= DecisionsMax(view_.hosts.size()),
               "deciding without end: " << step.decisions.back().detail);
    const Decision decision = Decide(view_, config_.policy, now);
    if (decision.verdict == Decision::Verdict::kWait) {
      NoteWait(decision, now, step);
      return Ok();
    }
    KEEL_TRY(Apply(store, decision, now));
    step.look = true;
    step.decisions.push_back(decision);
    if (end_) return Ok();
  }
}

void Coordinator::NoteWait(const Decision& decision, TimePoint now, Step& step) {
  ask_again_ = decision.until;
  KEEL_CHECK(ask_again_ > now, "a wait that is over: " << decision.detail);
  if (last_wait_ != decision.reason) {
    last_wait_ = decision.reason;
    wait_since_ = now;
    wait_told_ = false;
  }
  if (wait_told_) return;
  const TimePoint tell_at =
      wait_since_ + (decision.reason == Reason::kHostsMissing ? kHostsPatience : Duration(0));
  if (now < tell_at) {
    ask_again_ = std::min(ask_again_, tell_at);
    return;
  }
  step.decisions.push_back(decision);
  wait_told_ = true;
}

Status Coordinator::Apply(Store& store, const Decision& decision, TimePoint now) {
  switch (decision.verdict) {
    case Decision::Verdict::kWait: return Ok();
    case Decision::Verdict::kExpire:
    case Decision::Verdict::kRefuse: return Bury(store, decision);
    case Decision::Verdict::kTakeUp:
    case Decision::Verdict::kForm: return WriteEpoch(store, decision, now);
    case Decision::Verdict::kBreak: return WriteBreak(store, decision, now);
    case Decision::Verdict::kAnnounce:
      KEEL_TRY(store.Set(keys_.Joining(), std::to_string(view_.epoch->record.number)));
      view_.epoch->announced = true;
      return Ok();
    case Decision::Verdict::kStop:
      KEEL_TRY(WriteOnce(store, keys_.Stop(), StopText(decision.stop)));
      view_.stop = decision.stop;
      view_.stopped_at = now;
      return Ok();
    case Decision::Verdict::kEnd: return WriteEnd(store, decision, now);
  }
  return Ok();
}

// Replaces a member's record by a tombstone. It is a plain write, so that the tombstone stands
// whatever the member writes at the same moment.
Status Coordinator::Bury(Store& store, const Decision& decision) {
  HostView& host = *Find(decision.slot);
  const bool refused = decision.verdict == Decision::Verdict::kRefuse;
  const Tombstone tombstone{refused ? Tombstone::Why::kRefused : Tombstone::Why::kExpired,
                            host.record.incarnation, decision.detail};
  KEEL_TRY(store.Set(keys_.Member(decision.slot), TombstoneText(tombstone)));
  host.gone = true;
  host.gone_reason = decision.detail;
  return Ok();
}

// Writes the epoch's record first, then the number that names it. If an earlier attempt wrote the
// record, that one stands, for somebody may have read it.
Status Coordinator::WriteEpoch(Store& store, const Decision& decision, TimePoint now) {
  EpochRecord record = decision.epoch;
  const bool taken_up = decision.verdict == Decision::Verdict::kTakeUp;
  if (!taken_up) record.id = RandomId(random_, 16);
  const std::string key = keys_.Epoch(record.number);
  KEEL_TRY_ASSIGN(const auto there, store.Get(key));
  if (there) {
    KEEL_TRY_ASSIGN(record, ParseEpoch(key, *there));
  } else {
    KEEL_TRY_ASSIGN(record.store, open_epoch_store_(record));
    unwritten_ = decision;
    // The key of its break comes before the record, for members ask for both in one question, and
    // once the record is there somebody may have a break to write.
    KEEL_TRY(store.CompareSet(keys_.Break(record.id), std::nullopt, kNothingYet));
    KEEL_TRY_ASSIGN(const std::string now_there, WriteOnce(store, key, EpochText(record)));
    KEEL_TRY_ASSIGN(record, ParseEpoch(key, now_there));
  }
  KEEL_TRY(store.Set(keys_.NewestEpoch(), std::to_string(record.number)));
  unwritten_.reset();
  // The former epoch ended at a boundary, so its group could be built.
  if (view_.epoch && !view_.epoch->broken) view_.barren = 0;
  view_.epoch = EpochView{};
  view_.epoch->record = std::move(record);
  view_.epoch->moved = now;
  view_.epoch->taken_up = taken_up;
  view_.epoch->incomplete = decision.incomplete;
  step_seen_.reset();
  progressed_ = false;
  furthest_ = {};
  return Ok();
}

Status Coordinator::WriteBreak(Store& store, const Decision& decision, TimePoint now) {
  BreakRecord record = decision.broken;
  record.by = config_.incarnation;
  const std::string key = keys_.Break(record.id);
  KEEL_TRY_ASSIGN(const std::string now_there, WriteOnce(store, key, BreakText(record)));
  KEEL_TRY_ASSIGN(record, ParseBreak(key, now_there));  // the first reason stands
  NoteBreak(std::move(record), now);
  return Ok();
}

Status Coordinator::WriteEnd(Store& store, const Decision& decision, TimePoint now) {
  EndRecord record{decision.code, decision.detail};
  KEEL_TRY_ASSIGN(const std::string there, WriteOnce(store, keys_.End(), EndText(record)));
  KEEL_TRY_ASSIGN(record, ParseEnd(keys_.End(), there));
  end_ = std::move(record);
  ended_at_ = now;
  ask_again_ = kNever;
  return Ok();
}

// A member that has read the end, and whose workers have ended, writes that it left: then it is
// gone.
void Coordinator::AwaitMembers(TimePoint now) {
  bool all = true;
  for (const HostView& host : view_.hosts) {
    all = all && (host.gone || now - host.heard >= config_.policy.beat_limit);
  }
  done_ = done_ || all || now - ended_at_ >= config_.close_limit;
}

void Coordinator::PresenceOpened(int64_t slot, const std::string& incarnation) {
  if (HostView* const host = Find(slot, incarnation)) host->presence_closed.reset();
}

void Coordinator::PresenceClosed(int64_t slot, const std::string& incarnation, TimePoint now) {
  HostView* const host = Find(slot, incarnation);
  if (host == nullptr) return;
  if (!host->presence_closed) host->presence_closed = now;
  ask_again_ = std::min(ask_again_, now + config_.policy.presence_grace);
  next_poll_ = std::min(next_poll_, now + config_.policy.presence_grace);
}

}  // namespace keel
