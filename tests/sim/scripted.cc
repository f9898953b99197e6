// Scenarios drawn from a seed and then bent to what they are to show.
#include "tests/sim/scripted.h"

#include <chrono>

namespace keel {

using namespace std::chrono_literals;
using Kind = SimFault::Kind;

namespace {

// Of so many hosts, each of which may go on alone; nothing goes wrong but what its caller adds.
Scenario Untroubled(uint64_t seed, int hosts) {
  Scenario scenario = DrawScenario(seed);
  scenario.hosts = hosts;
  scenario.odd_host = -1;
  scenario.policy.hosts_min = 1;
  scenario.policy.hosts_max = hosts;
  scenario.host.restarts = scenario.policy.restarts = {.restarts_max = 1000};
  scenario.start_failure = scenario.unfit = 0;
  scenario.sealed = false;
  scenario.steps = 400;
  scenario.arrivals.assign(hosts, 0s);
  scenario.has_lease = false;
  scenario.faults.clear();
  return scenario;
}

}  // namespace

std::string Told(uint64_t seed, const Outcome& outcome) {
  std::string text = "seed " + std::to_string(seed) + ": " + outcome.failure +
                     "\nreplay: elastic_sim --trace " + std::to_string(seed);
  for (const std::string& line : outcome.trace) text += "\n" + line;
  return text;
}

Scenario LeftAlone(uint64_t seed, SimFault::Kind how, Duration length) {
  Scenario scenario = DrawScenario(seed);
  Random random = Random(seed).Fork("left-alone");
  scenario.hosts = 2 + static_cast<int>(random.Uniform(2));
  scenario.in_place = true;
  scenario.odd_host = -1;
  scenario.policy.hosts_min = 1;
  scenario.policy.needs_quorum = scenario.has_lease = false;
  scenario.one_coordinator = true;
  scenario.policy.hosts_max = scenario.hosts;
  scenario.policy.restarts.restarts_max = scenario.host.restarts.restarts_max = 1000;
  scenario.arrivals.assign(scenario.hosts, 0s);
  scenario.steps = 1000;
  scenario.faults.clear();
  for (Duration at = 5s; at < scenario.quiet_after - 10s; at += length + 5s) {
    for (int seat = 0; seat < scenario.seats; ++seat) {
      scenario.faults.push_back({Kind::kKillWorker, at, 0, seat});
    }
    const Duration cut = at + std::chrono::milliseconds(random.Uniform(300));
    for (int host = 1; host < scenario.hosts; ++host) {
      scenario.faults.push_back({how, cut, host, 0, length});
    }
  }
  return scenario;
}

Scenario Stopped(uint64_t seed, Duration at) {
  Scenario scenario = DrawScenario(seed);
  scenario.hosts = 1 + static_cast<int>(seed % 2);
  scenario.seats = 2;
  scenario.in_place = true;
  scenario.odd_host = -1;
  scenario.policy.hosts_min = scenario.policy.hosts_max = scenario.hosts;
  scenario.host.seats = scenario.seats;
  // Or a worker that ends before its hello is taken for a foreign one, and something for lost.
  scenario.host.program_says_hello = scenario.policy.program_says_hello = true;
  scenario.host.restarts = scenario.policy.restarts = {.restarts_max = 10};
  scenario.host.shutdown_limit = 60s;
  scenario.host.close_limit = 1s;
  scenario.poke_loss = scenario.start_failure = scenario.slow = scenario.unfit = 0;
  scenario.sealed = false;
  scenario.has_lease = false;
  scenario.steps = 1000;
  scenario.arrivals.assign(scenario.hosts, 0s);
  scenario.faults = {{SimFault::Kind::kStop, at, 0, 0, 60s}};
  scenario.stop_asked = true;
  return scenario;
}

Scenario NotShared(uint64_t seed) {
  Scenario scenario = Untroubled(seed, 3);
  scenario.steps = 1000;
  scenario.has_lease = true;
  scenario.lease_apart = scenario.lease_needs_link = false;
  scenario.lease_loss = scenario.lease_age = 0;
  const Duration cut = 12s + std::chrono::milliseconds(Random(seed).Uniform(5000));
  scenario.faults = {{SimFault::Kind::kLeaseAway, 1ms, 1, 0, 60s},
                     {SimFault::Kind::kLeaseAway, 1ms, 2, 0, 60s},
                     {SimFault::Kind::kCutOff, cut, 0, 0, 30s}};
  return scenario;
}

Scenario HandedOver(uint64_t seed) {
  Scenario scenario = Untroubled(seed, 4);
  const Duration at = 8s + std::chrono::milliseconds(Random(seed).Uniform(5000));
  SimFault apart{Kind::kCutLinks, at, 1, 0, 30s};
  apart.from = 1u << 1;
  apart.to = 1u << 2 | 1u << 3;
  scenario.faults = {apart, {Kind::kStop, at, 0, 0, 10s}};
  scenario.stop_asked = true;
  return scenario;
}

Scenario DiedElsewhere(uint64_t seed) {
  Scenario scenario = Untroubled(seed, 3);
  const Duration at = 8s + std::chrono::milliseconds(Random(seed).Uniform(5000));
  SimFault apart{Kind::kCutLinks, at, 1, 0, 60s};
  apart.from = 1u << 1;
  apart.to = 1u << 2;
  scenario.faults = {apart, {Kind::kPause, at, 1, 0, 10s}, {Kind::kKillSupervisor, at + 8s, 0}};
  return scenario;
}

}  // namespace keel
