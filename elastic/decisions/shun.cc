// Counts what speaks against each host.
#include "elastic/decisions/shun.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "elastic/decisions/succession.h"

namespace keel {
namespace {

bool IsMember(const HostView& host) {
  return !host.gone && host.record.state == MemberState::kMember;
}

// In a job of weeks each host loses some.
Duration WindowOf(const JobPolicy& policy) {
  const Duration window = policy.restarts.window;
  return window == Duration(0) ? kShunWindow : window;
}

int RecentIncidents(const HostView& host, const JobPolicy& policy, TimePoint now) {
  const Duration window = WindowOf(policy);
  return static_cast<int>(
      std::count_if(host.incidents.begin(), host.incidents.end(),
                    [&](TimePoint incident) { return now - incident < window; }));
}

std::string LastEnd(const HostView& host) {
  for (const SeatRecord& seat : host.record.seats) {
    if (seat.state == SeatState::kDead || seat.state == SeatState::kStarting) {
      if (!seat.ended.empty()) return "; the last one " + Shown(seat.ended);
    }
  }
  return "";
}

std::string IncidentsText(int incidents, const HostView& host, const JobPolicy& policy) {
  return "its workers died " + std::to_string(incidents) + " times within " +
         DurationText(WindowOf(policy)) + LastEnd(host);
}

bool HasBeenInAnEpoch(const MemberRecord& record) {
  return record.epoch.number > 0 || !record.seen.met.empty() || !record.seen.tried.empty();
}

// It has nothing of its own to show, so it counts as its machine does.
bool IsRefusedWithItsMachine(const MemberRecord& record) {
  return !record.machine.empty() && !record.forgiven && !HasBeenInAnEpoch(record);
}

// A launcher that was left out and registers anew, or another one of a machine of which one was.
// One that was with the job before comes from another board, or was missed for a moment.
std::optional<Decision> RefuseReturned(const JobView& view) {
  for (const HostView& host : view.hosts) {
    const MemberRecord& record = host.record;
    if (!IsMember(host) || record.epoch.number > 0) continue;
    const ShunnedHost* before = view.shunned.FindLauncher(record.incarnation);
    if (before == nullptr && IsRefusedWithItsMachine(record)) {
      before = view.shunned.FindMachine(record.machine);
    }
    if (before == nullptr) continue;
    Decision decision;
    decision.verdict = Decision::Verdict::kRefuse;
    decision.reason = Reason::kShunnedBefore;
    decision.slot = host.slot;
    decision.detail = NameOf(host) + " was left out of this job before (" + before->reason +
                      "). If its machine is sound now, start it with --forgive";
    return decision;
  }
  return std::nullopt;
}

bool IsInEpoch(const HostView& host, const JobView& view) {
  return view.epoch->record.FindHost(host.slot, host.record.incarnation) != nullptr;
}

// Newcomers do not have the state at first, in their first epoch either.
bool HasState(const HostView& host, const JobView& view) {
  const auto& seats = host.record.seats;
  return IsInEpoch(host, view) &&
         std::any_of(seats.begin(), seats.end(), [](const SeatRecord& one) { return !one.lacks; });
}

// Whether the next epoch may have it.
bool TakesPart(const HostView& host, const JobView& view) {
  if (!IsMember(host) || view.IsShunned(host)) return false;
  if (IsInEpoch(host, view)) return true;
  return std::any_of(host.record.seats.begin(), host.record.seats.end(), CanEnter);
}

// Those that were forgotten may not have read yet that they are to leave.
bool CanBeRemembered(const JobView& view) {
  if (view.shunned.hosts.size() < kShunnedMax) return true;
  const std::string& oldest = view.shunned.hosts.front().incarnation;
  return std::none_of(view.hosts.begin(), view.hosts.end(), [&](const HostView& host) {
    return !host.gone && host.record.incarnation == oldest;
  });
}

// Whether a host goes once `out` is left out: itself, and others that are then refused.
bool GoesWith(const HostView& out, const HostView& host) {
  return host.slot == out.slot ||
         (IsRefusedWithItsMachine(host.record) && host.record.machine == out.record.machine);
}

// Those that take part and would go with one that is left out.
struct Going {
  int members = 0;
  int with_state = 0;                       // of these
  const HostView* coordinator = nullptr;    // null: it stays
};

Going CountGoing(const HostView& out, const JobView& view) {
  Going going;
  for (const HostView& host : view.hosts) {
    if (!GoesWith(out, host)) continue;
    if (IsMember(host) && host.record.incarnation == view.coordinator) going.coordinator = &host;
    if (!TakesPart(host, view)) continue;
    ++going.members;
    going.with_state += HasState(host, view) ? 1 : 0;
  }
  return going;
}

// The one that coordinates may go only where another one can take its role.
bool HasHeir(const HostView& coordinator, const HostView& out, const JobView& view) {
  return std::any_of(view.hosts.begin(), view.hosts.end(), [&](const HostView& host) {
    return host.record.incarnation != view.coordinator && !GoesWith(out, host) &&
           TakesPart(host, view) && CanCoordinate(host, coordinator.record.fingerprint, view);
  });
}

// Each machine once, but those that came back, since their users take them for sound now.
int CountLeftOut(const JobView& view) {
  const auto is_out = [&](const ShunnedHost& one) {
    return std::none_of(view.hosts.begin(), view.hosts.end(), [&](const HostView& host) {
      return IsMember(host) && host.record.forgiven && host.record.machine == one.machine;
    });
  };
  std::set<std::string> machines;
  int unknown = 0;
  for (const ShunnedHost& one : view.shunned.hosts) {
    if (!is_out(one)) continue;
    if (one.machine.empty()) ++unknown;
    else machines.insert(one.machine);
  }
  return static_cast<int>(machines.size()) + unknown;
}

constexpr const char* kMayBeTheProgram =
    "more than half of all hosts that the job had were shown to be wrong, so it may be the program";

std::string WhyNeeded(int staying, bool others_have_it, const JobPolicy& policy) {
  if (staying < policy.hosts_min) {
    return "the job needs " + std::to_string(policy.hosts_min) +
           (policy.hosts_min == 1 ? " host" : " hosts") + ": add another machine";
  }
  if (!others_have_it) return "nobody else has what the job has made so far";
  return "it coordinates, and nobody can take that over";
}

struct HostCount {
  int members = 0;
  int with_state = 0;   // of these
  int usual = 0;      // incidents of the one in the middle
  int sound = 0;      // members against which nothing speaks
};

HostCount CountHosts(const JobView& view, const JobPolicy& policy, TimePoint now) {
  HostCount count;
  std::vector<int> incidents;
  for (const HostView& host : view.hosts) {
    if (!TakesPart(host, view)) continue;
    incidents.push_back(RecentIncidents(host, policy, now));
    count.with_state += HasState(host, view) ? 1 : 0;
    const bool is_sound = incidents.back() < policy.shun_after && host.record.unfit.empty();
    count.sound += is_sound ? 1 : 0;
  }
  count.members = static_cast<int>(incidents.size());
  if (incidents.empty()) return count;
  const auto middle = incidents.begin() + (count.members - 1) / 2;
  std::nth_element(incidents.begin(), middle, incidents.end());
  count.usual = *middle;
  return count;
}

}  // namespace

std::optional<Decision> DecideShun(const JobView& view, const JobPolicy& policy, TimePoint now) {
  if (std::optional<Decision> refused = RefuseReturned(view)) return refused;
  // Workers that are not in place die because of each other.
  const bool may_shun = policy.shun_after > 0 && view.kind == JobKind::kInPlace && view.epoch &&
                        !view.stop && CanBeRemembered(view);
  if (!may_shun) return std::nullopt;
  // Asked first, since it is seldom so, and the rest takes long with a thousand hosts.
  const bool is_any = std::any_of(view.hosts.begin(), view.hosts.end(), [&](const auto& host) {
    return !host.record.unfit.empty() || RecentIncidents(host, policy, now) >= policy.shun_after;
  });
  if (!is_any) return std::nullopt;
  const HostCount count = CountHosts(view, policy, now);
  // Of all that there ever were half are sound at least, or it is the program.
  const bool is_program = 2 * count.sound < count.members + CountLeftOut(view);
  for (const HostView& host : view.hosts) {
    if (!IsMember(host) || view.IsShunned(host)) continue;
    const int incidents = RecentIncidents(host, policy, now);
    const bool is_named = !host.record.unfit.empty();
    const bool is_odd_one = incidents >= count.usual + policy.shun_after;
    if (!is_named && (is_program || !is_odd_one)) continue;
    Decision decision;
    decision.verdict = Decision::Verdict::kShun;
    decision.slot = host.slot;
    decision.detail = NameOf(host) + ": " + (is_named ? host.record.unfit
                                                      : IncidentsText(incidents, host, policy));
    const Going going = CountGoing(host, view);
    const int staying = count.members - going.members;
    const bool others_have_it = count.with_state > going.with_state;
    const bool can_leave =
        going.coordinator == nullptr || HasHeir(*going.coordinator, host, view);
    if (!is_program && staying >= policy.hosts_min && others_have_it && can_leave) {
      decision.reason = Reason::kUnfit;
      return decision;
    }
    if (host.blamed_when_needed >= host.record.deaths) continue;
    decision.reason = Reason::kUnfitNeeded;
    decision.detail += ". It stays, since " +
                       (is_program ? kMayBeTheProgram : WhyNeeded(staying, others_have_it, policy));
    return decision;
  }
  return std::nullopt;
}

}  // namespace keel
