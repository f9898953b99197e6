// Plans the scenario's arrivals and faults, carries news between the hosts, and lets time pass.
#include "tests/sim/world.h"

#include <algorithm>

namespace keel {
namespace {

using namespace std::chrono_literals;
using Kind = SimFault::Kind;

constexpr size_t kTraceKept = 400;
constexpr Duration kStrangerPause = 300ms;
constexpr TimePoint kEndless{4h};
constexpr uint64_t kEventsMax = 5'000'000;

uint64_t Mix(uint64_t digest, std::string_view text) {
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

bool Has(unsigned hosts, int host) { return (hosts >> host & 1) != 0; }

std::string NamesOf(unsigned hosts) {
  std::string names;
  for (int host = 0; hosts >> host != 0; ++host) {
    if (Has(hosts, host)) names += " " + std::to_string(host);
  }
  return names;
}

std::string NameOf(const SimFault& fault) {
  constexpr const char* kNames[] = {"kill supervisor", "power off", "cut off",     "pause",
                                    "kill worker",     "hang worker", "flap presence",
                                    "store fault",     "ask to stop", "lease away", "cut links"};
  const std::string what =
      fault.kind == Kind::kCutLinks
          ? " from" + NamesOf(fault.from) + " to" + NamesOf(fault.to) +
                (fault.one_way ? "" : " and back")
          : ", host " + std::to_string(fault.host) + " seat " + std::to_string(fault.seat);
  return kNames[static_cast<int>(fault.kind)] + what + ", for " + DurationText(fault.length);
}

}  // namespace

World::World(const Scenario& scenario, Tracer tracer)
    : scenario_(scenario),
      tracer_(std::move(tracer)),
      network_(Random(scenario.seed).Fork("network")),
      workers_(std::make_unique<SimWorkers>(scheduler_, scenario_, *this, *this)),
      stranger_(Random(scenario.seed).Fork("stranger")),
      checker_(
          scenario_, [this](const std::string& incarnation) { return IsGone(incarnation); },
          [this](const std::string& incarnation) {
            const SimHost* const host = FindHost(incarnation);
            return host != nullptr && host->stood_still_lately();
          }),
      disturbed_{scenario.quiet_after} {
  for (int host = 0; host < scenario_.hosts; ++host) {
    hosts_.push_back(std::make_unique<SimHost>(*this, host));
  }
}

Outcome World::Run() {
  Trace(scenario_.Text());
  Plan();
  while (!HasFailed() && !Done() && scheduler_.count() < kEventsMax) {
    if (!scheduler_.RunNext(kEndless)) break;
  }
  if (Done()) checker_.JobOver(*workers_);
  outcome_.failure = Failure();
  if (outcome_.failure.empty() && !Done()) outcome_.failure = "L1: the job does not end";
  if (!outcome_.failure.empty()) Trace(outcome_.failure);
  outcome_.trace.assign(trace_.begin(), trace_.end());
  outcome_.events = scheduler_.count();
  outcome_.simulated = scheduler_.now().since_start;
  outcome_.epochs = checker_.epochs();
  return outcome_;
}

bool World::HasFailed() const { return !checker_.failure().empty() || !objection_.empty(); }

std::string World::Failure() const {
  return checker_.failure().empty() ? objection_ : checker_.failure();
}

bool World::Done() const {
  return starts_planned_ == 0 && std::none_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
           return host->alive();
         });
}

void World::Trace(const std::string& text) {
  const std::string line =
      std::to_string(scheduler_.now().since_start.count() / 1000) + " us: " + text;
  outcome_.digest = Mix(outcome_.digest, line);
  if (tracer_) tracer_(line);
  trace_.push_back(line);
  if (trace_.size() > kTraceKept) trace_.pop_front();
}

// --- Plans ---

void World::Plan() {
  for (int host = 0; host < scenario_.hosts; ++host) {
    StartSupervisor(host, scenario_.arrivals[host]);
  }
  for (const SimFault& fault : scenario_.faults) {
    scheduler_.At(TimePoint{fault.at}, Scheduler::kAlone, [this, &fault] { Strike(fault); });
  }
  PlanTick();
  if (scenario_.sealed) PlanStranger();
}

// It strikes every board that is kept.
void World::PlanStranger() {
  scheduler_.After(kStrangerPause, Scheduler::kAlone, [this] {
    for (auto& [address, kept] : boards_) {
      if (kept.is_closed || scheduler_.now() > TimePoint{scenario_.quiet_after}) continue;
      const std::string done = stranger_.Strike(*kept.board, kSimJob, 3 * scenario_.hosts);
      if (!done.empty()) Trace(done + " at " + address);
    }
    PlanStranger();
  });
}

void World::PlanTick() {
  scheduler_.After(500ms, Scheduler::kAlone, [this] {
    checker_.Tick(Look());
    PlanTick();
  });
}

Health World::Look() {
  const bool is_kept = std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
    return host->alive() && host->coordinates();
  });
  Health health{scheduler_.now(), disturbed_, 0, is_kept, ""};
  for (const auto& host : hosts_) {
    if (!host->alive()) continue;
    ++health.supervisors;
    health.who += " " + std::to_string(host->number());
  }
  return health;
}

void World::StartSupervisor(int host, Duration delay) {
  ++starts_planned_;
  Disturb(delay);
  scheduler_.After(delay, Scheduler::kAlone, [this, host] {
    --starts_planned_;
    hosts_[host]->Start();
  });
}

void World::Disturb(Duration length) {
  disturbed_ = std::max(disturbed_, scheduler_.now() + length);
}

// --- Faults ---

void World::Strike(const SimFault& fault) {
  SimHost& host = *hosts_[fault.host];
  if (!host.alive() && fault.kind != Kind::kCutLinks) return;
  Trace("fault: " + NameOf(fault));
  Disturb(fault.length);
  switch (fault.kind) {
    case Kind::kKillSupervisor:
    case Kind::kPowerOff: return StopSupervisor(fault);
    case Kind::kCutOff: return host.CutOff(fault.length);
    case Kind::kPause:
      if (fault.detail % 2 == 0) return host.Pause(fault.length);
      return host.PauseInMidPoll(fault.length);
    case Kind::kKillWorker:
    case Kind::kHangWorker: return StrikeWorker(fault);
    case Kind::kFlapPresence: return FlapPresence(fault);
    case Kind::kStoreFault: return StrikeStore(fault);
    case Kind::kStop: return host.AskToStop(fault.length);
    case Kind::kLeaseAway: return host.LoseLease(fault.length);
    case Kind::kCutLinks: return CutLinks(fault);
  }
}

void World::CutLinks(const SimFault& fault) {
  const TimePoint until = scheduler_.now() + fault.length;
  const auto cut = [&](int from, int to) {
    TimePoint& limit = cut_until_[{from, to}];
    limit = std::max(limit, until);
  };
  for (int from = 0; from < scenario_.hosts; ++from) {
    for (int to = 0; to < scenario_.hosts; ++to) {
      if (!Has(fault.from, from) || !Has(fault.to, to)) continue;
      cut(from, to);
      if (!fault.one_way) cut(to, from);
    }
  }
}

void World::StrikeWorker(const SimFault& fault) {
  const WorkerPlace place = hosts_[fault.host]->PlaceOf(fault.seat);
  if (fault.kind == Kind::kKillWorker) {
    const bool by_itself = fault.detail % 3 == 0;
    workers_->Kill(place, by_itself ? ExitStatus::Exited(3) : ExitStatus::Killed(9));
  } else if (scenario_.in_place) {   // nobody can tell that a foreign one hangs
    workers_->Hang(place);
  }
}

void World::StrikeStore(const SimFault& fault) {
  const SimHost& host = *hosts_[fault.host];
  const bool coordinator = host.coordinates() && fault.detail % 2 == 1;
  const std::string client =
      (coordinator ? "coordinator " : "member ") + std::to_string(fault.host);
  const std::string address =
      coordinator ? host.own_place()->address : host.Sight() ? host.Sight()->place.address : "";
  if (address.empty()) return;
  constexpr StoreFault kFaults[] = {StoreFault::kRequestLost, StoreFault::kReplyLost,
                                    StoreFault::kCut};
  BoardAt(address).PlanFault(client, fault.detail % 20, kFaults[fault.detail % 3]);
}

void World::FlapPresence(const SimFault& fault) {
  SimHost& host = *hosts_[fault.host];
  if (!host.slot()) return;
  SimHost* const coordinator = FindHost(host.coordinator());
  if (coordinator == nullptr) return;
  coordinator->PresenceClosed(*host.slot(), host.incarnation());
  const bool is_short = fault.detail % 2 == 0;
  scheduler_.After(is_short ? fault.length / 100 : fault.length, Scheduler::kAlone,
                   [this, number = fault.host] {
                     PresenceOpened(number, hosts_[number]->coordinator());
                   });
}

// Some never come back.
void World::StopSupervisor(const SimFault& fault) {
  SimHost& host = *hosts_[fault.host];
  const bool goodbye = fault.kind == Kind::kKillSupervisor && !host.cut_off();
  if (goodbye && host.slot()) {
    scheduler_.After(Delay(), Scheduler::kNobody,
                     [this, number = host.number(), slot = *host.slot(),
                      incarnation = host.incarnation(),
                      coordinator = host.coordinator()] {
                       SimHost* const told = FindHost(coordinator);
                       if (told == nullptr || !Arrives(number, told->number())) return;
                       told->PresenceClosed(slot, incarnation);
                     });
  }
  workers_->KillAllOf(host.number(), host.life());
  host.Stop(fault.kind == Kind::kPowerOff);
  if (fault.detail % 6 != 0) StartSupervisor(host.number(), fault.length);
}

// --- What the hosts see of each other ---

Duration World::Delay() { return 1ms + Duration(network_.Uniform(20'000'000)); }

bool World::Arrives(int from, int to) {
  if (from == to) return true;
  if (hosts_[from]->cut_off() || hosts_[to]->cut_off()) return false;
  const auto cut = cut_until_.find({from, to});
  return cut == cut_until_.end() || cut->second <= scheduler_.now();
}

SimHost* World::FindHost(const std::string& incarnation) {
  for (const auto& host : hosts_) {
    if (host->alive() && host->incarnation() == incarnation) return host.get();
  }
  return nullptr;
}

std::string World::OpenBoard(int host) {
  const std::string address =
      "10.0.0." + std::to_string(host + 1) + ":" + std::to_string(1000 + boards_.size());
  boards_[address] = {std::make_unique<MemoryBoard>(scheduler_.clock()), host,
                      hosts_[host]->life()};
  return address;
}

void World::BoardOpened(int host, const std::string& generation, const BoardPlace& place,
                        const std::optional<BoardPlace>& followed, bool is_asked) {
  const bool takes = followed && place.term > 1 && !is_asked;
  checker_.BoardOpened({generation, host, place, takes ? WhoHears(host, *followed) : ""});
}

// Whom the host can ask, or itself, of those that have heard lately from the keeper of that board,
// which is there; empty: nobody.
std::string World::WhoHears(int host, const BoardPlace& place) {
  const auto kept = boards_.find(place.address);
  if (kept == boards_.end()) return "";
  const SimHost& keeper = *hosts_[kept->second.host];
  const bool lives =
      keeper.alive() && keeper.life() == kept->second.life && !kept->second.is_closed;
  if (!lives) return "";
  const bool reaches = Look(host, place.address) == Reached::kListener &&
                       GoesOn(host, place.address) == kNever;
  if (reaches) return "h" + std::to_string(host);
  for (const auto& one : hosts_) {
    if (!one->alive() || one->paused() || one->number() == host) continue;
    const std::optional<PeerSight> sight = one->Sight();
    const bool hears = sight && IsSameBoard(sight->place, place) &&
                       sight->heard_ago < kHeardLately && Connected(host, one->number());
    if (hears && Look(one->number(), place.address) == Reached::kListener) {
      return "h" + std::to_string(one->number());
    }
  }
  return "";
}

void World::CloseBoard(const std::string& address, Duration delay) {
  checker_.BoardLeft(address);
  scheduler_.After(delay, Scheduler::kNobody,
                   [this, address] { boards_.at(address).is_closed = true; });
}

// A machine that is there refuses what nobody listens for; one without power says nothing.
Reached World::Look(int host, const std::string& address) {
  const auto kept = boards_.find(address);
  if (kept == boards_.end()) return Reached::kRefused;
  const SimHost& keeper = *hosts_[kept->second.host];
  if (!Connected(host, keeper.number()) || keeper.powered_off()) return Reached::kNothing;
  const bool lives = keeper.alive() && keeper.life() == kept->second.life &&
                     !kept->second.is_closed;
  return lives ? Reached::kListener : Reached::kRefused;
}

bool World::TakesUnanswered(int host, const std::string& address) {
  const Kept& kept = boards_.at(address);
  const SimHost& keeper = *hosts_[kept.host];
  const bool lives = keeper.alive() && keeper.life() == kept.life && !kept.is_closed;
  return lives && !keeper.paused() && Arrives(host, kept.host) && !Arrives(kept.host, host);
}

TimePoint World::GoesOn(int host, const std::string& address) {
  if (Look(host, address) != Reached::kListener) return kNever;
  const SimHost& keeper = *hosts_[boards_.at(address).host];
  return keeper.paused() && keeper.number() != host ? keeper.paused_until() : kNever;
}

bool World::Vouches(int host, const std::string& generation) {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& other) {
    return other->alive() && other->Keeps(generation) && Connected(host, other->number());
  });
}

Reached World::LookAtPeer(int host, const std::string& peer) {
  for (const auto& one : hosts_) {
    if (peer != PeerOf(one->number())) continue;
    if (!Connected(host, one->number()) || one->powered_off()) return Reached::kNothing;
    return one->alive() ? Reached::kListener : Reached::kRefused;
  }
  return Reached::kNothing;
}

std::vector<PeerSight> World::AskOthers(int host, const BoardPlace& lost) {
  std::vector<PeerSight> sights;
  for (const auto& one : hosts_) {
    if (one->number() == host || !one->alive() || one->paused()) continue;
    if (!Connected(host, one->number())) continue;
    const std::optional<PeerSight> sight = one->Sight();
    if (!sight || sight->heard_ago >= kHeardLately) continue;
    const bool is_there = Look(host, sight->place.address) == Reached::kListener;
    if (is_there || IsSameBoard(sight->place, lost)) sights.push_back(*sight);
  }
  return sights;
}

std::string World::EndpointFor(int host) {
  const SimHost& first = *hosts_[0];
  const std::optional<BoardPlace> place = first.own_place();
  const bool is_there = first.alive() && Connected(host, 0) && place;
  return is_there && place->address == first.endpoint() ? first.endpoint() : "";
}

void World::TellBehind(int host, const BoardPlace& own) {
  SimHost& first = *hosts_[0];
  if (host == 0 || !first.alive() || first.paused() || !Connected(host, 0)) return;
  const std::optional<BoardPlace> place = first.own_place();
  if (place && place->address == first.endpoint()) first.Offer(own);
}

bool World::PokeArrives(int from, int to) {
  return Arrives(from, to) && !network_.Chance(scenario_.poke_loss);
}

void World::TellCoordinator(int from, const std::string& coordinator) {
  const SimHost* const host = FindHost(coordinator);
  if (host == nullptr || !PokeArrives(from, host->number())) return;
  const int64_t slot = hosts_[from]->slot().value_or(-1);
  scheduler_.After(Delay(), Scheduler::kNobody, [this, coordinator, slot] {
    if (SimHost* const told = FindHost(coordinator)) told->News(slot);
  });
}

void World::TellMembers(int from) {
  for (const auto& host : hosts_) {
    if (!PokeArrives(from, host->number())) continue;
    scheduler_.After(Delay(), Scheduler::kNobody, [one = host.get()] {
      if (one->alive()) one->Look();
    });
  }
}

void World::PresenceOpened(int host, const std::string& coordinator) {
  scheduler_.After(Delay(), Scheduler::kNobody, [this, host, coordinator] {
    const SimHost& from = *hosts_[host];
    SimHost* const told = FindHost(coordinator);
    if (told == nullptr || !from.slot() || !Connected(host, told->number())) return;
    told->PresenceOpened(*from.slot(), from.incarnation());
  });
}

void World::Exited(int number, int code) {
  SimHost& host = *hosts_[number];
  Trace("host " + std::to_string(number) + " is gone with " + std::to_string(code));
  if (outcome_.code < 0) outcome_.code = code;
  const bool leaves = workers_->AnyAliveOf(number, host.life());
  checker_.SupervisorExits(number, code, leaves, *workers_, scheduler_.now());
  host.Stop(false);
}

// --- What the workers tell ---

void World::WorkerSays(const WorkerPlace& place, const WorkerMessage& message) {
  hosts_[place.host]->WorkerSays(place, message);
}

void World::WorkerEnding(const WorkerPlace& place, const ExitStatus& status) {
  hosts_[place.host]->WorkerEnding(place, status);
}

void World::WorkerEnded(const WorkerPlace& place, const ExitStatus& status) {
  hosts_[place.host]->WorkerEnded(place, status);
}

void World::Entered(const SimWorker& worker, const SimGroup& group, int rank) {
  checker_.Entered(worker, group, rank, *workers_, scheduler_.now());
}

void World::Stepped(const SimGroup& group) { checker_.Stepped(group, scheduler_.now()); }

Outcome Simulate(uint64_t seed, World::Tracer tracer) {
  return World(DrawScenario(seed), std::move(tracer)).Run();
}

}  // namespace keel
