// What a host remembers of epochs and coordinators, for whoever coordinates next (quorum.h).
#include <algorithm>
#include <utility>

#include "elastic/decisions/host_machine.h"
#include "elastic/protocol/exit_codes.h"

namespace keel {

void HostMachine::On(const Registered& event, TimePoint) {
  slot_ = event.slot;
  tells_of_loss_ = false;   // if it is another board, the lost one is lost for good
}

void HostMachine::On(const SuccessionSeen& event, TimePoint) {
  const SuccessionRecord& record = event.record;
  coordinates_ = record.coordinator == config_.incarnation;
  has_heirs_ = !record.heirs.empty();
  EpochsSeen& seen = record_.seen;
  // One that has no quorum is never met, and the one before it still counts.
  const bool counts = std::any_of(counted_.begin(), counted_.end(), [&](const auto& epoch) {
    return epoch.id == record.shared && !epoch.by_lease;
  });
  if (counts) seen.shared = record.shared;
  const auto met = std::find_if(counted_.begin(), counted_.end(), [&](const CountedEpoch& epoch) {
    return epoch.id == record.met;
  });
  // Others may still have a quorum of the one before an epoch that has none.
  if (met == counted_.end() || met->by_lease || seen.met == record.met) return;
  // All its hosts have taken it, so none of them is in an older one.
  const int64_t number = met->number;
  seen.met = record.met;
  std::erase_if(counted_, [&](const CountedEpoch& epoch) {
    return epoch.number < number || (epoch.number == number && epoch.id != seen.met);
  });
  seen.tried.clear();
  for (const CountedEpoch& epoch : counted_) {
    if (epoch.id != seen.met) seen.tried.push_back(epoch.id);
  }
}

// The lease may name an epoch before the board does.
void HostMachine::On(const LinkSeen& event, TimePoint) {
  link_seen_ = event.epoch;
  NoteLinked();
}

void HostMachine::NoteLinked() {
  const bool is_known = std::any_of(counted_.begin(), counted_.end(),
                                    [&](const auto& epoch) { return epoch.id == link_seen_; });
  if (is_known) record_.seen.linked = link_seen_;
}

// An epoch that it is too late for, since it was taken for dead meanwhile, counts as tried, too: it
// was formed with this host, so that the next one may have been formed without. Once it reads of
// the next one, that counts in its place.
void HostMachine::NoteNamed(const EpochRecord& epoch) {
  EpochsSeen& seen = record_.seen;
  const bool is_named = std::any_of(epoch.hosts.begin(), epoch.hosts.end(), [&](const auto& host) {
    return host.incarnation == config_.incarnation;
  });
  const bool is_known = std::any_of(counted_.begin(), counted_.end(), [&](const auto& one) {
    return one.number >= epoch.number || one.id == epoch.id;
  });
  if ((!is_named && late_.empty()) || is_known) return;
  std::erase(seen.tried, late_);
  if (seen.met != late_) {
    std::erase_if(counted_, [&](const CountedEpoch& one) { return one.id == late_; });
  }
  late_ = epoch.id;
  seen.tried.push_back(epoch.id);
  counted_.push_back(CountedOf(epoch));
  NoteLinked();
}

void HostMachine::NoteTried(const EpochRecord& epoch) {
  late_.clear();
  record_.seen.tried.push_back(epoch.id);
  record_.seen.lost.reset();
  tells_of_loss_ = false;
  counted_.push_back(CountedOf(epoch));
  NoteLinked();
}

// Only the first coordinator that was lost since this host entered its epoch can tell anything of
// that epoch. A refusal counts as long as no other board was entered: afterwards this host may have
// read of newer epochs. The beat must be young when the refusal comes: a coordinator that was only
// out of reach before may have dropped this host since, and formed epochs without it.
void HostMachine::OnBoardLost(const std::string& coordinator, int64_t promised, bool refused,
                              TimePoint now) {
  std::optional<LostCoordinator>& lost = record_.seen.lost;
  const Duration beat_age = now - contact_.value_or(born_);
  if (!lost) {
    const ToldEpoch& epoch = record_.epoch;
    const bool is_inside = epoch.number > promised && epoch.id == newest_read_.id;
    lost = {coordinator, is_inside ? epoch.id : "", promised, beat_age, refused};
    tells_of_loss_ = true;
  } else if (tells_of_loss_ && lost->who == coordinator && refused && !lost->refused) {
    lost->refused = true;
    lost->beat_age = beat_age;
  }
  Settle(now);
}

// If that board had been lost, it is back.
void HostMachine::OnContact(TimePoint beat) {
  contact_ = beat;
  if (std::exchange(tells_of_loss_, false)) record_.seen.lost.reset();
}

void HostMachine::NoteFinished(const NewestRead& epoch) {
  record_.finished = epoch.number;
  record_.finished_id = epoch.id;
}

// A board that is opened after this one was lost learns from hosts that the work is done.
void HostMachine::On(const EndSeen& event, TimePoint now) {
  if (event.end.code == kExitFinished) NoteFinished(newest_read_);
  EndJob(event.end.code, event.end.reason, now);
}

}  // namespace keel
