// One poll of a member: it reads what is new on the board, then writes what is to be written.
#include "elastic/board/client.h"

#include <algorithm>

#include "base/text.h"
#include "elastic/board/peer_seal.h"
#include "elastic/decisions/follow.h"
#include "store/seal/sealed_value.h"

namespace keel {
namespace {

constexpr int kBeatTriesMost = 4;
// Three ways there and back, and whoever keeps a board may be busy.
constexpr Duration kVouchLimit = std::chrono::seconds(2);

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

BoardClient::Step BoardClient::Poll(Store& store, TimePoint now) {
  Step step;
  const std::string before = generation_.name;
  step.status = Run(store, now, step);
  if (!step.status.ok() && other_) RefuseBoard(*other_, step);
  if (!awaits_coordinator_) {
    unopened_since_.reset();
  } else if (!unopened_since_) {
    unopened_since_ = now;
  }
  const bool is_new = !registration_ && generation_.name != before;
  next_poll_ = is_new ? now : now + config_.poll_interval;
  return step;
}

void BoardClient::Publish(MemberRecord record, CountedEpochs counted) {
  wanted_ = Published{std::move(record), ""};
  if (counted != nullptr) counted_ = std::move(counted);
}

bool BoardClient::settled() const {
  const bool is_written = registration_ && wanted_ && registration_->written.text == wanted_->text;
  return breaks_.empty() && !offer_ && !hurry_ && (!wanted_ || is_written);
}

Status BoardClient::Run(Store& store, TimePoint now, Step& step) {
  if (refused_) return Ok();
  if (wanted_ && wanted_->text.empty()) wanted_->text = MemberText(wanted_->record);
  // Where another board is, it has none of the keys that would be read.
  if (!registration_ || is_connection_new_) {
    KEEL_TRY_ASSIGN(const bool there, FindGeneration(store, now, step));
    if (!there) return Ok();  // the coordinator has not opened the job yet
    is_connection_new_ = false;
  }
  if (!registration_) {
    KEEL_TRY(CheckProtocol(store, step));
    if (refused_) return Ok();
    // It registers before it reads: an epoch that names the slot must not be reported before the
    // slot.
    if (may_register_ && wanted_) KEEL_TRY(Register(store, step));
  }
  KEEL_TRY_ASSIGN(const bool ours, Read(store, step));
  if (!ours || !registration_) return Ok();
  KEEL_TRY(WriteBreaks(store));
  KEEL_TRY(WriteOffer(store));
  KEEL_TRY(WriteCounted(store));
  KEEL_TRY(Write(store, step));
  return registration_ ? Beat(store, now, step) : Ok();
}

Result<bool> BoardClient::FindGeneration(Store& store, TimePoint now, Step& step) {
  KEEL_TRY_ASSIGN(const auto generation, store.Get(GenerationKey(config_.job)));
  awaits_coordinator_ = !generation;
  if (!generation) {
    KEEL_TRY(RefuseIfStrange(store, now, step));
    return false;
  }
  strange_since_.reset();
  const bool is_same = *generation == generation_.name;
  // Over a new connection, somebody else may be where the board was.
  if (is_same && !(is_connection_new_ && config_.vouches)) return true;
  KEEL_TRY_ASSIGN(const bool is_kept, IsVouchedFor(store, *generation, kVouchLimit));
  if (!is_kept) {
    return Error{Code::kTimeout, "whoever keeps the board there does not say so at his peer port, "
                                 "which a job with a token needs: either it is a board of the "
                                 "past, or that port cannot be reached from here"};
  }
  if (!is_same) EnterGeneration(*generation);
  return true;
}

Result<bool> BoardClient::IsVouchedFor(Store& store, const std::string& generation,
                                       Duration limit) const {
  if (!config_.vouches) return true;
  KEEL_TRY_ASSIGN(const auto peer, store.Get(BoardKeys(config_.job, generation).Presence()));
  return peer && config_.vouches(*peer, generation, limit);
}

// Where only sealed values count, a store has no generation for us whose seal is of another token,
// or missing. A stranger may have spoilt it a moment ago, and who was here before has the right
// token.
Status BoardClient::RefuseIfStrange(Store& store, TimePoint now, Step& step) {
  if (!config_.vouches || had_board_) return Ok();
  const Status is_there = store.Wait({GenerationKey(config_.job)}, Duration(0));
  if (!is_there.ok()) {
    strange_since_.reset();
    return is_there.error().code == Code::kTimeout ? Ok() : is_there;
  }
  if (!strange_since_) strange_since_ = now;
  if (now - *strange_since_ < kOtherTokenPatience) return Ok();
  Refuse("the board of job '" + config_.job + "' there is not sealed by the token that this "
             "launcher has: " + std::string(kOtherTokenCure),
         step);
  return Ok();
}

// Reads the version of the protocol before anything else is read or written in that generation.
Status BoardClient::CheckProtocol(Store& store, Step& step) {
  if (generation_.is_checked) return Ok();
  const std::string key = ProtocolKey(config_.job);
  KEEL_TRY_ASSIGN(const auto text, store.Get(key));
  if (text && LooksSealed(*text)) {
    Refuse("job '" + config_.job + "' is closed to launchers without its token: give this one the "
               "same by KEELRUN_TOKEN or --token-file",
           step);
    return Ok();
  }
  const Result<int64_t> version = text ? ParseCount(key, *text) : Result<int64_t>(kProtocolVersion);
  if (!version.ok()) return version.error();
  generation_.is_checked = *version == kProtocolVersion;
  if (!generation_.is_checked) RefuseBoard(*version, step);
  return Ok();
}

void BoardClient::RefuseBoard(int64_t version, Step& step) {
  Refuse("the coordinator of the job speaks " + OtherVersionText(version), step);
}

void BoardClient::Refuse(const std::string& why, Step& step) {
  refused_ = true;
  LoseSlot({Tombstone::Why::kRefused, wanted_ ? wanted_->record.incarnation : "", why}, step);
  step.status = Ok();
}

// Notes the version of a record that could not be parsed, which may be the reason.
template <class T>
Result<T> BoardClient::Noted(Result<T> parsed, const std::string& text) {
  if (parsed.ok()) return parsed;
  if (const auto other = ReadOtherRecord(text)) other_ = other->version;
  return parsed;
}

void BoardClient::EnterGeneration(const std::string& generation) {
  registration_.reset();
  offer_.reset();   // it was for the former coordinator
  generation_ = Generation{};
  generation_.name = generation;
  generation_.keys = BoardKeys(config_.job, generation);
}

// Returns false if the board is no more the one that this member knows. The next poll goes on with
// the new one.
Result<bool> BoardClient::Read(Store& store, Step& step) {
  const std::string generation_key = GenerationKey(config_.job);
  std::vector<std::string> asked = {generation_key, keys().Kind(), keys().Presence(),
                                    keys().NewestEpoch(), keys().Joining(), keys().Stop(),
                                    keys().End(), keys().Shunned(), keys().Succession()};
  if (registration_) asked.push_back(own_key());
  Seen& seen = generation_.seen;
  if (!seen.epoch_id.empty()) asked.push_back(keys().Break(seen.epoch_id));
  KEEL_TRY_ASSIGN(const BoardSnapshot board, BoardSnapshot::Take(store, asked));
  const std::string* const generation = board.Of(generation_key);
  awaits_coordinator_ = generation == nullptr;
  if (generation == nullptr) return false;
  if (*generation != generation_.name) {
    // A member that is here must go on to beat, whatever a stranger names.
    KEEL_TRY_ASSIGN(const bool is_another, IsVouchedFor(store, *generation, kAskLimit));
    if (is_another) {
      EnterGeneration(*generation);
      return false;
    }
  }
  const std::string* const mine = registration_ ? board.Of(own_key()) : nullptr;
  if (mine != nullptr) KEEL_TRY(ReadMine(*mine, step));
  KEEL_TRY(ReadFresh(board, keys().Presence(), seen.presence, [&](const auto&, const auto& text) {
    step.events.push_back(PresenceSeen{text});
    return Ok();
  }));
  if (!seen.epoch_id.empty()) {
    KEEL_TRY(ReadFresh(board, keys().Break(seen.epoch_id), seen.broken,
                       [&](const auto& key, const auto& text) -> Status {
      KEEL_TRY_ASSIGN(BreakRecord record, Noted(ParseBreak(key, text), text));
      step.events.push_back(BreakSeen{std::move(record)});
      return Ok();
    }));
  }
  const std::string* const newest = board.Of(keys().NewestEpoch());
  if (newest != nullptr) KEEL_TRY(ReadEpoch(store, *newest, step));
  KEEL_TRY(ReadOfJob(board, step));
  KEEL_TRY(ReadSuccession(board, step));
  return true;
}

// It is reported last: whoever moves to another board has read all of this one.
Status BoardClient::ReadSuccession(const BoardSnapshot& board, Step& step) {
  return ReadFresh(board, keys().Succession(), generation_.seen.succession,
                   [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(SuccessionRecord record, Noted(ParseSuccession(key, text), text));
    step.events.push_back(SuccessionSeen{std::move(record)});
    return Ok();
  });
}

// The job's kind is reported after the epoch. In the other order the host would start workers that
// wait for an epoch, instead of those of this one.
Status BoardClient::ReadOfJob(const BoardSnapshot& board, Step& step) {
  Seen& seen = generation_.seen;
  KEEL_TRY(ReadFresh(board, keys().Kind(), seen.kind,
                     [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(const JobKind kind, ParseJobKind(key, text));
    step.events.push_back(KindKnown{kind});
    return Ok();
  }));
  KEEL_TRY(ReadFresh(board, keys().Joining(), seen.joining,
                     [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(const int64_t epoch, ParseCount(key, text));
    step.events.push_back(JoiningSeen{epoch});
    return Ok();
  }));
  KEEL_TRY(ReadFresh(board, keys().Stop(), seen.stop,
                     [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(StopRecord stop, Noted(ParseStop(key, text), text));
    step.events.push_back(StopSeen{std::move(stop)});
    return Ok();
  }));
  KEEL_TRY(ReadFresh(board, keys().Shunned(), seen.shunned,
                     [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(ShunnedRecord record, Noted(ParseShunned(key, text), text));
    step.events.push_back(ShunnedSeen{std::move(record)});
    return Ok();
  }));
  return ReadFresh(board, keys().End(), seen.end, [&](const auto& key, const auto& text) -> Status {
    KEEL_TRY_ASSIGN(EndRecord end, Noted(ParseEnd(key, text), text));
    step.events.push_back(EndSeen{std::move(end)});
    return Ok();
  });
}

// The slot may hold this member's former record, if the answer to the newest was lost, or a
// tombstone. It never holds another member's record.
Status BoardClient::ReadMine(const std::string& text, Step& step) {
  if (text == registration_->written.text) return Ok();
  KEEL_TRY_ASSIGN(const MemberSlot slot, ParseMemberSlot(own_key(), text));
  if (slot.tombstone) {
    LoseSlot(*slot.tombstone, step);
  } else {
    registration_->written = {*slot.record, text};
  }
  return Ok();
}

void BoardClient::LoseSlot(const Tombstone& tombstone, Step& step) {
  registration_.reset();
  breaks_.clear();
  may_register_ = false;
  step.events.push_back(Buried{tombstone});
}

Status BoardClient::ReadEpoch(Store& store, const std::string& text, Step& step) {
  KEEL_TRY_ASSIGN(const int64_t number, ParseCount(keys().NewestEpoch(), text));
  Seen& seen = generation_.seen;
  if (number == seen.epoch) return Ok();
  const std::string key = keys().Epoch(number);
  KEEL_TRY_ASSIGN(const auto text_there, store.Get(key));
  if (!text_there) {
    return Error{Code::kInvalid, "the board names epoch " + text + ", but has no key " + key};
  }
  KEEL_TRY_ASSIGN(EpochRecord record, Noted(ParseEpoch(key, *text_there), *text_there));
  const std::string break_key = keys().Break(record.id);
  KEEL_TRY_ASSIGN(const auto break_there, store.Get(break_key));
  std::optional<BreakRecord> broken;
  if (break_there && *break_there != kNothingYet) {
    KEEL_TRY_ASSIGN(broken, ParseBreak(break_key, *break_there));
  }
  seen.epoch = number;
  seen.epoch_id = record.id;
  generation_.counted.insert(record.id);
  seen.broken = broken ? *break_there : "";
  step.events.push_back(EpochSeen{std::move(record)});
  if (broken) step.events.push_back(BreakSeen{std::move(*broken)});
  return Ok();
}

// If the answer to the request for a slot is lost, that slot stays empty for ever. If the answer to
// the writing of the record is lost, the same slot is tried again.
Status BoardClient::Register(Store& store, Step& step) {
  std::optional<int64_t>& tried = generation_.tried_slot;
  if (!tried) {
    KEEL_TRY_ASSIGN(const int64_t given, store.Add(keys().Slots(), 1));
    if (given < 1) {
      return Error{Code::kInvalid, "store key " + keys().Slots() + " was " +
                                       std::to_string(given) + ", no number of slots"};
    }
    tried = given - 1;
  }
  KEEL_TRY(WriteCounted(store));
  generation_.promised = std::max(generation_.promised, wanted_->record.outside);
  const std::string key = keys().Member(*tried);
  KEEL_TRY_ASSIGN(const Store::Outcome outcome, store.CompareSet(key, std::nullopt, wanted_->text));
  Published there = *wanted_;
  if (!outcome.holds_desired) {
    const std::string text = outcome.now.value_or("");
    KEEL_TRY_ASSIGN(const MemberSlot slot, ParseMemberSlot(key, text));
    if (slot.tombstone) {   // it was taken for dead meanwhile: the next poll takes another slot
      tried.reset();
      // Where strangers may change the number of slots, it can be that of another host.
      const bool is_ours =
          !config_.vouches || slot.tombstone->incarnation == wanted_->record.incarnation;
      if (is_ours && slot.tombstone->why != Tombstone::Why::kExpired) {
        LoseSlot(*slot.tombstone, step);
      }
      return Ok();
    }
    if (slot.record->incarnation != wanted_->record.incarnation) {
      tried.reset();   // whoever changed the number of slots: the next poll takes another one
      return Error{Code::kInvalid, "store key " + key + " was written by " +
                                       slot.record->incarnation + ", who was not given that slot"};
    }
    there = {*slot.record, text};
  }
  registration_ = Registration{*tried, std::move(there), std::nullopt, {}};
  tried.reset();
  had_board_ = true;
  hurry_ = true;
  step.events.push_back(Registered{registration_->slot});
  return Ok();
}

Status BoardClient::WriteOffer(Store& store) {
  if (!offer_) return Ok();
  KEEL_TRY(store.Set(keys().Offer(), BoardPlaceText(*offer_)));
  offer_.reset();
  hurry_ = true;
  return Ok();
}

// A board that did not form an epoch learns here who is in it. The key comes before the record that
// names the epoch.
Status BoardClient::WriteCounted(Store& store) {
  if (counted_ == nullptr) return Ok();
  for (const CountedEpoch& epoch : *counted_) {
    if (generation_.counted.contains(epoch.id)) continue;
    // A host of many others mostly finds that one of them has written it, and need not send it.
    const std::string key = keys().Counted(epoch.id);
    KEEL_TRY_ASSIGN(const bool is_there, store.Has(key));
    if (!is_there) KEEL_TRY(WriteOnce(store, key, CountedEpochText(epoch)));
    generation_.counted.insert(epoch.id);
  }
  return Ok();
}

Status BoardClient::WriteBreaks(Store& store) {
  while (!breaks_.empty()) {
    const BreakRecord& record = breaks_.begin()->second;
    const std::string key = keys().Break(record.id);
    KEEL_TRY(WriteOnce(store, key, BreakText(record)));
    breaks_.erase(breaks_.begin());   // this one is on the board, or an earlier one stands
    hurry_ = true;
  }
  return Ok();
}

Status BoardClient::Write(Store& store, Step& step) {
  Published& written = registration_->written;
  while (wanted_->text != written.text) {
    generation_.promised = std::max(generation_.promised, wanted_->record.outside);
    KEEL_TRY_ASSIGN(const Store::Outcome outcome,
                    store.CompareSet(own_key(), written.text, wanted_->text));
    if (outcome.holds_desired) {
      hurry_ |= WithoutStandings(written.record) != WithoutStandings(wanted_->record);
      written = *wanted_;
    } else {
      KEEL_TRY(ReadMine(outcome.now.value_or(""), step));
      if (!registration_) return Ok();
    }
  }
  if (hurry_) {
    KEEL_TRY(store.Add(keys().News(), 1));
    hurry_ = false;
    step.news = true;
  }
  return Ok();
}

Status BoardClient::Beat(Store& store, TimePoint now, Step& step) {
  std::optional<TimePoint>& beaten = registration_->beaten;
  if (beaten && now - *beaten < config_.beat_interval) return Ok();
  // It proves that the board answers, which Set() would not.
  Beaten& last = registration_->last;
  const std::string key = keys().Beat(registration_->slot);
  for (int i = 0; i < kBeatTriesMost; ++i) {
    // No number is tried twice: one whose answer was lost must not pass for a new one.
    const std::string next = std::to_string(++last.count);
    KEEL_TRY_ASSIGN(const Store::Outcome outcome, store.CompareSet(key, last.text, next));
    last.text = outcome.now;
    const Result<int64_t> there = ParseInteger(outcome.now.value_or("0"));
    last.count = std::max(last.count, there.ok() ? *there : 0);
    if (!outcome.holds_desired) continue;   // an answer was lost, or a stranger wrote it
    beaten = now;
    step.beat = true;
    return Ok();
  }
  return Error{Code::kInvalid, "store key " + key + " is written by somebody else"};
}

}  // namespace keel
