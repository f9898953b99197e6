// One poll of a member: it reads what is new on the board, then writes what is to be written.
#include "elastic/board/member.h"

#include <algorithm>

namespace keel {
namespace {

// Reports the value of `key` if it is new. It counts as seen only once it could be parsed.
template <class Report>
Status ReadFresh(const BoardSnapshot& board, const std::string& key, std::string& seen,
                 Report report) {
  const std::string* const text = board.Of(key);
  if (text == nullptr || *text == seen || *text == kNothingYet) return Ok();
  KEEL_TRY(report(key, *text));
  seen = *text;
  return Ok();
}

}  // namespace

Member::Step Member::Poll(Store& store, TimePoint now) {
  Step step;
  const std::string before = generation_;
  step.status = Run(store, now, step);
  if (!step.status.ok() && other_) RefuseBoard(*other_, step);
  const bool is_new = slot_ == std::nullopt && generation_ != before;
  next_poll_ = is_new ? now : now + config_.poll_interval;
  return step;
}

void Member::Publish(const MemberRecord& record) {
  record_ = record;
  text_ = MemberText(record);
}

bool Member::settled() const {
  return breaks_.empty() && !hurry_ && (!record_ || text_ == written_);
}

Status Member::Run(Store& store, TimePoint now, Step& step) {
  if (refused_) return Ok();
  if (!slot_) {
    KEEL_TRY_ASSIGN(const bool there, FindGeneration(store));
    if (!there) return Ok();  // the coordinator has not opened the job yet
    KEEL_TRY(CheckProtocol(store, step));
    if (refused_) return Ok();
    // It registers before it reads: an epoch that names the slot must not be reported before the
    // slot.
    if (may_register_ && record_) KEEL_TRY(Register(store, step));
  }
  KEEL_TRY_ASSIGN(const bool ours, Read(store, step));
  if (!ours || !slot_) return Ok();
  KEEL_TRY(WriteBreaks(store));
  KEEL_TRY(Write(store, step));
  return Beat(store, now, step);
}

Result<bool> Member::FindGeneration(Store& store) {
  KEEL_TRY_ASSIGN(const auto generation, store.Get(GenerationKey(config_.job)));
  if (!generation) return false;
  if (*generation != generation_) EnterGeneration(*generation);
  return true;
}

// Reads the version of the protocol before anything else is read or written in that generation.
Status Member::CheckProtocol(Store& store, Step& step) {
  if (is_checked_) return Ok();
  const std::string key = ProtocolKey(config_.job);
  KEEL_TRY_ASSIGN(const auto text, store.Get(key));
  const Result<int64_t> version = text ? ParseCount(key, *text) : Result<int64_t>(kProtocolVersion);
  if (!version.ok()) return version.error();
  is_checked_ = *version == kProtocolVersion;
  if (!is_checked_) RefuseBoard(*version, step);
  return Ok();
}

void Member::RefuseBoard(int64_t version, Step& step) {
  refused_ = true;
  LoseSlot({Tombstone::Why::kRefused, record_ ? record_->incarnation : "",
            "the coordinator of the job speaks " + OtherVersionText(version)},
           step);
  step.status = Ok();
}

// Notes the version of a record that could not be parsed, which may be the reason.
template <class T>
Result<T> Member::Noted(Result<T> parsed, const std::string& text) {
  if (parsed.ok()) return parsed;
  if (const auto other = ReadOtherRecord(text)) other_ = other->version;
  return parsed;
}

void Member::EnterGeneration(const std::string& generation) {
  ForgetBoard();
  generation_ = generation;
  keys_ = BoardKeys(config_.job, generation_);
}

void Member::ForgetBoard() {
  slot_.reset();
  written_.clear();
  beaten_.reset();
  tried_slot_.reset();
  is_checked_ = false;
  epoch_ = 0;
  epoch_id_.clear();
  break_ = joining_ = stop_ = end_ = presence_ = kind_ = "";
}

// Returns false if the board is no more the one that this member knows. The next poll goes on with
// the new one.
Result<bool> Member::Read(Store& store, Step& step) {
  const std::string generation_key = GenerationKey(config_.job);
  std::vector<std::string> keys = {generation_key, keys_.Kind(), keys_.Presence(),
                                   keys_.NewestEpoch(), keys_.Joining(), keys_.Stop(),
                                   keys_.End()};
  if (slot_) keys.push_back(keys_.Member(*slot_));
  if (!epoch_id_.empty()) keys.push_back(keys_.Break(epoch_id_));
  KEEL_TRY_ASSIGN(const BoardSnapshot board, BoardSnapshot::Take(store, keys));
  const std::string* const generation = board.Of(generation_key);
  if (generation == nullptr || *generation != generation_) {
    if (generation != nullptr) EnterGeneration(*generation);
    return false;
  }
  const std::string* const mine = slot_ ? board.Of(keys_.Member(*slot_)) : nullptr;
  if (mine != nullptr) KEEL_TRY(ReadMine(*mine, step));
  KEEL_TRY(ReadFresh(board, keys_.Presence(), presence_, [&](const auto&, const auto& text) {
    step.events.push_back(PresenceSeen{text});
    return Ok();
  }));
  if (!epoch_id_.empty()) {
    KEEL_TRY(ReadFresh(board, keys_.Break(epoch_id_), break_,
                       [&](const auto& key, const auto& text) -> Status {
      KEEL_TRY_ASSIGN(BreakRecord record, Noted(ParseBreak(key, text), text));
      step.events.push_back(BreakSeen{std::move(record)});
      return Ok();
    }));
  }
  const std::string* const newest = board.Of(keys_.NewestEpoch());
  if (newest != nullptr) KEEL_TRY(ReadEpoch(store, *newest, step));
  KEEL_TRY(ReadOfJob(board, step));
  return true;
}

// The job's kind is reported after the epoch. In the other order the host would start workers that
// wait for an epoch, instead of those of this one.
Status Member::ReadOfJob(const BoardSnapshot& board, Step& step) {
  KEEL_TRY(ReadFresh(board, keys_.Kind(), kind_, [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(const JobKind kind, ParseJobKind(key, text));
    step.events.push_back(KindKnown{kind});
    return Ok();
  }));
  KEEL_TRY(ReadFresh(board, keys_.Joining(), joining_,
                     [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(const int64_t epoch, ParseCount(key, text));
    step.events.push_back(JoiningSeen{epoch});
    return Ok();
  }));
  KEEL_TRY(ReadFresh(board, keys_.Stop(), stop_, [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(StopRecord stop, Noted(ParseStop(key, text), text));
    step.events.push_back(StopSeen{std::move(stop)});
    return Ok();
  }));
  return ReadFresh(board, keys_.End(), end_, [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(EndRecord end, Noted(ParseEnd(key, text), text));
    step.events.push_back(EndSeen{std::move(end)});
    return Ok();
  });
}

// The slot may hold this member's former record, if the answer to the newest was lost, or a
// tombstone. It never holds another member's record.
Status Member::ReadMine(const std::string& text, Step& step) {
  if (text == written_) return Ok();
  KEEL_TRY_ASSIGN(const MemberSlot slot, ParseMemberSlot(keys_.Member(*slot_), text));
  if (slot.tombstone) {
    LoseSlot(*slot.tombstone, step);
  } else {
    written_ = text;
  }
  return Ok();
}

void Member::LoseSlot(const Tombstone& tombstone, Step& step) {
  slot_.reset();
  written_.clear();
  beaten_.reset();
  breaks_.clear();
  may_register_ = false;
  step.events.push_back(Buried{tombstone});
}

Status Member::ReadEpoch(Store& store, const std::string& text, Step& step) {
  KEEL_TRY_ASSIGN(const int64_t number, ParseCount(keys_.NewestEpoch(), text));
  if (number == epoch_) return Ok();
  const std::string key = keys_.Epoch(number);
  KEEL_TRY_ASSIGN(const auto text_there, store.Get(key));
  if (!text_there) {
    return Error{Code::kInvalid, "the board names epoch " + text + ", but has no key " + key};
  }
  KEEL_TRY_ASSIGN(EpochRecord record, Noted(ParseEpoch(key, *text_there), *text_there));
  const std::string break_key = keys_.Break(record.id);
  KEEL_TRY_ASSIGN(const auto break_there, store.Get(break_key));
  std::optional<BreakRecord> broken;
  if (break_there && *break_there != kNothingYet) {
    KEEL_TRY_ASSIGN(broken, ParseBreak(break_key, *break_there));
  }
  epoch_ = number;
  epoch_id_ = record.id;
  break_ = broken ? *break_there : "";
  step.events.push_back(EpochSeen{std::move(record)});
  if (broken) step.events.push_back(BreakSeen{std::move(*broken)});
  return Ok();
}

// If the answer to the request for a slot is lost, that slot stays empty for ever. If the answer to
// the writing of the record is lost, the same slot is tried again.
Status Member::Register(Store& store, Step& step) {
  if (!tried_slot_) {
    KEEL_TRY_ASSIGN(const int64_t given, store.Add(keys_.Slots(), 1));
    tried_slot_ = given - 1;
  }
  const std::string key = keys_.Member(*tried_slot_);
  KEEL_TRY_ASSIGN(const Store::Outcome outcome, store.CompareSet(key, std::nullopt, text_));
  const std::string there = outcome.now.value_or("");
  if (!outcome.holds_desired) {
    KEEL_TRY_ASSIGN(const MemberSlot slot, ParseMemberSlot(key, there));
    if (slot.tombstone) {   // it was taken for dead meanwhile: the next poll takes another slot
      tried_slot_.reset();
      if (slot.tombstone->why == Tombstone::Why::kRefused) LoseSlot(*slot.tombstone, step);
      return Ok();
    }
    if (slot.record->incarnation != record_->incarnation) {
      return Error{Code::kInvalid, "store key " + key + " was written by " +
                                       slot.record->incarnation + ", who was not given that slot"};
    }
  }
  slot_ = tried_slot_;
  tried_slot_.reset();
  written_ = there;
  hurry_ = true;
  step.events.push_back(Registered{*slot_});
  return Ok();
}

Status Member::WriteBreaks(Store& store) {
  while (!breaks_.empty()) {
    const BreakRecord& record = breaks_.begin()->second;
    const std::string key = keys_.Break(record.id);
    KEEL_TRY(WriteOnce(store, key, BreakText(record)));
    breaks_.erase(breaks_.begin());   // this one is on the board, or an earlier one stands
    hurry_ = true;
  }
  return Ok();
}

Status Member::Write(Store& store, Step& step) {
  while (text_ != written_) {
    KEEL_TRY_ASSIGN(const Store::Outcome outcome,
                    store.CompareSet(keys_.Member(*slot_), written_, text_));
    if (outcome.holds_desired) {
      KEEL_TRY_ASSIGN(const MemberSlot before, ParseMemberSlot(keys_.Member(*slot_), written_));
      hurry_ |= WithoutStandings(*before.record) != WithoutStandings(*record_);
      written_ = text_;
    } else {
      KEEL_TRY(ReadMine(outcome.now.value_or(""), step));
      if (!slot_) return Ok();
    }
  }
  if (hurry_) {
    KEEL_TRY(store.Add(keys_.News(), 1));
    hurry_ = false;
    step.news = true;
  }
  return Ok();
}

Status Member::Beat(Store& store, TimePoint now, Step& step) {
  if (!slot_ || (beaten_ && now - *beaten_ < config_.beat_interval)) return Ok();
  KEEL_TRY(store.Add(keys_.Beat(*slot_), 1));
  beaten_ = now;
  step.beat = true;
  return Ok();
}

}  // namespace keel
