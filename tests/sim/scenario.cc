// Draws scenarios: small jobs with short limits, so that each limit is reached in some of them.
#include "tests/sim/scenario.h"

#include <algorithm>
#include <sstream>

namespace keel {
namespace {

using namespace std::chrono_literals;
using Kind = SimFault::Kind;

constexpr int kDriftMax = 500;   // parts of 100,000: two hosts are 1 % apart at most

Duration Between(Random& random, Duration low, Duration high) {
  return low + Duration(static_cast<int64_t>(random.Uniform((high - low).count() + 1)));
}

void DrawPolicy(Scenario& s, Random& random) {
  JobPolicy& p = s.policy;
  p.hosts_min = 1 + static_cast<int>(random.Uniform(s.hosts));
  p.hosts_max = p.hosts_min + static_cast<int>(random.Uniform(s.hosts - p.hosts_min + 2));
  p.join_limit = 100s;
  p.last_call_limit = Between(random, 1s, 5s);
  p.restarts.restarts_max = random.Chance(0.3) ? static_cast<int>(random.Uniform(4)) : 1000;
  p.restarts.window = random.Chance(0.5) ? Duration(0) : Between(random, 10s, 60s);
  p.hang_limit = 35s;
  p.enter_limit = 20s;
  HostConfig& h = s.host;
  h.seats = s.seats;
  h.restarts = p.restarts;
  h.join_limit = p.join_limit;
  h.store_limit = h.quiet_limit = 20s;
  h.start_limit = 10s;
  h.shutdown_limit = Between(random, 1s, 4s);
  h.save_limit = 5s;
  h.close_limit = 5s;
  p.fence_limit = h.store_limit + h.save_limit + p.beat_limit;
  p.stop_grace = h.close_limit + h.shutdown_limit;
  p.quorum_limit = h.store_limit;
}

SimFault DrawFault(const Scenario& s, Random& random) {
  constexpr Kind kKinds[] = {Kind::kKillWorker,   Kind::kKillWorker,   Kind::kKillWorker,
                             Kind::kStoreFault,   Kind::kStoreFault,   Kind::kStoreFault,
                             Kind::kKillSupervisor, Kind::kPowerOff,   Kind::kCutOff,
                             Kind::kPause,        Kind::kFlapPresence, Kind::kHangWorker};
  constexpr size_t kStay = 6;   // the first ones, which no host is lost by
  SimFault fault;
  fault.kind = kKinds[random.Uniform(s.hosts_stay ? kStay : std::size(kKinds))];
  fault.at = Between(random, 0s, s.quiet_after - 10s);
  fault.host = static_cast<int>(random.Uniform(s.hosts));
  fault.seat = static_cast<int>(random.Uniform(s.seats));
  fault.detail = static_cast<int>(random.Uniform(1000));
  const bool is_long = random.Chance(0.15);
  fault.length = is_long ? Between(random, 5s, 40s) : Between(random, 10ms, 5s);
  return fault;
}

// Now and then several at the same moment, or one right after the other.
void DrawFaults(Scenario& s, Random& random) {
  const uint64_t count = random.Uniform(random.Chance(0.2) ? 60 : 15);
  for (uint64_t i = 0; i < count; ++i) {
    SimFault fault = DrawFault(s, random);
    if (i > 0 && random.Chance(0.3)) {
      const Duration near = s.faults.back().at + Between(random, 0s, 300ms);
      fault.at = std::min(near, s.quiet_after - 10s);
    }
    s.faults.push_back(fault);
  }
  if (random.Chance(0.1)) {
    SimFault stop = DrawFault(s, random);
    stop.kind = Kind::kStop;
    stop.length = Between(random, 1s, 10s);
    s.stop_asked = true;
    s.faults.push_back(stop);
  }
}

// A few hosts, some of which are out of reach for longer than anybody waits for them.
void DrawSplits(Scenario& s, Random& random) {
  s.policy.hosts_min = 1;
  s.policy.hosts_max = s.hosts;
  s.steps = 300;
  s.odd_host = -1;   // it may be the only one that is left
  const uint64_t count = 1 + random.Uniform(3);
  for (uint64_t i = 0; i < count; ++i) {
    SimFault fault = DrawFault(s, random);
    fault.kind = random.Chance(0.8) ? Kind::kCutOff : Kind::kPowerOff;
    fault.length = Between(random, 8s, 30s);
    s.faults.push_back(fault);
  }
}

void DrawLease(Scenario& s, Random& random) {
  s.has_lease = random.Chance(0.5);
  if (!s.has_lease) return;
  s.lease_apart = random.Chance(0.15);
  s.lease_needs_link = random.Chance(0.5);
  s.lease_loss = random.Chance(0.5) ? 0 : 0.2 * random.Double();
  s.lease_age = random.Chance(0.5) ? 0 : 0.5 * random.Double();
  const uint64_t count = random.Chance(0.5) ? 0 : random.Uniform(5);
  for (uint64_t i = 0; i < count; ++i) {
    SimFault fault = DrawFault(s, random);
    fault.kind = Kind::kLeaseAway;
    s.faults.push_back(fault);
  }
  if (random.Chance(0.5) && !s.hosts_stay) DrawSplits(s, random);
}

// Some hosts on one side, some on the other, and the rest reaches both.
SimFault DrawCutLinks(const Scenario& s, Random& random) {
  SimFault fault = DrawFault(s, random);
  fault.kind = Kind::kCutLinks;
  fault.one_way = random.Chance(0.5);
  const int other = static_cast<int>((fault.host + 1 + random.Uniform(s.hosts - 1)) % s.hosts);
  fault.from = 1u << fault.host;
  fault.to = 1u << other;
  for (int host = 0; host < s.hosts; ++host) {
    if (host == fault.host || host == other || random.Chance(0.3)) continue;
    (random.Chance(0.5) ? fault.from : fault.to) |= 1u << host;
  }
  if (random.Chance(0.4)) fault.length = Between(random, 5s, 30s);
  return fault;
}

void DrawLinks(Scenario& s, Random& random) {
  if (s.hosts == 1 || s.hosts_stay || !random.Chance(0.5)) return;
  const uint64_t count = 1 + random.Uniform(4);
  for (uint64_t i = 0; i < count; ++i) s.faults.push_back(DrawCutLinks(s, random));
}

void DrawClocks(Scenario& s, Random& random) {
  if (!random.Chance(0.5)) return;
  const bool is_extreme = random.Chance(0.5);
  for (int host = 0; host < s.hosts; ++host) {
    const int drift = static_cast<int>(random.Uniform(2 * kDriftMax + 1)) - kDriftMax;
    s.drift.push_back(!is_extreme ? drift : drift < 0 ? -kDriftMax : kDriftMax);
  }
}

}  // namespace

Scenario DrawScenario(uint64_t seed) {
  Random random = Random(seed).Fork("scenario");
  Scenario s;
  s.seed = seed;
  s.policy.shun_after = seed % 2 == 0 ? kShunAfter : 0;   // in no other draw's way
  s.hosts = 1 + static_cast<int>(random.Uniform(5));
  s.seats = 1 + static_cast<int>(random.Uniform(3));
  s.in_place = random.Chance(0.65);
  s.hosts_stay = random.Chance(0.25);
  s.checks_health = seed % 4 == 2;       // in no other draw's way, either
  s.unfit = s.checks_health && !s.hosts_stay ? 0.05 : 0;
  s.sealed = seed % 5 == 3;              // nor does this
  s.quiet_after = Between(random, 30s, 90s);
  DrawPolicy(s, random);
  s.poke_loss = random.Chance(0.5) ? 0 : random.Double();
  s.interleave = random.Chance(0.3) ? 0 : 0.3 * random.Double();
  s.start_failure = random.Chance(0.7) ? 0 : 0.3 * random.Double();
  s.slow = random.Chance(0.5) ? 0 : 0.2 * random.Double();
  s.step_time = Between(random, 50ms, 1s);
  s.steps = 10 + static_cast<int64_t>(random.Uniform(100));
  for (int i = 0; i < s.hosts; ++i) {
    s.arrivals.push_back(i == 0 || random.Chance(0.7) ? Between(random, 0s, 500ms)
                                                      : Between(random, 0s, 30s));
  }
  DrawFaults(s, random);
  // The store's own host is what the others are measured by.
  if (s.hosts > 1 && random.Chance(0.1)) {
    s.odd_host = 1 + static_cast<int>(random.Uniform(s.hosts - 1));
  }
  DrawLease(s, random);
  Random links = Random(seed).Fork("links"), clocks = Random(seed).Fork("clocks");
  DrawLinks(s, links);
  DrawClocks(s, clocks);
  return s;
}

Duration LivenessBound(const Scenario& s) {
  return s.policy.fence_limit + s.policy.last_call_limit + *s.policy.hang_limit +
         s.host.start_limit + s.host.shutdown_limit + 20s + s.policy.restarts.window;
}

std::string Scenario::Text() const {
  std::ostringstream text;
  text << "seed " << seed << ": " << hosts << " hosts x " << seats << " seats, "
       << (in_place ? "in place" : "foreign") << ", min " << policy.hosts_min << " max "
       << policy.hosts_max << ", " << faults.size() << " faults until "
       << DurationText(quiet_after) << ", restarts " << policy.restarts.restarts_max << " in "
       << DurationText(policy.restarts.window) << ", " << steps << " steps of "
       << DurationText(step_time)
       << (!has_lease ? "" : lease_apart ? ", a lease each" : ", a lease")
       << (drift.empty() ? "" : ", clocks that drift apart");
  if (odd_host >= 0) text << ", host " << odd_host << " has other numerics";
  return text.str();
}

}  // namespace keel
