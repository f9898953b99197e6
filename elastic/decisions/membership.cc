// The coordinator's judgement, in the order in which its questions matter: who is gone, is the job
// over, does the epoch run on, can the next one be formed.
// This file is longer than 500 lines because its questions are asked in one order, of one view, and
// with the same helpers: in several files they would still have to be read together.
#include "elastic/decisions/membership.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "elastic/decisions/hangs.h"
#include "elastic/decisions/quorum.h"
#include "elastic/decisions/ranks.h"
#include "elastic/decisions/restarts.h"
#include "elastic/decisions/shun.h"
#include "elastic/protocol/differing_words.h"
#include "elastic/protocol/exit_codes.h"

namespace keel {
namespace {

constexpr int kBarrenFree = 3;   // epochs that may break in a row before there are pauses

using Verdict = Decision::Verdict;
using MaybeDecision = std::optional<Decision>;

Decision Make(Verdict verdict, Reason reason, std::string detail) {
  Decision decision;
  decision.verdict = verdict;
  decision.reason = reason;
  decision.detail = std::move(detail);
  return decision;
}

Decision Wait(Reason reason, TimePoint until, std::string detail) {
  Decision decision = Make(Verdict::kWait, reason, std::move(detail));
  decision.until = until;
  return decision;
}

// The same wait, with the time at which it ends by itself and what a person can do about it.
Decision Until(TimePoint gives_up, std::string cure, Decision wait) {
  wait.gives_up = gives_up;
  wait.cure = std::move(cure);
  return wait;
}

Decision End(int code, Reason reason, std::string detail) {
  Decision decision = Make(Verdict::kEnd, reason, std::move(detail));
  decision.code = code;
  return decision;
}

bool AnyProcess(const HostView& host) {
  return std::any_of(host.record.seats.begin(), host.record.seats.end(),
                     [](const SeatRecord& seat) { return HasProcess(seat.state); });
}

bool AllFinished(const HostView& host) {
  return !host.record.seats.empty() &&
         std::all_of(host.record.seats.begin(), host.record.seats.end(), [](const SeatRecord& s) {
           return s.state == SeatState::kFinished;
         });
}

// The hosts of an epoch, whose group ranks follow the order of `hosts`.
std::vector<EpochHost> EpochHosts(const std::vector<const HostView*>& hosts) {
  std::vector<EpochHost> made;
  std::map<std::string_view, int> first_of_role;
  for (const HostView* host : hosts) {
    const int group_rank = static_cast<int>(made.size());
    const int role = first_of_role.emplace(host->record.role, group_rank).first->second;
    made.push_back(
        {host->slot, host->record.incarnation, group_rank, role, host->record.deaths});
  }
  return made;
}

// Looks at one view. Each question returns a decision, or nothing to pass on to the next one.
// It has more than 25 methods because each is one part of one of the four questions; its only data
// are the view, the policy and the time, and an index of the view.
class Judge {
 public:
  Judge(const JobView& view, const JobPolicy& policy, TimePoint now)
      : view_(view), policy_(policy), now_(now) {
    if (!view_.epoch) return;
    for (const EpochHost& host : epoch().hosts) members_.emplace(host.slot, host.incarnation);
  }

  Decision Decide() const {
    if (MaybeDecision d = RemoveHost()) return *d;
    // Before restarts are counted, for the deaths of a host that is left out cost the job none.
    if (MaybeDecision d = DecideShun(view_, policy_, now_)) return *d;
    if (MaybeDecision d = EndWork()) return *d;
    if (MaybeDecision d = TakeUp()) return *d;
    if (MaybeDecision d = StopAll()) return *d;
    if (view_.stop) return AwaitStop();
    if (view_.epoch && Runs()) return Watch();
    if (MaybeDecision d = BrokenUnseen()) return *d;
    return FormNext();
  }

 private:
  const EpochRecord& epoch() const { return view_.epoch->record; }
  bool in_place() const { return view_.kind == JobKind::kInPlace; }

  // Who is gone?
  MaybeDecision RemoveHost() const;
  Duration BeatLimit(const HostView& host) const;
  MaybeDecision Silent(const HostView& host) const;
  MaybeDecision Refused(const HostView& host) const;
  std::string JobFingerprint() const;
  TimePoint NextSilence() const;

  // Is the job over?
  const HostView* HostWhoKnowsOfTheEnd() const;
  bool IsOfThisRun(const MemberRecord& told) const;
  MaybeDecision EndWork() const;
  MaybeDecision StopAll() const;
  Decision AwaitStop() const;
  Decision Stopped() const;
  bool Saved() const;
  bool MadeNothing() const;
  bool EpochFinished() const;

  // What did a store that is gone hold?
  MaybeDecision TakeUp() const;
  const ToldEpoch* HighestTold() const;
  bool KeeperIsLost(const ToldEpoch& told) const;
  Decision TakeUpRecord(const ToldEpoch& told, bool incomplete) const;

  // Does the epoch run on?
  bool Runs() const;
  Decision Watch() const;
  bool HasFinished(const HostView& host) const;
  MaybeDecision BrokenBy(const EpochHost& member) const;
  MaybeDecision LeftBefore() const;
  MaybeDecision BrokenUnseen() const;
  MaybeDecision LeaseLost() const;
  MaybeDecision NotParked() const;
  MaybeDecision Hung() const;
  MaybeDecision Newcomer() const;
  MaybeDecision NewcomerInPlace() const;
  bool IsWorker(const SeatRecord& seat) const;
  MaybeDecision NewcomerForeign() const;
  Decision Break(BreakCause cause, std::string detail) const;

  // Can the next one be formed?
  Decision FormNext() const;
  MaybeDecision StillInside() const;
  bool Fenced(const HostView& host) const;
  bool CanTakePart(const HostView& host) const;
  std::vector<const HostView*> Choose() const;
  MaybeDecision LastCall(const std::vector<const HostView*>& hosts) const;
  MaybeDecision NumericsOpen(const std::vector<const HostView*>& hosts) const;
  MaybeDecision Barren() const;
  QuorumView Pasts() const;
  MaybeDecision Held() const;
  MaybeDecision NoQuorum(const std::vector<const HostView*>& hosts, LeaseVerdict* by) const;
  MaybeDecision FormerRuns() const;
  Decision TooFew(size_t hosts) const;
  Decision Form(const std::vector<const HostView*>& hosts) const;
  // The workers of the epoch that is over.
  struct Places {
    std::map<std::pair<int64_t, int>, const EpochWorker*> by_seat;   // by slot and index
    std::unordered_map<std::string_view, int> by_worker;             // their ranks
  };
  int FormerRank(const Places& former, const HostView& host, int index) const;
  int64_t NewestTold() const;
  int64_t NextNumber() const;
  int64_t FirstNumber() const;

  const HostView* Find(const EpochHost& member) const;
  const SeatRecord* SeatMeant(const EpochWorker& worker) const;
  const SeatRecord* SeatOf(const EpochWorker& worker) const;
  bool InEpoch(const HostView& host) const;

  const JobView& view_;
  const JobPolicy& policy_;
  const TimePoint now_;
  std::unordered_map<int64_t, std::string_view> members_;   // of the epoch, by slot
  // Made when they are first asked for: the workers that the epoch names, and the host of the
  // worker that was last looked for, which mostly has the next one, too.
  mutable std::optional<std::unordered_set<std::string_view>> named_;
  mutable std::optional<std::pair<int64_t, const HostView*>> last_host_;
};

const HostView* Judge::Find(const EpochHost& member) const {
  const HostView* const host = FindSlot(view_.hosts, member.slot);
  return host != nullptr && host->record.incarnation == member.incarnation ? host : nullptr;
}

bool Judge::InEpoch(const HostView& host) const {
  const auto member = members_.find(host.slot);
  return member != members_.end() && member->second == host.record.incarnation;
}

// The seat of a worker of the epoch, even if the worker has not entered it: when a stop comes, the
// worker may still be parked outside.
const SeatRecord* Judge::SeatMeant(const EpochWorker& worker) const {
  if (!last_host_ || last_host_->first != worker.slot) {
    const HostView* const found = FindSlot(view_.hosts, worker.slot);
    last_host_ = {worker.slot, found != nullptr && InEpoch(*found) ? found : nullptr};
  }
  const HostView* const host = last_host_->second;
  if (host == nullptr) return nullptr;
  const auto& seats = host->record.seats;
  if (worker.index >= static_cast<int>(seats.size())) return nullptr;
  const SeatRecord& seat = seats[worker.index];
  const bool is_named = !worker.worker.empty() && seat.worker == worker.worker;
  return is_named || seat.epoch == epoch().number ? &seat : nullptr;
}

// The seat of a worker of the epoch, if its record tells of this epoch; otherwise null.
const SeatRecord* Judge::SeatOf(const EpochWorker& worker) const {
  const SeatRecord* const seat = SeatMeant(worker);
  return seat != nullptr && seat->epoch == epoch().number ? seat : nullptr;
}

// --- Who is gone? ---

MaybeDecision Judge::RemoveHost() const {
  for (const HostView& host : view_.hosts) {
    if (host.gone) continue;
    if (MaybeDecision d = Silent(host)) return d;
    if (MaybeDecision d = Refused(host)) return d;
  }
  return std::nullopt;
}

// The host in the coordinator's own process is there as long as the coordinator judges. On an
// overloaded machine its beats may still come late, and to lose it for that would help nobody.
Duration Judge::BeatLimit(const HostView& host) const {
  const bool is_own = host.record.incarnation == view_.coordinator;
  return policy_.beat_limit * (is_own ? kOwnBeatLimits : 1);
}

MaybeDecision Judge::Silent(const HostView& host) const {
  Decision decision = Make(Verdict::kExpire, Reason::kSilent, "");
  decision.slot = host.slot;
  if (host.presence_closed && now_ - *host.presence_closed >= policy_.presence_grace) {
    decision.reason = Reason::kPresenceClosed;
    decision.detail = NameOf(host) + " closed its presence connection " +
                      DurationText(now_ - *host.presence_closed) + " ago";
    return decision;
  }
  if (host.anew) {   // it went to another board and came back before it was missed
    decision.reason = Reason::kRegisteredAnew;
    decision.detail = NameOf(host) + " has registered anew in slot " + std::to_string(*host.anew);
    return decision;
  }
  if (now_ - host.heard < BeatLimit(host)) return std::nullopt;
  decision.detail = NameOf(host) + " was last heard from " + DurationText(now_ - host.heard) +
                    " ago; the limit is " + DurationText(BeatLimit(host));
  return decision;
}

// The fingerprint of the coordinator's own host, which decides for the job. It is empty until a
// worker of that host has said hello; those of other hosts do not count.
std::string Judge::JobFingerprint() const {
  for (const HostView& host : view_.hosts) {
    if (!host.gone && host.record.incarnation == view_.coordinator) return host.record.fingerprint;
  }
  return "";
}

MaybeDecision Judge::Refused(const HostView& host) const {
  if (!host.unreadable.empty()) {
    Decision decision = Make(Verdict::kRefuse, Reason::kUnreadable, host.unreadable);
    decision.slot = host.slot;
    return decision;
  }
  if (policy_.allow_inexact || host.record.fingerprint.empty()) return std::nullopt;
  const std::string wanted = JobFingerprint();
  if (wanted.empty() || host.record.fingerprint == wanted) return std::nullopt;
  Decision decision =
      Make(Verdict::kRefuse, Reason::kOtherFingerprint,
           NameOf(host) + " has another numerics fingerprint: " +
               Shown(DifferingWords(host.record.fingerprint, wanted)) + ", where the job has " +
               Shown(DifferingWords(wanted, host.record.fingerprint)) +
               ": give it the same torch, device, program and options, or --allow-inexact");
  decision.slot = host.slot;
  return decision;
}

TimePoint Judge::NextSilence() const {
  TimePoint next = kNever;
  for (const HostView& host : view_.hosts) {
    if (host.gone) continue;
    next = std::min(next, host.heard + BeatLimit(host));
    if (host.presence_closed) next = std::min(next, *host.presence_closed + policy_.presence_grace);
  }
  return next;
}

// --- Is the job over? ---

bool Judge::EpochFinished() const {
  return view_.epoch && !epoch().workers.empty() && !view_.epoch->incomplete &&
         std::all_of(epoch().workers.begin(), epoch().workers.end(), [&](const EpochWorker& w) {
           const SeatRecord* const seat = SeatOf(w);
           return seat != nullptr && seat->state == SeatState::kFinished;
         });
}

// Who has read on a board that is lost that the work was done, unless the job has gone on since. It
// may tell of an earlier run of a job of this name, if no other host here was in that epoch.
const HostView* Judge::HostWhoKnowsOfTheEnd() const {
  const HostView* knowing = nullptr;
  for (const HostView& host : view_.hosts) {
    const MemberRecord& told = host.record;
    const bool is_newer = knowing == nullptr || told.finished > knowing->record.finished;
    if (told.finished > 0 && is_newer && IsOfThisRun(told)) knowing = &host;
  }
  if (knowing == nullptr) return nullptr;
  return knowing->record.finished >= NewestTold() ? knowing : nullptr;
}

bool Judge::IsOfThisRun(const MemberRecord& told) const {
  return std::any_of(view_.hosts.begin(), view_.hosts.end(), [&](const HostView& host) {
    const bool opened_this = view_.is_later_board && host.record.incarnation == view_.coordinator &&
                             host.record.finished_id == told.finished_id;
    const bool was_in_it = host.record.incarnation != told.incarnation &&
                           host.record.epoch.id == told.finished_id;
    return opened_this || was_in_it;
  });
}

MaybeDecision Judge::EndWork() const {
  if (EpochFinished()) {
    return End(kExitFinished, Reason::kFinished,
               "all " + std::to_string(epoch().workers.size()) + " workers of epoch " +
                   std::to_string(epoch().number) + " finished");
  }
  if (const HostView* const host = HostWhoKnowsOfTheEnd()) {
    return End(kExitFinished, Reason::kFinished,
               "the workers of epoch " + std::to_string(host->record.finished) +
                   " finished, as " + Shown(host->record.host) + " has read on a board before");
  }
  const RestartDecision restart = DecideRestart(view_.failures, policy_.restarts, now_);
  if (!restart.go_on && !view_.stop) {
    return End(kExitFailed, Reason::kRestartsSpent, restart.reason);
  }
  return std::nullopt;
}

// A host that leaves is no reason to stop the job, unless the job cannot go on without it.
MaybeDecision Judge::StopAll() const {
  if (view_.stop) return std::nullopt;
  const HostView* leaving = nullptr;
  bool coordinator_leaves = false;
  int staying = 0;
  for (const HostView& host : view_.hosts) {
    if (host.record.state == MemberState::kMember) {
      staying += host.gone ? 0 : 1;
      continue;
    }
    if (host.gone && !InEpoch(host)) continue;   // the host left earlier, and the job went on
    const bool is_coordinator = host.record.incarnation == view_.coordinator;
    if (host.record.refused && !is_coordinator) continue;
    coordinator_leaves |= is_coordinator;
    if (leaving == nullptr || is_coordinator) leaving = &host;
  }
  // On a later board it takes a moment until all who stay are there as well.
  const bool may_more_come = view_.is_later_board && now_ < view_.opened + policy_.beat_limit;
  if (leaving == nullptr || may_more_come) return std::nullopt;
  // Otherwise another host takes its role (succession.h).
  const bool is_last = staying == 0 || leaving->record.refused;
  coordinator_leaves = coordinator_leaves && (is_last || staying < policy_.hosts_min);
  const bool too_few = view_.epoch && staying < policy_.hosts_min;
  if (!coordinator_leaves && !too_few) return std::nullopt;
  Decision decision =
      Make(Verdict::kStop, is_last ? Reason::kCoordinatorLeaves : Reason::kTooFewStay,
           NameOf(*leaving) + " leaves (" + leaving->record.reason + "), " +
               (is_last ? "and the coordinator with it"
                        : "and only " + std::to_string(staying) + " of at least " +
                              std::to_string(policy_.hosts_min) + " hosts stay"));
  decision.stop = {view_.coordinator, decision.detail, leaving->record.deadline_ms};
  return decision;
}

// In a job in place, `saved` means that a checkpoint of the whole group is committed, so one worker
// that says it is enough: the others may have died before or after. Foreign workers cannot say it,
// so their success stands for it.
bool Judge::Saved() const {
  if (!view_.epoch) return true;
  const auto& workers = epoch().workers;
  // No worker has said hello, so none has begun, and nothing can be lost.
  if (!in_place() && policy_.program_says_hello) return true;
  if (!in_place()) {
    return std::all_of(workers.begin(), workers.end(), [&](const EpochWorker& worker) {
      const SeatRecord* const seat = SeatOf(worker);
      return seat != nullptr &&
             (seat->state == SeatState::kLeft || seat->state == SeatState::kFinished);
    });
  }
  return MadeNothing() || std::any_of(workers.begin(), workers.end(), [&](const auto& worker) {
    const SeatRecord* const seat = SeatMeant(worker);
    return seat != nullptr && (seat->saved || seat->state == SeatState::kFinished);
  });
}

// Whether the job was stopped while its first epoch began, so that there is nothing to lose.
bool Judge::MadeNothing() const {
  const auto& workers = epoch().workers;
  return epoch().number == epoch().first &&
         std::all_of(workers.begin(), workers.end(), [&](const EpochWorker& worker) {
           const SeatRecord* const seat = SeatOf(worker);
           return seat != nullptr && seat->position.step <= 0;
         });
}

Decision Judge::Stopped() const {
  if (Saved()) return End(kExitStopped, Reason::kStopped, "stopped: " + view_.stop->reason);
  return End(kExitUnsaved, Reason::kStoppedUnsaved,
             "stopped, but not saved in time: " + view_.stop->reason);
}

Decision Judge::AwaitStop() const {
  const TimePoint deadline =
      view_.stopped_at + std::chrono::milliseconds(view_.stop->deadline_ms);
  const TimePoint limit = deadline + policy_.stop_grace;
  if (now_ >= limit) return Stopped();
  // After the deadline each host ends its workers by itself, so a hang need not be found any more.
  if (view_.epoch && Runs() && now_ < deadline) {
    const MaybeDecision hung = Hung();
    if (hung && hung->verdict == Verdict::kBreak) return *hung;
  }
  for (const HostView& host : view_.hosts) {
    if (host.gone) continue;
    if (host.record.state != MemberState::kMember && !AnyProcess(host)) continue;
    return Until(limit, "nothing needs to be done: what has not stopped by then is left behind",
                 Wait(Reason::kStopping, std::min(limit, NextSilence()),
                      NameOf(host) + " has not stopped yet"));
  }
  return Stopped();
}

// --- What did a store that is gone hold? ---

// A host that came to this board only to say that it leaves is known as well.
bool CountsForTakeUp(const HostView& host) {
  return !host.gone || host.record.state == MemberState::kLeft;
}

// The highest epoch that a host tells of and that this board does not know.
const ToldEpoch* Judge::HighestTold() const {
  const ToldEpoch* highest = nullptr;
  for (const HostView& host : view_.hosts) {
    const ToldEpoch& told = host.record.epoch;
    if (host.gone || told.number == 0) continue;
    if (view_.epoch && (told.number < epoch().number || told.id == epoch().id)) continue;
    if (highest == nullptr || told.number > highest->number) highest = &told;
  }
  return highest;
}

MaybeDecision Judge::TakeUp() const {
  if (view_.epoch) return std::nullopt;
  const ToldEpoch* const told = HighestTold();
  if (told == nullptr) return std::nullopt;
  int here = 0;
  TimePoint last{};
  for (const HostView& host : view_.hosts) {
    if (!CountsForTakeUp(host) || host.record.epoch.id != told->id) continue;
    ++here;
    last = std::max(last, host.arrived);
  }
  if (here >= told->hosts) return TakeUpRecord(*told, false);
  if (here + 1 == told->hosts && KeeperIsLost(*told)) {
    Decision decision = TakeUpRecord(*told, true);
    decision.keeper_lost = true;
    decision.detail += ", without the host that kept the store that is gone";
    return decision;
  }
  const TimePoint until = std::max(last, view_.opened) + policy_.beat_limit;
  if (now_ >= until) return TakeUpRecord(*told, true);
  return Until(until, "start the hosts that are missing again",
               Wait(Reason::kTakingUp, std::min(until, NextSilence()),
              std::to_string(here) + " of " + std::to_string(told->hosts) + " hosts of epoch " +
                  std::to_string(told->number) + " are back"));
}

// Whether the host that kept the former store is not here. Its store is gone for all who are, and
// that host most likely, too; so nobody waits for it. If it lives on, cut off from the others, then
// no step of the epoch can be made without them. A foreign program's workers may make some, so that
// host is given the time to end them.
bool Judge::KeeperIsLost(const ToldEpoch& told) const {
  if (!view_.handed_over_by.empty()) return false;
  return in_place() && !told.keeper.empty() &&
         std::none_of(view_.hosts.begin(), view_.hosts.end(), [&](const HostView& host) {
           return host.record.incarnation == told.keeper;
         });
}

Decision Judge::TakeUpRecord(const ToldEpoch& told, bool incomplete) const {
  Decision decision = Make(Verdict::kTakeUp, Reason::kTold,
                           "epoch " + std::to_string(told.number) +
                               " goes on in a new store, as its hosts report it");
  decision.incomplete = incomplete;
  decision.epoch.number = told.number;
  decision.epoch.first = told.first;
  decision.epoch.id = told.id;
  decision.epoch.kind = view_.kind;
  decision.epoch.reason = decision.detail;
  decision.epoch.restarts = told.restarts;
  decision.epoch.restarts_recent = told.restarts_recent;
  std::vector<Candidate> workers;
  std::vector<const HostView*> hosts;
  for (const HostView& host : view_.hosts) {
    if (!CountsForTakeUp(host) || host.record.epoch.id != told.id) continue;
    hosts.push_back(&host);
    for (size_t i = 0; i < host.record.seats.size(); ++i) {
      const SeatRecord& seat = host.record.seats[i];
      if (seat.epoch != told.number) continue;
      workers.push_back({host.slot, static_cast<int>(i), seat.worker, seat.rank});
    }
  }
  decision.epoch.hosts = EpochHosts(hosts);
  decision.epoch.workers = RanksInPlace(std::move(workers));
  return decision;
}

// --- Does the epoch run on? ---

// An epoch runs until it is broken, or until all its hosts have promised to be outside.
bool Judge::Runs() const {
  if (view_.epoch->broken) return false;
  return std::any_of(epoch().hosts.begin(), epoch().hosts.end(), [&](const EpochHost& member) {
    const HostView* const host = Find(member);
    return host == nullptr || host->gone || host->record.outside < epoch().number;
  });
}

Decision Judge::Break(BreakCause cause, std::string detail) const {
  Decision decision = Make(Verdict::kBreak, Reason::kBroken, detail);
  decision.broken.epoch = epoch().number;
  decision.broken.id = epoch().id;
  decision.broken.cause = cause;
  decision.broken.reason = std::move(detail);
  return decision;
}

Decision Judge::Watch() const {
  if (view_.epoch->incomplete) {
    return Break(BreakCause::kHostLost,
                 "some hosts of the epoch did not come back when the store did");
  }
  for (const EpochHost& member : epoch().hosts) {
    if (MaybeDecision d = BrokenBy(member)) return *d;
  }
  if (MaybeDecision d = LeftBefore()) return *d;
  if (MaybeDecision d = LeaseLost()) return *d;
  if (MaybeDecision d = NotParked()) return *d;
  if (MaybeDecision d = Hung()) return *d;
  if (const ToldEpoch* const told = HighestTold()) {
    return Break(BreakCause::kJoined,
                 "a host comes from epoch " + std::to_string(told->number) + " of another store");
  }
  if (MaybeDecision d = Newcomer()) return *d;
  return Wait(Reason::kRunning, NextSilence(), "epoch " + std::to_string(epoch().number) + " runs");
}

// Whether the epoch needs nothing more of that host. Foreign workers that finished an earlier epoch
// say nothing about this one.
bool Judge::HasFinished(const HostView& host) const {
  const auto is_old = [&](const SeatRecord& seat) { return seat.epoch != epoch().number; };
  const auto& seats = host.record.seats;
  return AllFinished(host) && (in_place() || std::none_of(seats.begin(), seats.end(), is_old));
}

// Whether that host breaks the epoch. Its own supervisor reports that as well; this is for a report
// that got lost.
MaybeDecision Judge::BrokenBy(const EpochHost& member) const {
  const HostView* const host = Find(member);
  if (host == nullptr) {
    return Break(BreakCause::kHostLost,
                 "the host in slot " + std::to_string(member.slot) + " is unknown");
  }
  if (HasFinished(*host)) return std::nullopt;
  if (host->gone) {
    const bool left = host->record.state != MemberState::kMember;
    return Break(left ? BreakCause::kLeft : BreakCause::kHostLost, host->gone_reason);
  }
  const bool hands_over =
      view_.handing_over && host->record.incarnation == view_.coordinator;
  const bool leaves = host->record.state != MemberState::kMember && !in_place();
  const auto left = [&] {
    return Break(BreakCause::kLeft, NameOf(*host) + " leaves: " + host->record.reason);
  };
  if (leaves && !hands_over) return left();
  for (const SeatRecord& seat : host->record.seats) {
    if (seat.epoch != epoch().number || seat.state != SeatState::kDead) continue;
    if (leaves) return left();   // its workers die of the signal that asks them to stop
    return Break(BreakCause::kDied, "rank " + std::to_string(seat.rank) + " on " + NameOf(*host) +
                                        " " + seat.ended);
  }
  return std::nullopt;
}

// An epoch that was taken up may have been broken on the board before, which this one cannot know.
// Then foreign workers of some hosts have been ended, and those of the others wait for them.
MaybeDecision Judge::LeftBefore() const {
  if (in_place() || !view_.epoch->taken_up) return std::nullopt;
  for (const EpochHost& member : epoch().hosts) {
    const HostView* const host = Find(member);
    if (host == nullptr || host->record.outside < epoch().number || HasFinished(*host)) continue;
    return Break(BreakCause::kHostLost, NameOf(*host) + " has no worker in the epoch any more");
  }
  return std::nullopt;
}

// Foreign workers do not park at boundaries. If all are outside, some of them died, and that spends
// a restart. The record that shows it may be read before the report of the break.
MaybeDecision Judge::BrokenUnseen() const {
  if (!view_.epoch || view_.epoch->broken || in_place()) return std::nullopt;
  for (const EpochHost& member : epoch().hosts) {
    if (MaybeDecision d = BrokenBy(member)) return d;
  }
  return std::nullopt;
}

MaybeDecision Judge::LeaseLost() const {
  const auto counted = std::find_if(view_.counted.begin(), view_.counted.end(),
                                    [&](const CountedEpoch& one) { return one.id == epoch().id; });
  if (counted == view_.counted.end() || !counted->by_lease) return std::nullopt;
  if (!IsLeaseLost(view_.lease, epoch().id)) return std::nullopt;
  return Break(BreakCause::kLeaseLost,
               "the epoch has no quorum, and the job's lease is not held for it: " +
                   (view_.lease ? view_.lease->detail : "this host has none"));
}

MaybeDecision Judge::NotParked() const {
  if (!view_.epoch->parked || now_ - *view_.epoch->parked < policy_.park_limit) {
    return std::nullopt;
  }
  return Break(BreakCause::kNotParked, "some workers parked at a boundary " +
                                           DurationText(now_ - *view_.epoch->parked) +
                                           " ago, but the others did not follow");
}

MaybeDecision Judge::Hung() const {
  if (!in_place()) return std::nullopt;
  std::vector<RankStanding> standings;
  for (const EpochWorker& worker : epoch().workers) {
    const SeatRecord* const seat = SeatOf(worker);
    if (seat != nullptr && seat->state == SeatState::kFinished) continue;
    if (seat == nullptr || seat->state != SeatState::kRunning) return std::nullopt;
    standings.push_back({worker.rank, seat->position, seat->activity, seat->silent});
  }
  HangLimits limits = {policy_.enter_limit, HangLimit(policy_.hang_limit, view_.median_step)};
  TimePoint moved = view_.epoch->moved;
  // Without a shorter limit all would wait for the worker that hangs until the stop's time is over,
  // and nobody would save.
  if (view_.stop) {
    const Duration usual = limits.move;
    limits.move = HangLimitOfStop(usual, std::chrono::milliseconds(view_.stop->deadline_ms));
    if (limits.move < usual) moved = std::max(moved, view_.stopped_at);
  }
  const HangDecision hang = DecideHang(standings, moved, limits, now_);
  if (hang.ranks.empty() && hang.reason.empty()) return std::nullopt;
  if (hang.ranks.empty()) {
    return Wait(Reason::kStandsStill, std::min(hang.until, NextSilence()), hang.reason);
  }
  Decision decision = Break(BreakCause::kHung, hang.reason);
  decision.broken.ranks = hang.ranks;
  return decision;
}

MaybeDecision Judge::Newcomer() const {
  for (const EpochWorker& worker : epoch().workers) {
    const SeatRecord* const seat = SeatOf(worker);
    if (seat != nullptr && seat->state == SeatState::kFinished) return std::nullopt;
  }
  return in_place() ? NewcomerInPlace() : NewcomerForeign();
}

// Whether the epoch has the worker of that seat. The seat's record may not show it yet, since the
// supervisor may have written it before it saw the epoch.
bool Judge::IsWorker(const SeatRecord& seat) const {
  if (!named_) {
    named_.emplace();
    for (const EpochWorker& one : epoch().workers) named_->insert(one.worker);
  }
  return !seat.worker.empty() && named_->contains(seat.worker);
}

MaybeDecision Judge::NewcomerInPlace() const {
  if (view_.epoch->announced) return std::nullopt;
  const bool room = static_cast<int>(epoch().hosts.size()) < policy_.hosts_max;
  for (const HostView& host : view_.hosts) {
    if (host.gone || host.record.state != MemberState::kMember || view_.IsShunned(host)) continue;
    if (!InEpoch(host) && !room) continue;
    for (const SeatRecord& seat : host.record.seats) {
      // A parked one comes from an older epoch, perhaps of another board.
      if (!CanEnter(seat)) continue;
      // The epoch has this worker already, and its supervisor is about to send it `epoch`.
      if (seat.epoch == epoch().number || IsWorker(seat)) continue;
      return Make(Verdict::kAnnounce, Reason::kSomebodyWaits,
                  "a worker on " + NameOf(host) + " waits for the next boundary");
    }
  }
  return std::nullopt;
}

MaybeDecision Judge::NewcomerForeign() const {
  if (static_cast<int>(epoch().hosts.size()) >= policy_.hosts_max) return std::nullopt;
  const HostView* last = nullptr;
  for (const HostView& host : view_.hosts) {
    if (host.gone || host.record.state != MemberState::kMember || InEpoch(host)) continue;
    if (last == nullptr || host.arrived > last->arrived) last = &host;
  }
  if (last == nullptr) return std::nullopt;
  const TimePoint until = last->arrived + policy_.rejoin_limit;
  if (now_ >= until) return Break(BreakCause::kJoined, NameOf(*last) + " joined");
  return Wait(Reason::kJoinLastCall, std::min(until, NextSilence()),
              NameOf(*last) + " joined; others may follow");
}

// --- Can the next one be formed? ---

// Whether a host that is gone can have no worker inside the epoch any more. It cannot be asked. If
// it is back in a new slot, its workers are dead, or it tells there where they are. Otherwise it
// stops them by itself within fence_limit.
bool Judge::Fenced(const HostView& host) const {
  const bool back = std::any_of(view_.hosts.begin(), view_.hosts.end(), [&](const HostView& other) {
    const MemberRecord& told = other.record;
    const bool is_outside = told.epoch.id != epoch().id || told.outside >= epoch().number;
    return other.slot > host.slot && told.incarnation == host.record.incarnation && is_outside;
  });
  return back || host.record.state == MemberState::kLeft ||
         host.record.outside >= epoch().number || now_ >= host.heard + policy_.fence_limit;
}

MaybeDecision Judge::StillInside() const {
  const HostView* unfenced = nullptr;
  bool frozen = false;   // a worker is outside for sure, without which the rest make no step
  for (const EpochHost& member : epoch().hosts) {
    const HostView* const host = Find(member);
    if (host == nullptr) continue;
    const bool out = host->gone ? Fenced(*host) : host->record.outside >= epoch().number;
    if (out) {
      frozen |= !AllFinished(*host);
    } else if (host->gone) {
      unfenced = host;
    } else {
      return Wait(Reason::kWorkersInside, NextSilence(),
                  NameOf(*host) + " still has workers inside epoch " +
                      std::to_string(epoch().number));
    }
  }
  for (const HostView& host : view_.hosts) {
    if (host.gone || InEpoch(host) || host.record.outside >= host.record.epoch.number) continue;
    return Wait(Reason::kWorkersInside, NextSilence(),
                NameOf(host) + " still has workers inside its own epoch " +
                    std::to_string(host.record.epoch.number));
  }
  if (unfenced == nullptr || frozen) return std::nullopt;
  const TimePoint fenced = unfenced->heard + policy_.fence_limit;
  return Until(fenced, "nothing needs to be done: that host ends its workers by itself",
               Wait(Reason::kFence, fenced,
              NameOf(*unfenced) + " may still run epoch " + std::to_string(epoch().number) +
                  " alone"));
}

bool Judge::CanTakePart(const HostView& host) const {
  if (host.gone || host.record.state != MemberState::kMember || view_.IsShunned(host)) return false;
  if (!in_place()) return !AnyProcess(host);
  return std::any_of(host.record.seats.begin(), host.record.seats.end(), CanEnter);
}

// At most hosts_max hosts: first the coordinator's own, then those of the former epoch, then the
// others by slot.
std::vector<const HostView*> Judge::Choose() const {
  std::vector<const HostView*> hosts;
  for (const HostView& host : view_.hosts) {
    if (CanTakePart(host)) hosts.push_back(&host);
  }
  const auto class_of = [&](const HostView* host) {
    return host->record.incarnation == view_.coordinator ? 0 : InEpoch(*host) ? 1 : 2;
  };
  std::stable_sort(hosts.begin(), hosts.end(), [&](const HostView* a, const HostView* b) {
    return class_of(a) < class_of(b);
  });
  if (hosts.size() > static_cast<size_t>(policy_.hosts_max)) hosts.resize(policy_.hosts_max);
  std::stable_sort(hosts.begin(), hosts.end(), [&](const HostView* a, const HostView* b) {
    const bool first_a = class_of(a) == 0, first_b = class_of(b) == 0;
    if (first_a != first_b) return first_a;
    return std::pair(a->record.order, a->slot) < std::pair(b->record.order, b->slot);
  });
  return hosts;
}

Decision Judge::FormNext() const {
  if (view_.epoch) {
    if (MaybeDecision d = StillInside()) return *d;
  }
  if (view_.handing_over) {
    return Wait(Reason::kHandingOver, std::min(now_ + kHandOverPatience, NextSilence()),
                "this host leaves, and another one is about to coordinate");
  }
  if (MaybeDecision d = Held()) return *d;
  const std::vector<const HostView*> hosts = Choose();
  // In a job in place, a host whose work is done counts as present, in whichever epoch it did it.
  size_t count = hosts.size(), here = 0;
  for (const HostView& host : view_.hosts) {
    here += host.gone ? 0 : 1;
    count += in_place() && !host.gone && AllFinished(host) ? 1 : 0;
  }
  if (hosts.empty() && count > 0 && count == here) {
    return End(kExitFinished, Reason::kFinished,
               here == 1 ? "the only host that is left has finished"
                         : "all " + std::to_string(here) + " hosts that are left have finished");
  }
  if (hosts.empty() || count < static_cast<size_t>(policy_.hosts_min)) return TooFew(count);
  if (MaybeDecision d = LastCall(hosts)) return *d;
  if (MaybeDecision d = NumericsOpen(hosts)) return *d;
  if (MaybeDecision d = Barren()) return *d;
  LeaseVerdict lease;
  if (MaybeDecision d = NoQuorum(hosts, &lease)) return *d;
  if (MaybeDecision d = FormerRuns()) return *d;
  Decision decision = Form(hosts);
  if (lease.claims) decision.claims_after = view_.lease->number;
  decision.epoch.by_lease = lease.by_lease;
  return decision;
}

// Hosts with different fingerprints cannot be in one epoch, and only the workers of the
// coordinator's own host can say which fingerprint is the job's.
MaybeDecision Judge::NumericsOpen(const std::vector<const HostView*>& hosts) const {
  if (!in_place() || policy_.allow_inexact || !JobFingerprint().empty()) return std::nullopt;
  const auto differs = std::find_if(hosts.begin(), hosts.end(), [&](const HostView* host) {
    return host->record.fingerprint != hosts.front()->record.fingerprint;
  });
  if (differs == hosts.end()) return std::nullopt;
  const TimePoint limit = view_.idle_since + policy_.join_limit;
  const std::string detail = NameOf(*hosts.front()) + " and " + NameOf(**differs) +
                             " have different numerics fingerprints, and the workers of the "
                             "coordinator's host, which decide, have not reported theirs";
  if (now_ >= limit) return End(kExitQuorumLost, Reason::kQuorumLost, "timed out: " + detail);
  return Until(limit,
               "give all hosts the same torch, device, program and options, or --allow-inexact",
               Wait(Reason::kNumericsOpen, std::min(limit, NextSilence()), detail));
}

// Hosts that reach the store but not each other would form and break epochs without end and without
// a pause.
MaybeDecision Judge::Barren() const {
  if (view_.barren <= kBarrenFree || !view_.epoch || !view_.epoch->broken) return std::nullopt;
  const std::string detail = std::to_string(view_.barren) +
                             " epochs in a row broke before their first step, the last one: " +
                             view_.epoch->broken->reason;
  if (now_ >= view_.barren_since + policy_.join_limit) {
    return End(kExitFailed, Reason::kNeverBuilt,
               detail + "; can all hosts reach each other, by the addresses they are known by?");
  }
  const TimePoint until = view_.idle_since + RestartDelay(view_.barren - kBarrenFree + 1);
  if (now_ >= until) return std::nullopt;
  return Wait(Reason::kBarren, std::min(until, NextSilence()), detail);
}

QuorumView Judge::Pasts() const {
  QuorumView view;
  view.beat_limit = policy_.beat_limit;
  view.epochs = view_.counted;
  // What was taken up is told by its hosts.
  if (view_.epoch && !view_.epoch->taken_up) view.formed = CountedOf(view_.epoch->record);
  for (const HostView& host : view_.hosts) {
    HostPast past{host.record.incarnation, host.record.seen};
    if (past.seen.lost && !policy_.believes_refusals) past.seen.lost.reset();
    const bool is_known = host.record.state == MemberState::kLeft ||
                          (host.died && policy_.believes_refusals);
    if (!host.gone) view.here.push_back(std::move(past));
    else if (is_known) view.gone.push_back(std::move(past));
  }
  // Who registered again after all was not dead.
  std::erase_if(view.gone, [&](const HostPast& past) {
    return std::any_of(view.here.begin(), view.here.end(),
                       [&](const HostPast& one) { return one.host == past.host; });
  });
  return view;
}

// This board is about to be left.
MaybeDecision Judge::Held() const {
  // Whom the former coordinator asked does not go back; and what the own host was in before counts.
  const auto is_own = [&](const HostView& host) {
    return !host.gone && host.record.incarnation == view_.coordinator;
  };
  const bool is_own_here = std::any_of(view_.hosts.begin(), view_.hosts.end(), is_own);
  if (!view_.lease || !is_own_here) return std::nullopt;
  const std::optional<BoardPlace> held = HeldElsewhere(*view_.lease, Pasts());
  if (!held || held->by == view_.handed_over_by) return std::nullopt;
  Decision wait = Wait(Reason::kHeld, NextSilence(),
                       "the job goes on at " + PlaceText(*held) + ", as its lease says");
  wait.held = held;
  return wait;
}

// Others could go on without these hosts, somewhere out of reach.
MaybeDecision Judge::NoQuorum(const std::vector<const HostView*>& hosts, LeaseVerdict* by) const {
  if (!policy_.needs_quorum && !view_.lease) return std::nullopt;
  const QuorumView view = Pasts();
  std::vector<std::string> proposed;
  for (const HostView* const host : hosts) proposed.push_back(host->record.incarnation);
  QuorumVerdict verdict = DecideQuorum(view, proposed);
  // A board that was taken over cannot know what its former coordinator has formed for others,
  // unless the lease tells that nobody has formed anything that still runs.
  const bool is_told = std::any_of(view_.hosts.begin(), view_.hosts.end(), [&](const auto& host) {
    return host.record.incarnation == view_.handed_over_by;
  });
  const bool is_free = view_.lease && view_.lease->is_seen &&
                       (view_.lease->is_over || view_.lease->is_ours);
  if (verdict.reason == QuorumReason::kFirst && view_.is_later_board && !is_told && !is_free) {
    verdict.may_form = false;
    verdict.detail = "none of them was in an epoch of this job";
  }
  if (!policy_.needs_quorum) verdict.may_form = true;
  const TimePoint since = view_.no_quorum_since.value_or(now_);
  const TimePoint limit = since + policy_.quorum_limit;
  TimePoint again = std::min(limit, NextSilence());
  std::string detail = "others may go on without these hosts: " + verdict.detail;
  std::string cure = "bring back the network to the hosts that are missing; a launcher that was "
                     "started anew there cannot tell what became of the former one; a lease "
                     "(--lease) lets those go on who still reach its directory";
  if (view_.lease) {
    const LeaseVerdict lease = DecideLease(*view_.lease, view, verdict, now_ - since);
    *by = lease;
    if (lease.may_form) return std::nullopt;
    detail = lease.detail;
    if (!lease.cure.empty()) cure = lease.cure;
    const TimePoint courtesy = since + kLeaseCourtesy;
    if (courtesy > now_) again = std::min(again, courtesy);
  } else if (verdict.may_form) {
    return std::nullopt;
  }
  if (now_ >= limit) {
    return End(kExitQuorumLost, Reason::kQuorumLost,
               "timed out: " + detail + ", for " + DurationText(now_ - since) +
                   (view_.lease ? "" : "; a lease (--lease) would let them go on"));
  }
  return Until(limit, cure, Wait(Reason::kNoQuorum, again, detail));
}

// The newest epoch of the board before may have been formed without any host that is here. A host
// of it that has come is outside of it (StillInside), and without that one the others make no step.
// One that cannot come ends its workers by itself.
MaybeDecision Judge::FormerRuns() const {
  if (policy_.needs_quorum || !view_.former || view_.former->hosts.empty()) return std::nullopt;
  const auto& former = view_.former->hosts;
  const bool any_came = std::any_of(view_.hosts.begin(), view_.hosts.end(), [&](const auto& host) {
    return std::find(former.begin(), former.end(), host.record.incarnation) != former.end();
  });
  const TimePoint fenced = view_.opened + policy_.fence_limit;
  if (any_came || now_ >= fenced) return std::nullopt;
  return Until(fenced, "nothing needs to be done: those hosts end their workers by themselves",
               Wait(Reason::kFence, std::min(fenced, NextSilence()),
                    CountText(former.size(), "host") + " of epoch " +
                        std::to_string(view_.former->number) +
                        " may still run it, out of reach"));
}

Decision Judge::TooFew(size_t count) const {
  const TimePoint limit = view_.idle_since + policy_.join_limit;
  std::string here, lost;   // those of the last epoch; who went before is missed no more
  size_t here_count = 0;
  for (const HostView& host : view_.hosts) {
    if (host.gone && !InEpoch(host)) continue;
    std::string& names = host.gone ? lost : here;
    names += (names.empty() ? "" : ", ") + NameOf(host);
    here_count += host.gone ? 0 : 1;
  }
  // A host may be here while its workers are not ready yet.
  const std::string detail = std::to_string(count) + " of " + std::to_string(policy_.hosts_min) +
                             (count == here_count ? " here" : " ready") + " (min " +
                             std::to_string(policy_.hosts_min) + ", max " +
                             std::to_string(policy_.hosts_max) + ")" +
                             (here.empty() ? "" : "; here: " + here) +
                             (lost.empty() ? "" : "; lost: " + lost);
  if (now_ >= limit) {
    return End(kExitQuorumLost, Reason::kQuorumLost,
               "timed out: too few hosts after " + DurationText(now_ - view_.idle_since) + ": " +
                   detail);
  }
  return Until(limit,
               "start more hosts with the same endpoint and job id, or allow fewer with --nnodes",
               Wait(Reason::kHostsMissing, std::min(limit, NextSilence()),
              "waiting for hosts: " + detail));
}

MaybeDecision Judge::LastCall(const std::vector<const HostView*>& hosts) const {
  if (static_cast<int>(hosts.size()) >= policy_.hosts_max) return std::nullopt;
  const bool may_more_come = view_.epoch && view_.epoch->taken_up && !view_.epoch->keeper_lost &&
                             view_.handed_over_by.empty();
  if (view_.epoch && !may_more_come) return std::nullopt;
  const Duration call = view_.epoch ? policy_.rejoin_limit : policy_.last_call_limit;
  TimePoint last = view_.opened;
  for (const HostView* host : hosts) last = std::max(last, host->arrived);
  if (now_ >= last + call) return std::nullopt;
  return Wait(Reason::kLastCall, std::min(last + call, NextSilence()),
              std::to_string(hosts.size()) + " of at most " + std::to_string(policy_.hosts_max) +
                  " hosts are here; waiting a moment for more");
}

// The seat's rank in the epoch that is over, if the same worker was in it; otherwise -1. A host
// that was lost meanwhile is in another slot, and brings its workers as it had parked them.
int Judge::FormerRank(const Places& former, const HostView& host, int index) const {
  const std::string& worker_there = host.record.seats[index].worker;
  if (!InEpoch(host) && !worker_there.empty()) {
    const auto known = former.by_worker.find(worker_there);
    return known != former.by_worker.end() ? known->second : -1;
  }
  const auto place = former.by_seat.find({host.slot, index});
  if (place == former.by_seat.end() || !InEpoch(host)) return -1;
  const SeatRecord& seat = host.record.seats[index];
  const EpochWorker& worker = *place->second;
  return seat.epoch == epoch().number || worker.worker == seat.worker ? worker.rank : -1;
}

// The number of the newest epoch that a host here knows of.
int64_t Judge::NewestTold() const {
  int64_t newest = view_.epoch ? epoch().number : 0;
  for (const HostView& host : view_.hosts) newest = std::max(newest, host.record.epoch.number);
  for (const CountedEpoch& one : view_.counted) newest = std::max(newest, one.number);
  if (view_.former) newest = std::max(newest, view_.former->number);
  return newest;
}

int64_t Judge::NextNumber() const {
  const int64_t claimed = view_.lease ? view_.lease->link.place.epoch : 0;
  return std::max(NewestTold(), claimed) + 1;
}

// Of the newest one that is known to belong to this run; the next epoch's own where none does.
int64_t Judge::FirstNumber() const {
  if (view_.epoch) return epoch().first;
  int64_t first = view_.former_first.value_or(NextNumber());
  for (const HostView& host : view_.hosts) {
    if (host.record.epoch.first > 0) first = std::min(first, host.record.epoch.first);
  }
  return first;
}

Decision Judge::Form(const std::vector<const HostView*>& hosts) const {
  Decision decision = Make(Verdict::kForm, Reason::kReformed, "");
  if (!view_.epoch) {
    const bool all = static_cast<int>(hosts.size()) >= policy_.hosts_max;
    decision.reason = all ? Reason::kAllHere : Reason::kLastCallOver;
  }
  EpochRecord& record = decision.epoch;
  record.number = NextNumber();
  record.first = FirstNumber();
  record.kind = view_.kind;
  record.inexact_allowed = policy_.allow_inexact;
  // Failures that are too old to count are among them, and those that another store has counted:
  // the number that workers see never falls.
  record.restarts = view_.restarts_before + static_cast<int>(view_.failures.size());
  for (const HostView& host : view_.hosts) {
    record.restarts = std::max(record.restarts, host.record.epoch.restarts);
  }
  record.restarts_recent = DecideRestart(view_.failures, policy_.restarts, now_).spent;
  record.hosts = EpochHosts(hosts);
  Places former;
  if (view_.epoch) {
    for (const EpochWorker& one : epoch().workers) {
      former.by_seat[{one.slot, one.index}] = &one;
      if (!one.worker.empty()) former.by_worker.emplace(one.worker, one.rank);
    }
  }
  std::vector<Candidate> candidates;
  for (const HostView* host : hosts) {
    for (size_t i = 0; i < host->record.seats.size(); ++i) {
      const SeatRecord& seat = host->record.seats[i];
      if (in_place() && !CanEnter(seat)) continue;
      const int index = static_cast<int>(i);
      candidates.push_back({host->slot, index, in_place() ? seat.worker : std::string(),
                            FormerRank(former, *host, index)});
    }
  }
  record.workers = in_place() ? RanksInPlace(std::move(candidates))
                              : RanksForeign(record.hosts, std::move(candidates));
  decision.detail = CountText(record.workers.size(), "worker") + " on " +
                    CountText(hosts.size(), "host");
  if (view_.epoch) {
    decision.detail += view_.epoch->broken ? ", after: " + view_.epoch->broken->reason
                                           : ", at a boundary";
  }
  record.reason = decision.detail;
  return decision;
}

}  // namespace

bool CanEnter(const SeatRecord& seat) {
  return seat.state == SeatState::kReady || seat.state == SeatState::kParked;
}

std::string NameOf(const HostView& host) {
  return host.record.host + " (slot " + std::to_string(host.slot) + ")";
}

Decision Decide(const JobView& view, const JobPolicy& policy, TimePoint now) {
  return Judge(view, policy, now).Decide();
}

}  // namespace keel
