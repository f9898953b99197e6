// Notes what changed on the board, and when.
#include "elastic/board/job_watch.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

constexpr size_t kStepTimesKept = 31;
// How many hosts that are gone stay in the view for those who watch the job. In weeks on spot
// machines there are thousands, and each decision looks at all that are in the view.
constexpr size_t kGoneKept = 64;
// No job spends more restarts than this; a record that says so is not believed.
constexpr int kRestartsMax = 100'000;

}  // namespace

void JobWatch::NoteGap(Duration gap, TimePoint now) {
  for (HostView& host : view_.hosts) {
    host.heard = std::min(host.heard + gap, now);   // it may have been heard of since
    if (host.presence_closed) host.presence_closed = now;
  }
  if (view_.epoch) view_.epoch->moved = view_.epoch->moved + gap;
}

void JobWatch::NoteMember(int64_t slot, const std::optional<std::string>& record,
                          const std::optional<std::string>& beat, TimePoint now) {
  if (!record) return;  // the slot was given, but its host has not written a record yet
  HostView& host = FindOrAdd(slot, now);
  Known& known = known_[slot];
  if (*record != known.text) {
    known.text = *record;
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

void JobWatch::NoteBeat(int64_t slot, const std::string& incarnation, TimePoint at) {
  HostView* const host = Find(slot, incarnation);
  if (host != nullptr) host->heard = std::max(host->heard, at);
}

void JobWatch::TakeRecord(HostView& host, Known& known, TimePoint now) {
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
  if (host.record.incarnation.empty()) {
    known.deaths = DeathsCounted(record);
    known.incidents = record.incidents;   // nobody can tell when those were
    NoteAnew(host, known, record.incarnation);
  }
  NoteDeaths(host, known, record, now);
  NotePositions(host.record, record, now);
  host.record = record;
  // It was taken for dead before, so there may be nobody who tells of the epoch that it was in.
  if (!view_.epoch && record.epoch.number == 0) {
    Remember(record.epoch.restarts, record.epoch.restarts_recent, now);
  }
  CountFailures();
  if (record.state == MemberState::kLeft) {
    host.gone = true;
    host.gone_reason = record.host + " left: " + record.reason;
  }
}

// A host whose way led over another board is in two slots, of which the later one is its own.
// Deaths that it has told in the former slot are not told anew.
void JobWatch::NoteAnew(HostView& host, Known& known, const std::string& incarnation) {
  for (HostView& other : view_.hosts) {
    if (other.record.incarnation != incarnation) continue;
    (other.slot < host.slot ? other.anew : host.anew) = std::max(other.slot, host.slot);
    if (!other.gone) known.deaths = std::max(known.deaths, known_[other.slot].deaths);
  }
}

// Notes what the coordinator needs to refuse a member of another version.
void JobWatch::NoteOther(HostView& host, const OtherRecord& other) {
  if (host.record.incarnation.empty()) host.record.incarnation = other.incarnation;
  if (host.record.host.empty()) host.record.host = other.host;
  host.unreadable = host.record.host + " (slot " + std::to_string(host.slot) + ") speaks " +
                    OtherVersionText(other.version);
}

void JobWatch::NoteDeaths(HostView& host, Known& known, const MemberRecord& record,
                          TimePoint now) {
  if (record.kind == JobKind::kInPlace) view_.kind = JobKind::kInPlace;
  // A host that no epoch has had yet spends restarts of its own, not the job's: see
  // HostMachine::GiveUpOutside().
  const bool is_newcomer = view_.epoch && record.epoch.number == 0;
  for (; known.incidents < record.incidents; ++known.incidents) {
    if (!is_newcomer) host.incidents.push_back(now);
  }
  for (; known.deaths < record.deaths; ++known.deaths) {
    if (is_newcomer || view_.shunned.FindLauncher(record.incarnation)) continue;
    deaths_.push_back({host.slot, now});
    view_.barren = 0;   // a death spends a restart, which limits how often the job tries again
  }
}

// How many deaths of a host that is seen for the first time are counted already, as restarts of the
// epoch that runs. What a host of another epoch has lost is not this epoch's affair. While no epoch
// is known, all count until one is taken up (RememberRestarts).
int64_t JobWatch::DeathsCounted(const MemberRecord& record) const {
  if (!view_.epoch || record.epoch.number == 0) return 0;
  if (record.epoch.id != view_.epoch->record.id) return record.deaths;
  return std::clamp<int64_t>(record.epoch.deaths, 0, std::max<int64_t>(record.deaths, 0));
}

// In a job in place, each death is a failure. Foreign workers die together, so in their jobs each
// break by a death is one failure. Both are kept, since the kind may become known only after the
// first break. While an epoch of a former store is yet to be taken up, nothing is known of what it
// has counted, and no job ends by that.
void JobWatch::CountFailures() {
  const bool is_open = !view_.epoch && std::any_of(view_.hosts.begin(), view_.hosts.end(),
                                                   [](const HostView& host) {
                                                     return host.record.epoch.number > 0;
                                                   });
  view_.failures = remembered_;
  if (is_open) return;
  std::vector<TimePoint>& failures = view_.failures;
  if (view_.kind == JobKind::kInPlace) {
    for (const Death& death : deaths_) failures.push_back(death.at);
  } else {
    failures.insert(failures.end(), failed_breaks_.begin(), failed_breaks_.end());
  }
}

void JobWatch::NotePositions(const MemberRecord& before, const MemberRecord& record,
                             TimePoint now) {
  if (!view_.epoch) return;
  for (size_t i = 0; i < record.seats.size(); ++i) {
    const SeatRecord& seat = record.seats[i];
    if (seat.epoch != view_.epoch->record.number) continue;
    if (i < before.seats.size() && !HasMoved(before.seats[i], seat)) continue;
    view_.epoch->moved = now;
    if (seat.position.step > progress_.furthest.step) NoteStep(seat.position, now);
  }
}

// Positions are told only now and then, so the job may have made several steps since the last one.
void JobWatch::NoteStep(Position position, TimePoint now) {
  if (progress_.step_seen && progress_.furthest.step >= 0) {
    step_times_.push_back((now - *progress_.step_seen) / (position.step - progress_.furthest.step));
    if (step_times_.size() > kStepTimesKept) step_times_.erase(step_times_.begin());
    std::vector<Duration> sorted = step_times_;
    std::sort(sorted.begin(), sorted.end());
    view_.median_step = sorted[sorted.size() / 2];
  }
  progress_.is_any |= progress_.step_seen.has_value();
  progress_.step_seen = now;
  progress_.furthest = position;
}

void JobWatch::NoteEpoch(EpochRecord record, const Decision& decision, TimePoint now) {
  // The former epoch ended at a boundary, so its group could be built.
  if (view_.epoch && !view_.epoch->broken) view_.barren = 0;
  view_.epoch = EpochView{};
  view_.epoch->record = std::move(record);
  view_.epoch->moved = now;
  view_.epoch->taken_up = decision.verdict == Decision::Verdict::kTakeUp;
  view_.epoch->incomplete = decision.incomplete;
  view_.epoch->keeper_lost = decision.keeper_lost;
  progress_ = {};
  for (Death& death : deaths_) death.is_told = true;
  // What was taken up is counted as its hosts tell it: this board may not know all of them.
  if (!view_.epoch->taken_up) NoteCounted(CountedOf(view_.epoch->record));
  if (view_.epoch->taken_up) RememberRestarts(view_.epoch->record, now);
}

// Counts the restarts that were spent before this board was opened. Of each only this is known:
// whether it lies within the window. Those within it count from now on.
void JobWatch::Remember(int restarts, int restarts_recent, TimePoint now) {
  const int all = std::clamp(restarts, 0, kRestartsMax);
  if (all < view_.restarts_before + static_cast<int>(remembered_.size())) return;
  const int recent = std::clamp(restarts_recent, 0, all);
  view_.restarts_before = all - recent;
  remembered_.assign(static_cast<size_t>(recent), now);
}

// Perhaps none of its hosts is left that could tell what it has counted.
void JobWatch::NoteFormer(const EpochRecord& former, TimePoint now) {
  view_.former = CountedOf(former);
  // Else it may be of an earlier run that was killed; who waited in this one tells it.
  if (!former.hosts.empty()) view_.former_first = former.first;
  Remember(former.restarts, RecentOf(former), now);
  CountFailures();
}

// The recent restarts that it has counted, but for those of hosts that were left out since.
int JobWatch::RecentOf(const EpochRecord& record) const {
  int64_t recent = record.restarts_recent;
  for (const ShunnedHost& one : view_.shunned.hosts) {
    // Later epochs have been formed without them.
    if (one.epoch >= record.number) recent = std::max<int64_t>(recent - one.deaths, 0);
  }
  return static_cast<int>(recent);
}

// Deaths that this epoch has not counted, on hosts of its own, count as well. Deaths on others are
// in its count, or not the job's.
void JobWatch::RememberRestarts(const EpochRecord& record, TimePoint now) {
  Remember(record.restarts, RecentOf(record), now);
  deaths_.clear();
  for (HostView& host : view_.hosts) {
    if (view_.IsShunned(host)) continue;
    Known& known = known_[host.slot];
    known.deaths = host.record.epoch.number > 0 ? DeathsCounted(host.record) : host.record.deaths;
    for (; known.deaths < host.record.deaths; ++known.deaths) {
      deaths_.push_back({host.slot, now});
    }
  }
  CountFailures();
}

void JobWatch::NoteShunned(ShunnedRecord shunned) {
  view_.shunned = std::move(shunned);
  for (const HostView& host : view_.hosts) {
    if (!view_.IsShunned(host)) continue;
    std::erase_if(deaths_, [&](const Death& death) { return death.slot == host.slot; });
  }
  CountFailures();
}

int64_t JobWatch::DeathsTold(int64_t slot, Duration window, TimePoint now) const {
  return std::count_if(deaths_.begin(), deaths_.end(), [&](const Death& death) {
    const bool is_recent = window == Duration(0) || now - death.at < window;
    return death.slot == slot && death.is_told && is_recent;
  });
}

void JobWatch::NoteBlamed(int64_t slot) {
  HostView* const host = Find(slot);
  if (host != nullptr) host->blamed_when_needed = host->record.deaths;
}

void JobWatch::NoteBreak(BreakRecord record, TimePoint now) {
  const bool failure = record.cause == BreakCause::kDied || record.cause == BreakCause::kHung ||
                       record.cause == BreakCause::kReported;
  if (failure) failed_breaks_.push_back(now);
  CountFailures();
  const bool barren = record.cause == BreakCause::kReported && !progress_.is_any;
  if (barren && view_.barren == 0) view_.barren_since = now;
  view_.barren = barren ? view_.barren + 1 : 0;
  view_.epoch->broken = std::move(record);
  view_.idle_since = now;
}

// Notes when the first worker parked at a boundary, and since when every host has been outside.
void JobWatch::NoteAllRead(TimePoint now) {
  ForgetGone();
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

void JobWatch::NoteStop(StopRecord record, TimePoint now) {
  view_.stop = std::move(record);
  view_.stopped_at = now;
}

void JobWatch::NoteDied(int64_t slot, const std::string& incarnation) {
  HostView* const host = Find(slot, incarnation);
  if (host != nullptr) host->died = true;
}

std::vector<std::string> JobWatch::EpochsUncounted() const {
  std::set<std::string> unknown;
  for (const HostView& host : view_.hosts) {
    const EpochsSeen& seen = host.record.seen;
    if (!seen.met.empty()) unknown.insert(seen.met);
    unknown.insert(seen.tried.begin(), seen.tried.end());
  }
  for (const CountedEpoch& epoch : view_.counted) unknown.erase(epoch.id);
  return {unknown.begin(), unknown.end()};
}

// Those that nobody tells of any more are forgotten.
void JobWatch::NoteCounted(CountedEpoch epoch) {
  std::set<std::string> told;
  for (const HostView& host : view_.hosts) {
    told.insert(host.record.seen.met);
    told.insert(host.record.seen.tried.begin(), host.record.seen.tried.end());
  }
  std::erase_if(view_.counted, [&](const CountedEpoch& one) {
    const bool is_newest = view_.epoch && view_.epoch->record.id == one.id;
    return one.id == epoch.id || (!told.contains(one.id) && !is_newest);
  });
  view_.counted.push_back(std::move(epoch));
}

void JobWatch::NoteGone(int64_t slot, const std::string& reason) {
  HostView& host = *Find(slot);
  host.gone = true;
  host.gone_reason = reason;
}

void JobWatch::NotePresence(int64_t slot, const std::string& incarnation,
                            std::optional<TimePoint> closed) {
  HostView* const host = Find(slot, incarnation);
  if (host == nullptr) return;
  // Of a connection that is told to be lost twice, the first time counts.
  const bool is_known = closed && host->presence_closed;
  if (!is_known) host->presence_closed = closed;
}

// Of the hosts that are gone, those of the epoch stay, and of the others those heard last.
void JobWatch::ForgetGone() {
  const auto all_gone = std::count_if(view_.hosts.begin(), view_.hosts.end(),
                                      [](const HostView& host) { return host.gone; });
  if (static_cast<size_t>(all_gone) <= kGoneKept) return;   // as with most reads
  std::set<int64_t> of_epoch;
  if (view_.epoch) {
    for (const EpochHost& host : view_.epoch->record.hosts) of_epoch.insert(host.slot);
  }
  std::vector<std::pair<TimePoint, int64_t>> gone;
  for (const HostView& host : view_.hosts) {
    if (host.gone && !of_epoch.contains(host.slot)) gone.emplace_back(host.heard, host.slot);
  }
  if (gone.size() <= kGoneKept) return;
  std::sort(gone.begin(), gone.end());
  gone.resize(gone.size() - kGoneKept);
  for (const auto& [heard, slot] : gone) {
    forgotten_.insert(slot);
    known_.erase(slot);
  }
  std::erase_if(view_.hosts,
                [this](const HostView& host) { return forgotten_.contains(host.slot); });
}

int64_t JobWatch::slots() const {
  const int64_t known = known_.empty() ? 0 : known_.rbegin()->first + 1;
  return forgotten_.empty() ? known : std::max(known, *forgotten_.rbegin() + 1);
}

bool JobWatch::IsOver(int64_t slot) const {
  const HostView* const host = HostAt(slot);
  return host != nullptr ? host->gone : forgotten_.contains(slot);
}

const HostView* JobWatch::HostAt(int64_t slot) const { return FindSlot(view_.hosts, slot); }

HostView* JobWatch::Find(int64_t slot) { return FindSlot(view_.hosts, slot); }

HostView* JobWatch::Find(int64_t slot, const std::string& incarnation) {
  HostView* const host = Find(slot);
  return host != nullptr && host->record.incarnation == incarnation ? host : nullptr;
}

HostView& JobWatch::FindOrAdd(int64_t slot, TimePoint now) {
  if (HostView* const host = Find(slot)) return *host;
  HostView host;
  host.slot = slot;
  host.arrived = host.heard = now;
  view_.hosts.push_back(std::move(host));
  std::sort(view_.hosts.begin(), view_.hosts.end(),
            [](const HostView& a, const HostView& b) { return a.slot < b.slot; });
  return *Find(slot);
}

}  // namespace keel
