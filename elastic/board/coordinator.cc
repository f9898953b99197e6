// One poll of the coordinator: it reads what changed and notes when, then decides and writes until
// there is nothing left to do.
#include "elastic/board/coordinator.h"

#include <algorithm>

#include "elastic/board/snapshot.h"

namespace keel {
namespace {

// Each job has too few hosts for a moment as it begins. Only a longer wait for hosts is logged.
constexpr Duration kHostsPatience = std::chrono::seconds(1);
constexpr Duration kClaimPause = std::chrono::seconds(1);   // after one that failed

// So much time passes for each host of the job before all of them are read anew because of news,
// and before anybody is: a thousand hosts that write one after the other must not be read a
// thousand times.
constexpr Duration kReadPace = std::chrono::microseconds(200);
constexpr Duration kPollPace = std::chrono::microseconds(10);

// Whoever was given a slot and lost the answer leaves it empty. More than so many in a row, and a
// stranger has changed the number.
constexpr int64_t kEmptySlotsMax = 4096;

// A poll that carries out more decisions than this is an endless loop, and our bug.
size_t DecisionsMax(size_t members) { return 2 * members + 16; }

}  // namespace

Coordinator::Coordinator(CoordinatorConfig config, Random random, OpenEpochStore open_epoch_store)
    : config_(std::move(config)),
      random_(std::move(random)),
      open_epoch_store_(std::move(open_epoch_store)),
      generation_(RandomId(random_, 16)),
      keys_(config_.job, generation_),
      watch_(config_.incarnation, keys_) {
  succession_.record.term = config_.term;
  succession_.record.coordinator = config_.incarnation;
  succession_.record.address = config_.address;
}

BoardPlace Coordinator::place() const {
  BoardPlace place{config_.term, config_.epoch, config_.address, config_.incarnation};
  if (view().epoch) place.epoch = std::max(place.epoch, view().epoch->record.number);
  for (const HostView& host : view().hosts) {
    place.epoch = std::max(place.epoch, host.record.epoch.number);
  }
  return place;
}

LinkRecord Coordinator::Link() const {
  LinkRecord link{place(), config_.presence};
  const std::optional<EpochView>& epoch = view().epoch;
  if (epoch && !epoch->broken && !epoch->incomplete) {
    link.epoch = epoch->record.id;
  }
  return link;
}

bool Coordinator::is_fresh() const {
  if (view().epoch) return false;
  bool is_own_here = false;   // what it was in before is known
  for (const HostView& host : view().hosts) {
    if (host.record.epoch.number > 0) return false;
    is_own_here |= host.record.incarnation == config_.incarnation;
  }
  return is_own_here;
}

bool Coordinator::is_needed() const {
  if (moved()) return false;
  return std::any_of(view().hosts.begin(), view().hosts.end(), [&](const HostView& host) {
    return !host.gone && host.record.incarnation != config_.incarnation;
  });
}

std::vector<std::string> Coordinator::PeersOutOfReach(TimePoint now) const {
  std::vector<std::string> peers;
  for (const HostView& host : view().hosts) {
    const bool is_over = host.died || host.record.state == MemberState::kLeft;
    const bool is_lately = now - host.heard < config_.policy.fence_limit;
    const bool may_live = host.gone && !is_over && is_lately;
    if (may_live && !host.record.peer.empty()) peers.push_back(host.record.peer);
  }
  if (peers.size() > kHeirsMax) peers.erase(peers.begin(), peers.end() - kHeirsMax);
  return peers;
}

Coordinator::Step Coordinator::Poll(Store& store, TimePoint now) {
  Step step;
  const auto poll = [&]() -> Status {
    if (!announced_.generation) KEEL_TRY(Open(store, now));
    NoteGap(now);
    KEEL_TRY_ASSIGN(const Reading reading, Due(store, now));
    if (reading == Reading::kNothing) return Ok();
    KEEL_TRY(Read(store, reading, now, step));
    if (ending_.record) {
      AwaitMembers(now);
      return Ok();
    }
    if (moved()) return Ok();
    KEEL_TRY(NoteKind(store));
    return DecideAndSucceed(store, now, step);
  };
  step.status = poll();
  if (!step.status.ok()) read_.next = now;  // only a part may have been read, so all is read again
  const TimePoint due = std::min(wait_.until, NextSuccessionLook(succession_));
  polls_.next = std::min(now + config_.poll_interval, std::max(now, due));
  if (!read_.poked.empty()) polls_.next = std::min(polls_.next, std::max(now, polls_.soonest));
  return step;
}

Status Coordinator::Open(Store& store, TimePoint now) {
  KEEL_TRY(store.Set(keys_.Presence(), config_.presence));
  KEEL_TRY(store.Set(keys_.NewestEpoch(), "0"));
  for (const std::string& key :
       {keys_.Kind(), keys_.Joining(), keys_.Stop(), keys_.End(), keys_.Offer()}) {
    KEEL_TRY(store.Set(key, kNothingYet));
  }
  watch_.NoteShunned(config_.shunned);
  KEEL_TRY(store.Set(keys_.Shunned(), ShunnedText(config_.shunned)));
  succession_written_ = SuccessionText(succession_.record);
  KEEL_TRY(store.Set(keys_.Succession(), succession_written_));
  // For whoever takes the role before an epoch was formed here.
  if (config_.former) KEEL_TRY(store.Set(keys_.Former(), EpochText(*config_.former)));
  KEEL_TRY(store.Set(kKeeperKey, config_.job));
  KEEL_TRY(store.Set(ProtocolKey(config_.job), std::to_string(kProtocolVersion)));
  KEEL_TRY(store.Set(GenerationKey(config_.job), generation_));
  announced_.generation = true;
  watch_.NoteOpened(now);
  if (config_.former) watch_.NoteFormer(*config_.former, now);
  polls_.last = read_.next = now;
  return Ok();
}

// If this process was suspended, or the store did not answer, no beat could be seen in the gap. So
// the gap counts against nobody.
void Coordinator::NoteGap(TimePoint now) {
  const Duration gap = now - polls_.last;
  polls_.last = now;
  if (gap >= config_.policy.beat_limit / 3) watch_.NoteGap(gap, now);
}

// What to read. All is read if there is news that no poke explains, if it is time, or if a wait is
// over; those who have poked are read at once.
Result<Coordinator::Reading> Coordinator::Due(Store& store, TimePoint now) {
  const bool is_over = now >= wait_.until || now >= NextSuccessionLook(succession_);
  const bool is_due = now >= read_.next || is_over;
  if (!is_due && now < polls_.soonest) return Reading::kNothing;
  KEEL_TRY_ASSIGN(const int64_t news, NumberAt(store, keys_.News(), 1));
  if (is_due || (news != read_.news && now >= read_.soonest)) {
    read_.news = news;
    return Reading::kAll;
  }
  return read_.poked.empty() ? Reading::kNothing : Reading::kPoked;
}

// Members are read before breaks. A host reports a break before it promises to be outside, so a
// promise that was read has its break on the board. If breaks were read first, an epoch that broke
// in between would look as if all had parked at a boundary.
Status Coordinator::Read(Store& store, Reading reading, TimePoint now, Step& step) {
  KEEL_TRY_ASSIGN(const int64_t slots, NumberAt(store, keys_.Slots(), watch_.slots()));
  read_.slots = std::clamp(slots, read_.slots, watch_.slots() + kEmptySlotsMax);
  KEEL_TRY(ReadMembers(store, reading, now));
  KEEL_TRY(ReadCounted(store));
  KEEL_TRY(ReadWishes(store, now, step));
  if (config_.is_sealed && reading == Reading::kAll) KEEL_TRY(MendOwn(store));
  watch_.NoteAllRead(now);
  const auto hosts = static_cast<int64_t>(view().hosts.size());
  polls_.soonest = now + hosts * kPollPace;
  read_.poked.clear();
  if (reading != Reading::kAll) return Ok();
  read_.soonest = now + hosts * kReadPace;
  // Until then decisions are made by beats that are as old as this read: nobody is silent by that.
  read_.next = now + std::min(config_.read_interval, config_.policy.beat_limit / 6);
  return Ok();
}

Status Coordinator::ReadMembers(Store& store, Reading reading, TimePoint now) {
  std::vector<int64_t> slots;
  std::vector<std::string> keys;
  for (int64_t slot = 0; slot < read_.slots; ++slot) {
    if (watch_.IsOver(slot)) continue;
    if (reading == Reading::kPoked && !read_.poked.contains(slot)) continue;
    slots.push_back(slot);
    keys.push_back(keys_.Member(slot));
    keys.push_back(keys_.Beat(slot));
  }
  if (keys.empty()) return Ok();
  KEEL_TRY_ASSIGN(const auto values, store.GetMany(keys));
  for (size_t i = 0; i < slots.size(); ++i) {
    watch_.NoteMember(slots[i], values[2 * i], values[2 * i + 1], now);
  }
  return Ok();
}

// Who is in the epochs that members tell of, and that this board has not formed.
Status Coordinator::ReadCounted(Store& store) {
  const std::vector<std::string> unknown = watch_.EpochsUncounted();
  if (unknown.empty()) return Ok();
  std::vector<std::string> keys;
  for (const std::string& id : unknown) keys.push_back(keys_.Counted(id));
  KEEL_TRY_ASSIGN(const auto values, store.GetMany(keys));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!values[i]) continue;
    KEEL_TRY_ASSIGN(CountedEpoch epoch, ParseCountedEpoch(keys[i], *values[i]));
    if (epoch.id == unknown[i]) watch_.NoteCounted(std::move(epoch));
  }
  return Ok();
}

// Reads the break of the epoch, which members write as well, the stop, which only the coordinator
// writes, and what other hosts offer.
Status Coordinator::ReadWishes(Store& store, TimePoint now, Step& step) {
  const std::string stop_key = keys_.Stop();
  const std::optional<EpochView>& epoch = view().epoch;
  const std::string break_key = epoch ? keys_.Break(epoch->record.id) : "";
  std::vector<std::string> keys = {stop_key, keys_.Offer()};
  if (epoch) keys.push_back(break_key);
  KEEL_TRY_ASSIGN(const BoardSnapshot board, BoardSnapshot::Take(store, keys));
  const std::string* const stop = board.Of(stop_key);
  if (stop != nullptr && *stop != kNothingYet && !view().stop) {
    KEEL_TRY_ASSIGN(StopRecord record, ParseStop(stop_key, *stop));
    watch_.NoteStop(std::move(record), now);
  }
  const std::string* const offer = board.Of(keys_.Offer());
  if (offer != nullptr && *offer != kNothingYet) {
    const Result<BoardPlace> place = ParseBoardPlace(keys_.Offer(), *offer);
    if (place.ok()) offer_ = *place;   // whoever wrote garbage offers nothing
  }
  const std::string* const broken = epoch ? board.Of(break_key) : nullptr;
  if (broken != nullptr && *broken != kNothingYet && !epoch->broken) {
    KEEL_TRY_ASSIGN(BreakRecord record, ParseBreak(break_key, *broken));
    watch_.NoteBreak(std::move(record), now);
    step.look = true;   // one member has written it, and the others wait for nothing else
  }
  return Ok();
}

Status Coordinator::NoteKind(Store& store) {
  if (announced_.kind || view().kind != JobKind::kInPlace) return Ok();
  KEEL_TRY(store.Set(keys_.Kind(), std::string(JobKindName(view().kind))));
  announced_.kind = true;
  return Ok();
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
    KEEL_CHECK(made <= DecisionsMax(view().hosts.size()),
               "deciding without end: " << (step.decisions.empty()
                                                ? std::string("nothing is done")
                                                : step.decisions.back().detail));
    const Decision decision = Decide(view(), config_.policy, now);
    if (decision.verdict == Decision::Verdict::kWait) {
      NoteWait(decision, now, step);
      return Ok();
    }
    KEEL_TRY_ASSIGN(const bool is_done, Apply(store, decision, now));
    if (!is_done) continue;
    step.look = true;
    step.decisions.push_back(decision);
    if (ending_.record) return Ok();
  }
}

// Once this board is to be left, nothing more is decided; `moved` is the last thing that is ever
// written here. But an epoch that may be on the board comes before.
Status Coordinator::DecideAndSucceed(Store& store, TimePoint now, Step& step) {
  if (config_.lease) watch_.NoteLease(SeenLease(now));
  const SuccessionView seen{view(), config_.policy.hosts_min, place(),
                            unwritten_ ? std::nullopt : offer_, held_};
  Succession next = NextSuccession(succession_, seen, now);
  watch_.NoteHandOver(IsHandingOver(next, now), config_.handed_over_by, config_.term > 1);
  if (!next.record.moved) KEEL_TRY(DecideAll(store, now, step));
  return ending_.record ? Ok() : WriteSuccession(store, std::move(next), step);
}

Status Coordinator::WriteSuccession(Store& store, Succession next, Step& step) {
  const std::string text = SuccessionText(next.record);
  if (text != succession_written_) {
    // A record that was written although the answer was lost is written again, or a newer one.
    KEEL_TRY(store.Set(keys_.Succession(), text));
    succession_written_ = text;
    step.look |= next.record.chosen != succession_.record.chosen || next.record.moved;
  }
  succession_ = std::move(next);
  return Ok();
}

void Coordinator::NoteWait(const Decision& decision, TimePoint now, Step& step) {
  held_ = decision.held;
  wait_.until = decision.until;
  KEEL_CHECK(wait_.until > now, "a wait that is over: " << decision.detail);
  if (wait_.reason != decision.reason) wait_ = {decision.until, decision.reason, now, {}};
  const bool has_no_quorum = decision.reason == Reason::kNoQuorum;
  watch_.NoteNoQuorum(has_no_quorum ? std::optional(wait_.since) : std::nullopt);
  if (wait_.told && decision.reason == Reason::kRunning) return;
  const Duration patience =
      decision.reason == Reason::kHostsMissing ? kHostsPatience : Duration(0);
  const TimePoint tell_at = wait_.told ? *wait_.told + kWaitTold : wait_.since + patience;
  if (now < tell_at) {
    wait_.until = std::min(wait_.until, tell_at);
    return;
  }
  step.decisions.push_back(decision);
  if (wait_.told) step.decisions.back().waited = now - wait_.since;
  wait_.told = now;
  if (decision.reason != Reason::kRunning) wait_.until = std::min(wait_.until, now + kWaitTold);
}

// False: it could not be done, and is decided anew.
Result<bool> Coordinator::Apply(Store& store, const Decision& decision, TimePoint now) {
  switch (decision.verdict) {
    case Decision::Verdict::kWait: break;
    case Decision::Verdict::kExpire:
    case Decision::Verdict::kRefuse:
      if (OnlyLostPresence(decision)) return false;
      KEEL_TRY(Bury(store, decision));
      break;
    case Decision::Verdict::kShun: KEEL_TRY(Shun(store, decision, now)); break;
    case Decision::Verdict::kTakeUp:
    case Decision::Verdict::kForm: return WriteEpoch(store, decision, now);
    case Decision::Verdict::kBreak: KEEL_TRY(WriteBreak(store, decision, now)); break;
    case Decision::Verdict::kAnnounce:
      KEEL_TRY(store.Set(keys_.Joining(), std::to_string(view().epoch->record.number)));
      watch_.NoteAnnounced();
      break;
    case Decision::Verdict::kStop:
      KEEL_TRY(WriteOnce(store, keys_.Stop(), StopText(decision.stop)));
      watch_.NoteStop(decision.stop, now);
      break;
    case Decision::Verdict::kEnd: KEEL_TRY(WriteEnd(store, decision, now)); break;
  }
  return true;
}

// Something between the two machines may end a connection, too. Whoever still listens is judged by
// its beats, until it connects again.
bool Coordinator::OnlyLostPresence(const Decision& decision) {
  const MemberRecord& lost = watch_.HostAt(decision.slot)->record;
  const bool is_closed = decision.reason == Reason::kPresenceClosed && !lost.peer.empty();
  if (!is_closed || !config_.look_at) return false;
  const Reached reached = config_.look_at(lost.peer);
  if (reached == Reached::kRefused) watch_.NoteDied(decision.slot, lost.incarnation);
  if (reached != Reached::kListener) return false;
  watch_.NotePresence(decision.slot, lost.incarnation, std::nullopt);
  return true;
}

// Replaces a member's record by a tombstone. It is a plain write, so that the tombstone stands
// whatever the member writes at the same moment.
Status Coordinator::Bury(Store& store, const Decision& decision) {
  const bool refused = decision.verdict == Decision::Verdict::kRefuse;
  const MemberRecord lost = watch_.HostAt(decision.slot)->record;
  const bool shunned = decision.reason == Reason::kShunnedBefore;
  const auto why = shunned   ? Tombstone::Why::kShunned
                   : refused ? Tombstone::Why::kRefused
                             : Tombstone::Why::kExpired;
  const Tombstone tombstone{why, lost.incarnation, decision.detail};
  KEEL_TRY(store.Set(keys_.Member(decision.slot), TombstoneText(tombstone)));
  watch_.NoteGone(decision.slot, decision.detail);
  return Ok();
}

// The host reads that it is left out, and leaves as if it had been asked to.
Status Coordinator::Shun(Store& store, const Decision& decision, TimePoint now) {
  if (decision.reason == Reason::kUnfitNeeded) {
    watch_.NoteBlamed(decision.slot);
    return Ok();
  }
  const MemberRecord& member = watch_.HostAt(decision.slot)->record;
  ShunnedHost shunned{member.incarnation, member.host, member.machine, decision.detail};
  shunned.epoch = view().epoch->record.number;
  shunned.deaths = watch_.DeathsTold(decision.slot, config_.policy.restarts.window, now);
  ShunnedRecord record = view().shunned;
  record.Add(std::move(shunned));
  KEEL_TRY(store.Set(keys_.Shunned(), ShunnedText(record)));
  watch_.NoteShunned(std::move(record));
  return Ok();
}

// Writes the epoch's record first, then the number that names it. If an earlier attempt wrote the
// record, that one stands, for somebody may have read it. False: the next number of the lease could
// not be claimed.
Result<bool> Coordinator::WriteEpoch(Store& store, const Decision& decision, TimePoint now) {
  EpochRecord record = decision.epoch;
  if (record.id.empty()) record.id = RandomId(random_, 16);
  record.coordinator = config_.incarnation;
  const std::string key = keys_.Epoch(record.number);
  KEEL_TRY_ASSIGN(const auto there, store.Get(key));
  if (there) {
    KEEL_TRY_ASSIGN(record, ParseEpoch(key, *there));
  } else {
    KEEL_TRY_ASSIGN(record.store, open_epoch_store_(record));
    if (decision.claims_after) {
      if (!ClaimLink(record, *decision.claims_after, now)) return false;
    }
    unwritten_ = decision;
    unwritten_->epoch.id = record.id;
    unwritten_->claims_after.reset();
    // The key of its break comes before the record, for members ask for both in one question, and
    // once the record is there somebody may have a break to write.
    KEEL_TRY(store.CompareSet(keys_.Break(record.id), std::nullopt, kNothingYet));
    // Some host may tell of it long after all others have forgotten it.
    KEEL_TRY(WriteOnce(store, keys_.Counted(record.id), CountedEpochText(CountedOf(record))));
    KEEL_TRY_ASSIGN(const std::string now_there, WriteOnce(store, key, EpochText(record)));
    KEEL_TRY_ASSIGN(record, ParseEpoch(key, now_there));
  }
  KEEL_TRY(store.Set(keys_.NewestEpoch(), std::to_string(record.number)));
  unwritten_.reset();
  watch_.NoteEpoch(std::move(record), decision, now);
  return true;
}

// A claim whose answer was lost may be there, for an epoch that was never formed: it is as good as
// one without an epoch.
LinkView Coordinator::SeenLease(TimePoint now) {
  LinkView seen = config_.lease();
  if (given_up_.contains(seen.link.epoch)) {
    seen.link.epoch.clear();
    seen.link.place.epoch = linked_;
    seen.is_ours = true;
  }
  linked_ = std::max(linked_, seen.link.place.epoch);
  // A place that takes no claim is as good as one that cannot be read, and waited for as long.
  if (failed_claim_ && failed_claim_->after == seen.number && now < failed_claim_->again) {
    seen.is_seen = false;
    seen.detail = failed_claim_->reason;
  }
  return seen;
}

// False: another host was faster, or it could not be written.
bool Coordinator::ClaimLink(const EpochRecord& record, int64_t after, TimePoint now) {
  LinkRecord link{place(), config_.presence, record.id};
  link.place.epoch = record.number;
  given_up_.insert(record.id);   // unless it is formed
  const Status claimed = config_.claim(link, after);
  if (claimed.ok()) given_up_.erase(record.id);
  failed_claim_.reset();
  // What was found there is yet to be read; or it has failed.
  if (!claimed.ok()) failed_claim_ = {after, claimed.error().message, now + kClaimPause};
  watch_.NoteLease(SeenLease(now));
  return claimed.ok();
}

Status Coordinator::WriteBreak(Store& store, const Decision& decision, TimePoint now) {
  BreakRecord record = decision.broken;
  record.by = config_.incarnation;
  const std::string key = keys_.Break(record.id);
  KEEL_TRY_ASSIGN(const std::string now_there, WriteOnce(store, key, BreakText(record)));
  KEEL_TRY_ASSIGN(record, ParseBreak(key, now_there));  // the first reason stands
  watch_.NoteBreak(std::move(record), now);
  return Ok();
}

Status Coordinator::WriteEnd(Store& store, const Decision& decision, TimePoint now) {
  EndRecord record{decision.code, decision.detail};
  KEEL_TRY_ASSIGN(const std::string there, WriteOnce(store, keys_.End(), EndText(record)));
  KEEL_TRY_ASSIGN(record, ParseEnd(keys_.End(), there));
  ending_.record = std::move(record);
  ending_.at = now;
  wait_.until = kNever;
  return Ok();
}

// A member that has read the end, and whose workers have ended, writes that it left: then it is
// gone.
void Coordinator::AwaitMembers(TimePoint now) {
  bool all = true;
  for (const HostView& host : view().hosts) {
    all = all && (host.gone || now - host.heard >= config_.policy.beat_limit);
  }
  ending_.is_done |= all || now - ending_.at >= config_.close_limit;
}

void Coordinator::PresenceOpened(int64_t slot, const std::string& incarnation) {
  watch_.NotePresence(slot, incarnation, std::nullopt);
}

void Coordinator::PresenceClosed(int64_t slot, const std::string& incarnation, TimePoint now) {
  const HostView* const host = watch_.HostAt(slot);
  if (host == nullptr || host->record.incarnation != incarnation) return;
  watch_.NotePresence(slot, incarnation, now);
  wait_.until = std::min(wait_.until, now + config_.policy.presence_grace);
  polls_.next = std::min(polls_.next, now + config_.policy.presence_grace);
}

}  // namespace keel
